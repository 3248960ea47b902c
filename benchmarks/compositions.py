"""A trial: Compositional-ARC's setting, by a network that learns one transformation and is applied three times.

python benchmarks/compositions.py 0 4000     # split and seed, steps
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


def pairs(rnd, count, steps, colors, shape, forbidden, neighbor):
    found = []
    for _ in range(500):
        cells = place(rnd, shape) if shape else walk(rnd, rnd.randint(1, 9))
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
    """The primitives of an episode, whose queries are not needed to learn."""
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
        made = {}
        for role in range(3):
            got = pairs(
                rnd,
                2,
                [steps[role]],
                [color] if role == 1 else free,
                shape if role == 0 else None,
                None if role == 0 else shape,
                neighbor if role == 2 else None,
            )
            if got is None:
                break
            made[role,] = got
        else:
            return steps, made, []


seed, steps = int(sys.argv[1]), int(sys.argv[2])
known, unseen = split(seed)
rnd = random.Random(seed)
D = dict(train=[episode(rnd, known, 1) for _ in range(2000)], test=[episode(rnd, unseen) for _ in range(300)])
rnd = random.Random(1000 + seed)
D["more"] = [studies(rnd, known) for _ in range(10000)]
print([sorted(each) for each in unseen], "made in", time.process_time(), "CPU s", flush=True)
MOST, REACH, H, Z = 18, 9, 192, 32
W = 2 * REACH + 1


def tokens(objects):
    """Cells relative to the box of each object, int[n, MOST, 4], and which slots hold one."""
    place = np.zeros((len(objects), MOST, 2), np.int32)
    there = np.zeros((len(objects), MOST), bool)
    box = np.zeros((len(objects), 4), np.int32)
    for i, (cells, _) in enumerate(objects):
        cells = sorted(cells)[:MOST]
        place[i, : len(cells)] = cells
        there[i, : len(cells)] = True
        rows, cols = zip(*cells)
        box[i] = min(rows), max(rows), min(cols), max(cols)
    return place, there, box


def grids(objects):
    g = np.zeros((len(objects), SIDE, SIDE), np.float32)
    for i, (cells, _) in enumerate(objects):
        for r, c in cells:
            g[i, r, c] = 1
    return g


colors = lambda objects: np.array([c for _, c in objects], np.int32)


def seen(before, after):
    """What a pair shows: the object in its box, and where its cells are after, around the corner of the box before."""
    _, _, box = tokens(before)
    a, b = np.zeros((len(before), SIDE, SIDE), np.float32), np.zeros((len(before), W, W), np.float32)
    for i, ((cells, _), (cells2, _)) in enumerate(zip(before, after)):
        for r, c in cells:
            a[i, r - box[i, 0], c - box[i, 2]] = 1
        for r, c in cells2:
            b[i, np.clip(r - box[i, 0] + REACH, 0, W - 1), np.clip(c - box[i, 2] + REACH, 0, W - 1)] = 1
    hot = lambda o: np.eye(10, dtype=np.float32)[colors(o)]
    return np.concatenate([a.reshape(len(before), -1), b.reshape(len(before), -1), hot(before), hot(after)], 1)


def init(key):
    sizes = dict(
        e1=(SIDE * SIDE + W * W + 20, H),
        e2=(H, Z),
        f1=(4 * SIDE + Z, H),
        f2=(H, H),
        f3=(H, 4 * W + 1),
        c1=(10 + Z, 64),
        c2=(64, 10),
    )
    keys = jax.random.split(key, len(sizes))
    return {n: (jax.random.normal(k, s) * s[0] ** -0.5, jnp.zeros(s[1])) for k, (n, s) in zip(keys, sizes.items())}


lin = lambda p, n, x: x @ p[n][0] + p[n][1]


def code(p, shown):
    return lin(p, "e2", jax.nn.relu(lin(p, "e1", shown)))  # [..., Z]


def apply(p, z, place, there, box, color):
    """Probability of each cell, [SIDE, SIDE], and of each color."""
    r, c = place[:, 0], place[:, 1]
    hot = lambda x: jax.nn.one_hot(x, SIDE)
    x = jnp.concatenate([hot(r - box[0]), hot(box[1] - r), hot(c - box[2]), hot(box[3] - c), jnp.tile(z, (MOST, 1))], 1)
    h = jax.nn.relu(lin(p, "f1", x))
    h = jax.nn.relu(lin(p, "f2", h))
    out = lin(p, "f3", h)
    moves = jax.nn.softmax(out[:, : 4 * W].reshape(MOST, 2, 2, W), -1)  # token, copy, axis, distance
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
    return -(target * jnp.log(prob) + (1 - target) * jnp.log(1 - prob)).sum() - tint[after]


def loss(p, batch):
    shown, (place, there, box, color, target, after) = batch  # of both pairs, [B, 2, ...]
    z = code(p, shown)[:, ::-1]  # each is answered by the code of the other
    return jax.vmap(jax.vmap(functools.partial(loss_one, p)))(z, place, there, box, color, target, after).mean()


pairs = [(a, b) for _, made, _ in D["train"] + D["more"] for roles in ((0,), (1,), (2,)) for a, b in [made[roles]]]
print(len(pairs), "groups of two pairs", flush=True)
flat = lambda k: [g[i][k] for g in pairs for i in (0, 1)]
before, after = flat(0), flat(1)
two = lambda x: np.asarray(x).reshape(len(pairs), 2, *np.asarray(x).shape[1:])
place, there, box = tokens(before)
data = (two(seen(before, after)), tuple(map(two, (place, there, box, colors(before), grids(after), colors(after)))))
opt = optax.adam(optax.cosine_decay_schedule(3e-3, max(steps, 1)))
p = init(jax.random.key(seed))
s = opt.init(p)


@jax.jit
def step(p, s, batch):
    l, g = jax.value_and_grad(loss)(p, batch)
    u, s = opt.update(g, s)
    return optax.apply_updates(p, u), s, l


rng = np.random.default_rng(seed)
t0 = time.process_time()
for i in range(steps):
    rows = rng.integers(0, len(pairs), 128)
    p, s, l = step(p, s, jax.tree.map(lambda x: x[rows], data))
    if i % 200 == 199:
        print(i + 1, float(l), round(time.process_time() - t0, 1), flush=True)

go = jax.jit(jax.vmap(functools.partial(apply, p), (0, 0, 0, 0, 0)))


def run(z, objects):
    """Apply an operation to many objects."""
    prob, tint = go(z, *tokens(objects), colors(objects))
    prob, tint = np.asarray(prob), np.asarray(tint)
    return [
        (frozenset(zip(*(x.tolist() for x in np.nonzero(a > 0.5)))) or frozenset({(0, 0)}), int(b))
        for a, b in zip(prob, tint.argmax(-1))
    ]


def measure(episodes, name):
    zs, asked, wanted = [], [], []
    for _, made, queries in episodes:
        z = []
        for role in range(3):
            b, a = zip(*made[role,])
            z.append(np.asarray(code(p, seen(b, a))).mean(0))
        for q, w in queries:
            zs.append(z)
            asked.append(q)
            wanted.append(w)
    zs = np.array(zs)
    now = asked
    for role in range(3):
        now = run(zs[:, role], now)
    right = [a == b for a, b in zip(now, wanted)]
    print(name, f"{np.mean(right):.4f} of {len(right)}", flush=True)
    one = [
        (a == b)
        for role in range(3)
        for _, made, _ in episodes[:200]
        for a, b in zip(
            run(np.repeat(np.asarray(code(p, seen(*zip(*[made[role,][0]])))), 1, 0), [made[role,][1][0]]),
            [made[role,][1][1]],
        )
    ]
    print("   a primitive told by one example", np.mean(one))
    return zs, asked, wanted, right


measure(D["train"][:300], "known triples")
measure(D["test"], "unseen triples")
print("CPU s", time.process_time())
