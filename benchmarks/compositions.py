"""A trial: Compositional-ARC's setting, by a network that learns one transformation and is applied three times.

python benchmarks/compositions.py 0 8000 30000 256     # split and seed, steps, episodes, width
"""

import functools
import itertools
import random
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIDE = 10
FAMILIES = ("translation", "mirror", "rotation", "recolor", "grow")
KINDS = {
    "translation": ("down", "right"),
    "mirror": ("rows", "columns"),
    "rotation": ("clockwise",),
    "recolor": (1, 2),
    "grow": ("up", "left"),
}
ROLES = ("shape", "color", "neighbor")
NEIGHBORS = [
    ((0, 0),),
    ((0, 0), (0, 1)),
    ((0, 0), (1, 0)),
    ((1, 0), (0, 1)),
    ((0, 0), (1, 1)),
    ((0, 1), (1, 0), (1, 1)),
    ((0, 0), (0, 1), (1, 0)),
    ((0, 0), (1, 0), (1, 1)),
    ((0, 0), (0, 1), (1, 0), (1, 1)),
    ((0, 0), (0, 1), (1, 1)),
]


def act(step, cells, color):
    """Apply one transformation to an object; None where it leaves the grid or changes nothing that it should."""
    family, kind = step
    rows, columns = [r for r, _ in cells], [c for _, c in cells]
    top, bottom, left, right = min(rows), max(rows), min(columns), max(columns)
    if family == "recolor":
        return cells, kind
    if family == "translation":
        new = {(r + (kind == "down"), c + (kind == "right")) for r, c in cells}
    elif family == "mirror":
        new = {(top + bottom - r, c) if kind == "rows" else (r, left + right - c) for r, c in cells}
    elif family == "rotation":
        new = {(top + c - left, left - (r - top)) for r, c in cells}
    else:
        new = cells | {(r - (kind == "up"), c - (kind == "left")) for r, c in cells}
    if family in ("mirror", "rotation") and new == cells:
        return None
    if any(not (0 <= r < SIDE and 0 <= c < SIDE) for r, c in new):
        return None
    return frozenset(new), color


def walk(rnd, size):
    while True:
        at = rnd.randrange(SIDE), rnd.randrange(SIDE)
        cells = {at}
        moves = 0
        while len(cells) < size and moves < 4 * size:
            options = [
                (at[0] + a, at[1] + b)
                for a in (-1, 0, 1)
                for b in (-1, 0, 1)
                if (a or b) and 0 <= at[0] + a < SIDE and 0 <= at[1] + b < SIDE
            ]
            at = rnd.choice(options)
            cells.add(at)
            moves += 1
        if len(cells) == size:
            return frozenset(cells)


def norm(cells):
    top, left = min(r for r, _ in cells), min(c for _, c in cells)
    return frozenset((r - top, c - left) for r, c in cells)


def place(rnd, shape):
    height, width = max(r for r, _ in shape) + 1, max(c for _, c in shape) + 1
    down, right = rnd.randrange(SIDE - height + 1), rnd.randrange(SIDE - width + 1)
    return frozenset((r + down, c + right) for r, c in shape)


def touches(a, b):
    return any(max(abs(r - s), abs(c - t)) <= 1 for r, c in a for s, t in b)


def changed(rnd, cells, family):
    """An object as other transformations than the one asked for may leave it."""
    for _ in range(rnd.randrange(3)):
        other = rnd.choice(("mirror", "rotation", "grow"))
        if other == family or (other == "grow" and len(cells) > 9):
            continue
        if (made := act((other, rnd.choice(KINDS[other])), cells, 0)) is not None:
            cells = made[0]
    return cells


def pairs(rnd, count, steps, colors, shape, forbidden, neighbor, change=False):
    found = []
    for _ in range(500):
        cells = place(rnd, shape) if shape else walk(rnd, rnd.randint(1, 9))
        if change:
            cells = changed(rnd, cells, steps[0][0])
        if norm(cells) == forbidden:
            continue
        color = rnd.choice(colors)
        now = cells, color
        if neighbor and touches(cells, neighbor[0]):
            continue
        for step in steps:
            now = act(step, *now)
            if now is None:
                break
        if now is None or (neighbor and touches(now[0], neighbor[0])):
            continue
        found.append(((cells, color), now))
        if len(found) == count:
            return found
    return None


def episode(rnd, triples, num_queries=10):
    """Return what each role does, two pairs for each of six studies, and the queries; each object apart from its neighbor."""
    while True:
        families = rnd.sample(FAMILIES, 3)
        if frozenset(families) not in triples:
            continue
        steps = [(family, rnd.choice(KINDS[family])) for family in families]
        color, other = rnd.sample(range(1, 10), 2)
        free = [c for c in range(1, 10) if c not in (color, other)]
        marker = rnd.choice(NEIGHBORS)
        shape = norm(walk(rnd, rnd.randint(1, 9)))
        if shape == norm(marker):
            continue
        neighbor = place(rnd, frozenset(marker)), other
        made = []
        for roles in [(2,), (0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
            has = lambda role: role in roles
            got = pairs(
                rnd,
                2 if len(roles) < 3 else num_queries,
                [steps[r] for r in roles],
                [color] if has(1) else free,
                shape if has(0) else None,
                None if has(0) else shape,
                neighbor if has(2) else None,
            )
            if got is None:
                break
            made.append((roles, got))
        else:
            made = dict(made)
            queries = made.pop((0, 1, 2))
            if len({q[0] for q in queries}) == len(queries):
                return steps, made, queries


def split(seed):
    triples = [frozenset(t) for t in itertools.combinations(FAMILIES, 3)]
    random.Random(seed).shuffle(triples)
    return set(triples[2:]), set(triples[:2])


def studies(rnd, triples):
    """Three transformations of an episode: two pairs that tell each, and two that ask for it."""
    while True:
        families = rnd.sample(FAMILIES, 3)
        if frozenset(families) not in triples:
            continue
        steps = [(f, rnd.choice(KINDS[f])) for f in families]
        color, other = rnd.sample(range(1, 10), 2)
        free = [c for c in range(1, 10) if c not in (color, other)]
        marker = rnd.choice(NEIGHBORS)
        shape = norm(walk(rnd, rnd.randint(1, 9)))
        if shape == norm(marker):
            continue
        neighbor = place(rnd, frozenset(marker)), other
        made = []
        for role in range(3):
            told = pairs(
                rnd,
                2,
                [steps[role]],
                [color] if role == 1 else free,
                shape if role == 0 else None,
                None if role == 0 else shape,
                neighbor if role == 2 else None,
            )
            asked = told and pairs(rnd, 2, [steps[role]], range(1, 10), None, None, None, change=True)
            if not asked:
                break
            made.append(told + asked)
        else:
            return made


seed, steps, number, H = map(int, sys.argv[1:5])
known, unseen = split(seed)
rnd = random.Random(seed)
D = dict(
    validation=[episode(rnd, known) for _ in range(300)],
    test=[episode(rnd, unseen) for _ in range(300)],
)
groups = [group for _ in range(number) for group in studies(rnd, known)]
print(
    [sorted(each) for each in unseen], len(groups), "transformations made in", time.process_time(), "CPU s", flush=True
)
REACH, Z = 9, 48
W = 2 * REACH + 1


def tokens(objects, most=18):
    """Where the cells of objects are, int[n, most, 2], which slots hold one, and the box of each."""
    place = np.zeros((len(objects), most, 2), np.int8)
    there = np.zeros((len(objects), most), bool)
    box = np.zeros((len(objects), 4), np.int8)
    for i, (cells, _) in enumerate(objects):
        cells = sorted(cells)[:most]
        place[i, : len(cells)] = cells
        there[i, : len(cells)] = True
        rows, cols = zip(*cells)
        box[i] = min(rows), max(rows), min(cols), max(cols)
    return place, there, box


def grids(objects):
    g = np.zeros((len(objects), SIDE, SIDE), bool)
    for i, (cells, _) in enumerate(objects):
        for r, c in cells:
            g[i, r, c] = 1
    return g


colors = lambda objects: np.array([c for _, c in objects], np.int8)


def seen(before, after):
    """What a pair shows: the object in its box, and where its cells are after, around the corner of the box before."""
    _, _, box = tokens(before)
    a, b = np.zeros((len(before), SIDE, SIDE), bool), np.zeros((len(before), W, W), bool)
    for i, ((cells, _), (cells2, _)) in enumerate(zip(before, after)):
        for r, c in cells:
            a[i, r - box[i, 0], c - box[i, 2]] = 1
        for r, c in cells2:
            b[i, np.clip(r - box[i, 0] + REACH, 0, W - 1), np.clip(c - box[i, 2] + REACH, 0, W - 1)] = 1
    hot = lambda o: np.eye(10, dtype=bool)[colors(o)]
    return np.concatenate([a.reshape(len(before), -1), b.reshape(len(before), -1), hot(before), hot(after)], 1)


def init(key):
    sizes = dict(
        e1=(SIDE * SIDE + W * W + 20, H),
        e2=(H, H),
        e3=(H, Z),
        f0=(Z, H),
        f1=(4 * SIDE, H),
        f2=(H, H),
        f3=(H, 4 * W + 1),
        c1=(10 + Z, 64),
        c2=(64, 10),
    )
    keys = jax.random.split(key, len(sizes))
    return {n: (jax.random.normal(k, s) * s[0] ** -0.5, jnp.zeros(s[1])) for k, (n, s) in zip(keys, sizes.items())}


lin = lambda p, n, x: x @ p[n][0] + p[n][1]


def code(p, shown):
    """What pairs tell of one transformation, [..., pairs, D] -> [..., Z]."""
    h = jax.nn.relu(lin(p, "e1", shown.astype(jnp.float32)))
    return lin(p, "e3", jax.nn.relu(lin(p, "e2", h)).mean(-2))


def apply(p, z, place, there, box, color):
    """Probability of each cell, [SIDE, SIDE], and of each color."""
    place, box, color = (x.astype(jnp.int32) for x in (place, box, color))
    r, c = place[:, 0], place[:, 1]
    hot = lambda x: jax.nn.one_hot(x, SIDE)
    x = jnp.concatenate([hot(r - box[0]), hot(box[1] - r), hot(c - box[2]), hot(box[3] - c)], 1)
    h = jax.nn.relu(lin(p, "f1", x) + lin(p, "f0", z))
    h = jax.nn.relu(lin(p, "f2", h))
    out = lin(p, "f3", h)
    moves = jax.nn.softmax(out[:, : 4 * W].reshape(-1, 2, 2, W), -1)  # token, copy, axis, distance
    second = jax.nn.sigmoid(out[:, -1])

    def spread(at, move):  # distance -> rows of the grid
        index = jnp.arange(SIDE)[None] - at[:, None] + REACH
        return jnp.where((index >= 0) & (index < W), jnp.take_along_axis(move, jnp.clip(index, 0, W - 1), 1), 0)

    prob = lambda k: spread(r, moves[:, k, 0])[:, :, None] * spread(c, moves[:, k, 1])[:, None, :]
    weight = there[:, None, None]
    none = jnp.prod(1 - weight * prob(0), 0) * jnp.prod(1 - weight * second[:, None, None] * prob(1), 0)
    tint = jax.nn.log_softmax(lin(p, "c2", jax.nn.relu(lin(p, "c1", jnp.concatenate([jax.nn.one_hot(color, 10), z])))))
    return 1 - none, tint


def loss_one(p, z, place, there, box, color, target, after):
    prob, tint = apply(p, z, place, there, box, color)
    prob = jnp.clip(prob, 1e-5, 1 - 1e-5)
    return -jnp.where(target, jnp.log(prob), jnp.log(1 - prob)).sum() - tint[after.astype(jnp.int32)]


def loss(p, batch):
    shown, asked = batch  # two pairs of each of B transformations tell it, and two objects are asked
    return jax.vmap(jax.vmap(functools.partial(loss_one, p), (None, 0, 0, 0, 0, 0, 0)))(code(p, shown), *asked).mean()


flat = lambda k, at: [group[i][k] for group in groups for i in at]
two = lambda x: np.asarray(x).reshape(len(groups), 2, *np.asarray(x).shape[1:])
before, after = flat(0, (2, 3)), flat(1, (2, 3))
data = (
    two(seen(flat(0, (0, 1)), flat(1, (0, 1)))),
    tuple(map(two, (*tokens(before, 18), colors(before), grids(after), colors(after)))),
)
schedule = optax.warmup_cosine_decay_schedule(0.0, 2e-3, 200, max(steps, 400))
opt = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))
p = init(jax.random.key(seed))
s = opt.init(p)


@jax.jit
def step(p, s, batch):
    l, g = jax.value_and_grad(loss)(p, batch)
    u, s = opt.update(g, s)
    return optax.apply_updates(p, u), s, l


go = jax.jit(jax.vmap(apply, (None, 0, 0, 0, 0, 0)))


def run(z, objects):
    """Apply an operation to many objects."""
    prob, tint = go(p, z, *tokens(objects), colors(objects))
    prob, tint = np.asarray(prob), np.asarray(tint)
    return [
        (frozenset(zip(*(x.tolist() for x in np.nonzero(a > 0.5)))) or frozenset({(0, 0)}), int(b))
        for a, b in zip(prob, tint.argmax(-1))
    ]


def measure(episodes, name):
    z = [np.stack([seen(*zip(*made[role,])) for _, made, _ in episodes]) for role in range(3)]
    z = [np.asarray(code(p, jnp.asarray(x))) for x in z]
    now = [q for _, _, queries in episodes for q, _ in queries]
    wanted = [w for _, _, queries in episodes for _, w in queries]
    each = len(episodes[0][2])
    for role in range(3):
        now = run(np.repeat(z[role], each, 0), now)
    right = [a == b for a, b in zip(now, wanted)]
    print(name, f"{np.mean(right):.4f} of {len(right)}", round(time.process_time() - t0, 1), "CPU s", flush=True)


rng = np.random.default_rng(seed)
t0 = time.process_time()
for i in range(steps):
    rows = rng.integers(0, len(groups), 128)
    p, s, l = step(p, s, jax.tree.map(lambda x: x[rows], data))
    if i % 500 == 499:
        print(i + 1, float(l), round(time.process_time() - t0, 1), flush=True)
    if i % 2000 == 1999:
        measure(D["validation"], "known sets, new episodes")
measure(D["test"], "unseen sets")
print("CPU s", time.process_time(), "parameters", sum(x.size for x in jax.tree.leaves(p)))
