"""A decision transformer on recorded sessions, beside cloning: those of the painter, or of people in the O2ARC editor.

    jaxarc tasks download mini-arc
    python examples/reproduce/decision_transformer.py
    python examples/reproduce/decision_transformer.py --sessions FOLDER   # trace_*.json of Mini-ARC's repository
    python examples/reproduce/decision_transformer.py --sessions ARCTraj.csv --tasks arc-agi-1/training:max_side=5

As in ARCTraj (arXiv 2511.11079) and "Unraveling the ARC Puzzle" (arXiv 2306.08204): tokens of return, state and action
of the last steps; it plays given that the return is 1, a right submit. The answer is in sight. Cloning is the same
network with one step and without returns. Half of the painter's sessions are spoiled, as in offline.py. A session of a
person is the grids that it left, each reached by fills of single cells; it begins where it last was the input.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxarc
from jaxarc.datasets import TaskSet
from jaxarc.evaluation import one_task_per_pair
from jaxarc.experts import Painter
from jaxarc.traces import SessionFileError, read_human_sessions, record_traces

try:
    import optax
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install optax") from None

METHODS = {"cloning": 1, "transformer": 6}  # and the steps that are seen
SIDE, CELLS, WIDTH, HEADS, LAYERS, MAX_ACTIONS, BATCH, LEARNING_RATE = 5, 25, 64, 4, 2, 32, 128, 1e-3
HELD_OUT, SPOILED, RESIZE, SUBMIT, CHANNELS, NUM_OPERATIONS = 30, 0.3, 33, 34, 33, 36


class Window(NamedTuple):
    """The last steps [S]; what was before the first step is not ``real``."""

    wanted: jax.Array
    observation: jax.Array
    action: jax.Array
    real: jax.Array


class Transformer(eqx.Module):
    cells: eqx.nn.Linear
    place: jax.Array
    wanted: jax.Array
    state: eqx.nn.Linear
    operations: jax.Array
    corners: jax.Array
    position: jax.Array
    layers: list[tuple]
    scores: eqx.nn.Linear

    def __init__(self, key: jax.Array, context: int):
        keys = jax.random.split(key, 8 + LAYERS)
        drawn = lambda key, *shape: 0.1 * jax.random.normal(key, (*shape, WIDTH))
        self.cells, self.place = eqx.nn.Linear(CHANNELS, WIDTH, key=keys[0]), drawn(keys[1], CELLS)
        self.wanted, self.state = drawn(keys[2], 2), eqx.nn.Linear(2 * WIDTH, WIDTH, key=keys[3])
        self.operations, self.corners = drawn(keys[4], NUM_OPERATIONS), drawn(keys[5], CELLS)
        self.position, norm = drawn(keys[6], context), eqx.nn.LayerNorm(WIDTH)
        attention = lambda key: eqx.nn.MultiheadAttention(HEADS, WIDTH, key=key)
        dense = lambda key: eqx.nn.MLP(WIDTH, WIDTH, 4 * WIDTH, 1, jax.nn.gelu, key=key)
        self.layers = [(norm, attention(key), norm, dense(key)) for key in keys[8:]]
        self.scores = eqx.nn.Linear(2 * WIDTH + CHANNELS, NUM_OPERATIONS, key=keys[7])

    def __call__(self, seen: Window) -> jax.Array:
        """Return scores [S, actions] of what to do in each step, which know the steps before it."""
        count = len(seen.action)
        cells = seen.observation.reshape(count, CELLS, CHANNELS) * 1.0
        features = jax.nn.relu(cells @ self.cells.weight.T + self.cells.bias + self.place)
        state = jax.vmap(self.state)(jnp.concatenate([features.mean(axis=1), features.max(axis=1)], axis=1))
        action = self.operations[seen.action // CELLS] + self.corners[seen.action % CELLS]
        tokens = jnp.stack([self.wanted[seen.wanted], state, action], axis=1) + self.position[:, None]
        tokens = tokens.reshape(3 * count, WIDTH)
        allowed = jnp.tril(jnp.repeat(seen.real, 3) | jnp.eye(3 * count, dtype=bool))
        for norm_attention, attention, norm, dense in self.layers:
            tokens = tokens + attention(*[jax.vmap(norm_attention)(tokens)] * 3, allowed)
            tokens = tokens + jax.vmap(lambda token, norm=norm, dense=dense: dense(norm(token)))(tokens)
        known = jnp.broadcast_to(tokens[1::3, None], features.shape)
        scores = jnp.concatenate([features, cells, known], axis=2) @ self.scores.weight.T + self.scores.bias
        return scores.swapaxes(1, 2).reshape(count, -1)  # actions are numbered operation by operation


def painted(pairs: TaskSet) -> list[tuple[int, list[tuple]]]:
    """Return pair and actions of each session of the painter, and of its spoiled copy."""
    recording = record_traces(pairs, Painter(), action_format="point", pairs="train")
    recording.require_complete()
    right = [(n, list(recording.trace_of(f"{task.task_id}/train/0").actions)) for n, task in enumerate(pairs)]
    draw = np.random.default_rng(7)
    stray = lambda: (int(draw.integers(NUM_OPERATIONS)), *draw.integers(SIDE, size=2).tolist())
    spoiled = lambda action: stray() if action[0] != SUBMIT and draw.random() < SPOILED else action
    return [*right, *((pair, [spoiled(action) for action in actions]) for pair, actions in right)]


def of_people(path: Path, pairs: TaskSet) -> list[tuple[int, list[tuple]]]:
    """Return pair and actions of each session in a file or folder that is on one of these tasks."""
    try:
        read, sessions = list(read_human_sessions(path)), []
    except (OSError, SessionFileError) as error:
        raise SystemExit(f"{error}; the repositories of Mini-ARC and ARCTraj have sessions") from None
    broken = [f"; {session.name}: {session.problem}" for session in read if session.problem]
    if len(broken) == len(read):
        raise SystemExit(f"{path}: no session in a layout of Mini-ARC (*.json) or ARCTraj (*.csv){''.join(broken[:1])}")
    for session in read:
        named = [n for n, pair in enumerate(pairs) if is_of(session.task_id, pair)]
        if session.problem or not named:
            continue
        grids = [session.start, *(step.after for step in session.steps)]
        answers = [n for n in named if np.array_equal(pairs[n].train[0][1], grids[-1])]
        pair = (answers or named)[-1]  # it does not say which test it is about, and tests are the last pairs of a task
        taken = [*edits(np.asarray(pairs[pair].train[0][0]), grids), (SUBMIT, 0, 0)]
        if len(taken) <= MAX_ACTIONS and max(max(grid.shape) for grid in grids) <= SIDE:
            sessions.append((pair, taken))
    print(f"{len(read)} sessions read, {len(broken)} of them broken, {len(sessions)} to learn from")
    if not sessions:
        rule = f"on a task to learn from, on grids of at most {SIDE}x{SIDE}, of at most {MAX_ACTIONS} actions"
        raise SystemExit(f"{path}: {len(read)} sessions, and none is {rule}")
    return sessions


def is_of(name: str, pair: Any) -> bool:
    """Whether a session's task is that of a pair; Mini-ARC puts the title before the id."""
    return f"_{name}".endswith(f"_{pair.task_id.split('/')[0]}")


def edits(grid: np.ndarray, grids: list[np.ndarray]) -> list[tuple[int, int, int]]:
    """List the fills of single cells that lead from a pair's input through the grids of a session."""
    actions = []
    begin = max((n for n, wanted in enumerate(grids) if np.array_equal(wanted, grid)), default=-1) + 1
    for wanted in grids[begin:]:
        if grid.shape != wanted.shape:
            actions.append((RESIZE, wanted.shape[0] - 1, wanted.shape[1] - 1))
            grid = np.pad(grid, (0, SIDE))[: wanted.shape[0], : wanted.shape[1]]
        actions += [(int(wanted[r, c]), int(r), int(c)) for r, c in np.argwhere(grid != wanted)]
        grid = wanted
    return actions


def play(env: Any, params: Any, sessions: list[tuple[int, list[tuple]]]) -> tuple[Window, np.ndarray]:
    """Play the sessions, and return their steps [sessions, S + those before the first], and who solved."""
    filled = [(*taken, *[(SUBMIT,)] * MAX_ACTIONS)[:MAX_ACTIONS] for _, taken in sessions]
    parts = jnp.array([[(*action, 0, 0)[:3] for action in taken] for taken in filled], jnp.int32)
    actions = env.to_flat(jaxarc.PointAction(parts[..., 0], parts[..., 1], parts[..., 2]), params)
    index = jnp.array([pair for pair, _ in sessions])
    start = jax.vmap(env.reset, (None, None, 0))(jax.random.key(0), params, index)

    def step(carry: tuple, actions: jax.Array) -> tuple[tuple, tuple]:
        following = jax.vmap(env.step, (0, 0, None))(carry[0], actions, params)
        return following[:2], (carry[1].astype(bool), ~carry[0].done)

    (states, _), (seen, real) = jax.jit(lambda start: jax.lax.scan(step, start, actions.T))(start)
    wanted = jnp.broadcast_to(states.is_solved[:, None], actions.shape).astype(jnp.int32)
    pad = lambda leaf: jnp.pad(leaf, ((0, 0), (max(METHODS.values()) - 1, 0), *((0, 0),) * (leaf.ndim - 2)))
    return Window(*map(pad, (wanted, seen.swapaxes(0, 1), actions, real.T))), np.asarray(states.is_solved)


def train(data: Window, context: int, num_updates: int, key: jax.Array) -> Transformer:
    key_model, key = jax.random.split(key)
    arrays, static = eqx.partition(Transformer(key_model, context), eqx.is_array)
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, num_updates))
    rows, ends = (jnp.asarray(where) for where in np.nonzero(np.asarray(data.real)))

    def loss(arrays: Any, batch: Window) -> jax.Array:
        log_probs = jax.nn.log_softmax(jax.vmap(eqx.combine(arrays, static))(batch))
        log_prob = jnp.take_along_axis(log_probs, batch.action[..., None], axis=2)[..., 0]
        return -(log_prob * batch.real).sum() / batch.real.sum()

    def update(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        drawn = jax.random.randint(key, (BATCH,), 0, len(rows))
        steps = ends[drawn][:, None] - jnp.arange(context)[::-1]
        batch = jax.tree.map(lambda leaf: leaf[rows[drawn][:, None], steps], data)
        batch = batch if context > 1 else batch._replace(wanted=jnp.zeros_like(batch.wanted))
        changes, state = optimizer.update(jax.grad(loss)(carry[0], batch), carry[1])
        return (optax.apply_updates(carry[0], changes), state), None

    trained, _ = jax.lax.scan(update, (arrays, optimizer.init(arrays)), jax.random.split(key, num_updates))
    return eqx.combine(trained[0], static)


def solved_pairs(model: Transformer, context: int, env: Any, params: Any, noise: float = 0.0) -> jax.Array:
    """Play every pair once by the best action, or with much noise by random ones, and return which are solved."""
    count = params.tasks.num_tasks
    states, observations = jax.vmap(env.reset, (None, None, 0))(jax.random.key(0), params, jnp.arange(count))
    ones = jnp.ones((count, context), jnp.int32)
    window = Window(ones, jnp.zeros((count, context, *observations.shape[1:]), bool), 0 * ones, ones < 1)

    def step(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        states, observations, window = carry
        last = lambda leaf, new: jnp.concatenate([leaf[:, 1:], new[:, None]], axis=1)
        new = Window(ones[:, 0] * (context > 1), observations.astype(bool), 0 * ones[:, 0], ones[:, 0] > 0)
        window = jax.tree.map(last, window, new)
        scores = jax.vmap(model)(window)[:, -1]
        actions = (scores + noise * jax.random.gumbel(key, scores.shape)).argmax(axis=1).astype(jnp.int32)
        states, observations, *_ = jax.vmap(env.step, (0, 0, None))(states, actions, params)
        return (states, observations, window._replace(action=window.action.at[:, -1].set(actions))), None

    keys = jax.random.split(jax.random.key(1), MAX_ACTIONS)
    return jax.lax.scan(step, (states, observations, window), keys)[0][0].is_solved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tasks", default="mini-arc", help="or a folder; arc-agi-1/training:max_side=5 is always here")
    parser.add_argument("--sessions", type=Path, help="of people: a CSV of ARCTraj, a JSON or a folder of Mini-ARC")
    parser.add_argument("--updates", type=int, default=1500, help=f"each of {BATCH} windows")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        tasks = jaxarc.load_tasks(options.tasks)
    except (jaxarc.datasets.UnknownDatasetError, jaxarc.datasets.NotInstalledError) as error:
        raise SystemExit(f"{error}; or take --tasks arc-agi-1/training:max_side=5") from None
    held_out = tasks.sample(0, min(HELD_OUT, len(tasks) // 4))
    seen, unseen = (one_task_per_pair(part) for part in (tasks.select(without=held_out.task_ids), held_out))
    sessions = of_people(options.sessions, seen) if options.sessions else painted(seen)
    rules = {"max_grid_height": SIDE, "max_grid_width": SIDE, "max_episode_steps": MAX_ACTIONS, "layout": "stacked"}
    rules |= {"selection_format": "point", "flat_actions": True, "invalid_action_policy": "noop", "reveal_target": True}
    rules |= {"include_clipboard": True}
    env, params = jaxarc.make(seen, **rules)
    _, measured = jaxarc.make(TaskSet("seen, then unseen", (*seen, *unseen)), **rules)
    data, solves = play(env, params, sessions)
    about = {"sessions": len(solves), "right": int(solves.sum()), "actions": int(data.real.sum())}
    about |= {"pairs": [len(seen), len(unseen)], "seeds": options.seeds, "updates": options.updates}
    print(f"{about['sessions']} sessions, {about['right']} of them right, {about['actions']:,} actions")
    share = lambda solved: solved.mean(axis=-1).tolist()
    shares_of = lambda solved: {"seen": share(solved[..., : len(seen)]), "unseen": share(solved[..., len(seen) :])}
    about["random"] = shares_of(solved_pairs(Transformer(jax.random.key(0), 1), 1, env, measured, noise=1e6))
    print("random actions: {:.1%} of the seen, {:.1%} of the unseen pairs".format(*about["random"].values()))
    rows = []
    for method in options.methods:
        run = lambda key, n=METHODS[method]: solved_pairs(train(data, n, options.updates, key), n, env, measured)
        began = time.process_time()
        shares = shares_of(jax.lax.map(run, jax.random.split(jax.random.key(0), options.seeds)))
        rows.append({"method": method, **shares, "cpu_seconds": round(time.process_time() - began, 1)})
        text = ["/".join(f"{100 * share:.1f}" for share in part) for part in shares.values()]
        print(f"{method}: {text[0]} % of {len(seen)} seen, {text[1]} % of {len(unseen)} unseen pairs solved")
        if options.json:
            options.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
