"""Learning from recorded traces alone: cloning, return-conditioned cloning, and implicit Q-learning (IQL).

    jaxarc tasks download mini-arc
    python examples/reproduce/offline.py

As in SOLAR (arXiv 2410.11324) and ARCTraj (arXiv 2511.11079), an agent learns from sessions and plays tasks that are
held out. The sessions are the painter's, on the pairs of the training tasks with points; half of them are spoiled: each
action is replaced by a random one with a chance of SPOILED, so that many end in a wrong submit, as SOLAR's do. The
answer is in sight. Methods:

    cloning      imitates all sessions
    best         imitates those that end in a right submit
    returns      imitates all, given whether the session ends right, and plays given that it does: what a decision
                 transformer conditions on, without a transformer, since a state here holds all that counts
    iql          Kostrikov et al., arXiv 2110.06169: Q by expectiles of the sessions, and imitation weighted by it
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
from jaxarc.traces import record_traces

try:
    import optax
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install optax") from None

METHODS = ("cloning", "best", "returns", "iql")
SIDE, WIDTH, HELD_OUT, SPOILED, MAX_ACTIONS = 5, 32, 30, 0.3, 20
BATCH, LEARNING_RATE, GAMMA, EXPECTILE, TEMPERATURE = 256, 3e-3, 0.95, 0.8, 3.0


class Network(eqx.Module):
    """Features of each cell, which know the mean of all, and from them a score of each operation at the cell."""

    cells: eqx.nn.Linear
    place: jax.Array
    mixed: eqx.nn.Linear
    scores: eqx.nn.Linear
    value: eqx.nn.Linear

    def __init__(self, key: jax.Array, channels: int, num_operations: int):
        keys = jax.random.split(key, 5)
        self.cells = eqx.nn.Linear(channels + 1, WIDTH, key=keys[0])
        self.place = jax.random.normal(keys[1], (SIDE * SIDE, WIDTH)) * 0.1
        self.mixed = eqx.nn.Linear(2 * WIDTH, WIDTH, key=keys[2])
        self.scores = eqx.nn.Linear(WIDTH + channels, num_operations, key=keys[3])
        self.value = eqx.nn.Linear(WIDTH, 1, key=keys[4])

    def __call__(self, observation: jax.Array, wanted: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return scores [actions], numbered operation by operation, and the value; ``wanted`` is a return."""
        seen = observation.reshape(SIDE * SIDE, -1)
        inputs = jnp.concatenate([seen, jnp.full((SIDE * SIDE, 1), wanted)], axis=1)
        features = jax.nn.relu(inputs @ self.cells.weight.T + self.cells.bias + self.place)
        around = jnp.broadcast_to(features.mean(axis=0), features.shape)
        features = jax.nn.relu(jnp.concatenate([features, around], axis=1) @ self.mixed.weight.T + self.mixed.bias)
        scores = jnp.concatenate([features, seen], axis=1) @ self.scores.weight.T + self.scores.bias
        return scores.T.ravel(), self.value(features.max(axis=0))[0]


class Transitions(NamedTuple):
    observation: jax.Array  # bool, as it is one-hot
    action: jax.Array
    reward: jax.Array  # 1 for a right submit
    following: jax.Array
    done: jax.Array
    solves: jax.Array  # whether the session ends in a right submit


def record(env: Any, params: Any, pairs: TaskSet, key: jax.Array) -> tuple[Transitions, np.ndarray]:
    """Record the painter on each pair, spoil a copy, play both, and return their transitions and who solved."""
    recording = record_traces(pairs, Painter(), action_format="point", pairs="train")
    recording.require_complete()
    traces = [recording.trace_of(f"{task.task_id}/train/0").actions for task in pairs]
    submit = int(env.to_flat(jaxarc.PointAction(jnp.int32(34), jnp.int32(0), jnp.int32(0)), params))
    numbers = np.full((2 * len(traces), MAX_ACTIONS), submit, np.int32)
    for row, trace in enumerate(traces):
        operation, *place = np.array([(*action, 0, 0)[:3] for action in trace], np.int32).T
        numbers[row, : len(trace)] = env.to_flat(jaxarc.PointAction(*map(jnp.asarray, (operation, *place))), params)
        numbers[len(traces) + row] = numbers[row]
    key_which, key_random = jax.random.split(key)
    spoiled = jax.random.uniform(key_which, numbers.shape) < SPOILED
    randoms = jax.random.randint(key_random, numbers.shape, 0, env.action_space(params).n)
    is_copy = np.arange(len(numbers))[:, None] >= len(traces)
    actions = jnp.where(is_copy & spoiled & (numbers != submit), randoms, numbers)

    @jax.jit
    def play(actions: jax.Array) -> Any:
        index = jnp.arange(len(actions)) % len(traces)
        start = jax.vmap(env.reset, (0, None, 0))(jax.random.split(key, len(actions)), params, index)

        def step(carry: tuple, actions: jax.Array) -> tuple[tuple, tuple]:
            states, observations = carry
            following = jax.vmap(env.step, (0, 0, None))(states, actions, params)
            right = following[0].is_solved & ~states.done
            pair = observations.astype(bool), following[1].astype(bool)
            return following[:2], (pair[0], actions, right.astype(jnp.float32), pair[1], following[3], ~states.done)

        return jax.lax.scan(step, start, actions.T)

    (states, _), (seen, taken, rewards, following, done, counts) = play(actions)
    solves = jnp.broadcast_to(states.is_solved, counts.shape)
    keep = np.asarray(counts)
    leaves = (jnp.asarray(np.asarray(leaf)[keep]) for leaf in (seen, taken, rewards, following, done, solves))
    return Transitions(*leaves), np.asarray(states.is_solved)


def train(method: str, data: Transitions, network: Any, num_updates: int, key: jax.Array) -> Any:
    """Return the arrays of the policy."""
    key_policy, key_q, key_value, key = jax.random.split(key, 4)
    _, static = eqx.partition(network(key_policy), eqx.is_array)
    start = tuple(eqx.filter(network(k), eqx.is_array) for k in (key_policy, key_q, key_value))
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, num_updates))
    run = lambda arrays, observations, wanted: jax.vmap(eqx.combine(arrays, static))(observations * 1.0, wanted)
    chosen = lambda scores, actions: jnp.take_along_axis(scores, actions[:, None], axis=1)[:, 0]
    chance = data.solves if method == "best" else jnp.ones(len(data.action))

    def loss(arrays: tuple, targets: Any, batch: Transitions) -> jax.Array:
        policy, q, value = arrays
        wanted = batch.solves * (1.0 if method == "returns" else 0.0)
        log_prob = chosen(jax.nn.log_softmax(run(policy, batch.observation, wanted)[0]), batch.action)
        if method != "iql":
            return -log_prob.mean()
        zero = jnp.zeros(BATCH)
        values, later = run(value, batch.observation, zero)[1], run(value, batch.following, zero)[1]
        known = chosen(run(targets, batch.observation, zero)[0], batch.action)
        gap = known - values
        of_value = (jnp.where(gap > 0, EXPECTILE, 1 - EXPECTILE) * gap**2).mean()
        goal = batch.reward + GAMMA * (1 - batch.done) * jax.lax.stop_gradient(later)
        of_q = ((chosen(run(q, batch.observation, zero)[0], batch.action) - goal) ** 2).mean()
        weight = jnp.minimum(jnp.exp(TEMPERATURE * jax.lax.stop_gradient(gap) / 0.2), 20.0)
        return of_value + of_q - (weight * log_prob).mean()

    def update(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        arrays, targets, optimizer_state = carry
        drawn = jax.random.choice(key, len(data.action), (BATCH,), p=chance / chance.sum())
        gradient = jax.grad(loss)(arrays, targets, jax.tree.map(lambda leaf: leaf[drawn], data))
        changes, optimizer_state = optimizer.update(gradient, optimizer_state)
        arrays = optax.apply_updates(arrays, changes)
        targets = jax.tree.map(lambda old, new: 0.98 * old + 0.02 * new, targets, arrays[1])
        return (arrays, targets, optimizer_state), None

    first = start, start[1], optimizer.init(start)
    return jax.lax.scan(update, first, jax.random.split(key, num_updates))[0][0][0]


def solved_pairs(model: Network, env: Any, params: Any, wanted: float, noise: float = 0.0) -> jax.Array:
    """Play every pair once by the best action, or with much noise by random ones, and return which are solved."""
    count = params.tasks.num_tasks
    start = jax.vmap(env.reset, (0, None, 0))(jax.random.split(jax.random.key(0), count), params, jnp.arange(count))

    def step(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        scores, _ = jax.vmap(model, (0, None))(carry[1], wanted)
        scores += noise * jax.random.gumbel(key, scores.shape)
        return jax.vmap(env.step, (0, 0, None))(carry[0], scores.argmax(axis=1).astype(jnp.int32), params)[:2], None

    keys = jax.random.split(jax.random.key(1), params.config.environment.max_episode_steps)
    return jax.lax.scan(step, start, keys)[0][0].is_solved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tasks", default="mini-arc", help="or a folder; arc-agi-1/training:max_side=5 is always here")
    parser.add_argument("--updates", type=int, default=2000, help=f"each of {BATCH} transitions")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        tasks = TaskSet("by title", sorted(jaxarc.load_tasks(options.tasks), key=lambda t: f"{t.title}_{t.task_id}"))
    except (jaxarc.datasets.UnknownDatasetError, jaxarc.datasets.NotInstalledError) as error:
        raise SystemExit(f"{error}; or take --tasks arc-agi-1/training:max_side=5") from None
    held_out = tasks.sample(0, min(HELD_OUT, len(tasks) // 4))
    seen, unseen = (one_task_per_pair(part) for part in (tasks.select(without=held_out.task_ids), held_out))
    rules = {"max_grid_height": SIDE, "max_grid_width": SIDE, "max_episode_steps": MAX_ACTIONS, "layout": "stacked"}
    rules |= {"selection_format": "point", "flat_actions": True, "invalid_action_policy": "noop", "reveal_target": True}
    rules |= {"include_clipboard": True}
    env, params = jaxarc.make(seen, **rules)
    _, measured = jaxarc.make(TaskSet("seen, then unseen", (*seen, *unseen)), **rules)
    data, solves = record(env, params, seen, jax.random.key(7))
    print(f"{len(solves)} sessions, {int(solves.sum())} of them right, {len(data.action):,} actions")
    channels = data.observation.shape[-1]
    network = lambda key: Network(key, channels, env.action_space(params).n // SIDE**2)
    static = eqx.partition(network(jax.random.key(0)), eqx.is_array)[1]
    about = {"sessions": len(solves), "right": int(solves.sum()), "actions": len(data.action)}
    about |= {"pairs": [len(seen), len(unseen)], "seeds": options.seeds, "updates": options.updates}
    share = lambda solved: solved.mean(axis=-1).tolist()
    shares_of = lambda solved: {"seen": share(solved[..., : len(seen)]), "unseen": share(solved[..., len(seen) :])}
    about["random"] = shares_of(solved_pairs(network(jax.random.key(0)), env, measured, 0.0, noise=1e6))
    print("random actions: {:.1%} of the seen, {:.1%} of the unseen pairs".format(*about["random"].values()))
    rows = []
    for method in options.methods:
        wanted = 1.0 if method == "returns" else 0.0

        def run(key: jax.Array, method: str = method, wanted: float = wanted) -> jax.Array:
            trained = eqx.combine(train(method, data, network, options.updates, key), static)
            return solved_pairs(trained, env, measured, wanted)

        began = time.process_time()
        shares = shares_of(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), options.seeds)))
        rows.append({"method": method, **shares, "cpu_seconds": round(time.process_time() - began, 1)})
        text = ["/".join(f"{100 * share:.1f}" for share in part) for part in shares.values()]
        print(f"{method}: {text[0]} % of {len(seen)} seen, {text[1]} % of {len(unseen)} unseen pairs solved")
        if options.json:
            options.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
