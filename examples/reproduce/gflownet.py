"""GFlowNet on ARC: sample solutions of one task in proportion to their reward, by trajectory balance.

    python examples/reproduce/gflownet.py

As in "Solution Augmentation for ARC Problems Using GFlowNet" (TMLR 2025, https://openreview.net/forum?id=ULCOhBgGzy):
one task, five actions on the whole grid (two rotations, two flips, submit), reward 15 for a submit that is right and
1 for one that is wrong. Ours: at most MAX_MOVES moves before the submit, so that all 5,461 sequences can be listed and
the distribution that was learned is compared with the reward's exactly. The objects are sequences, so each has
one way to be built, and the backward policy is 1.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxarc

try:
    import optax
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install optax") from None

TASK = "74dd1130"  # index 178 of the sorted training tasks, the default of the authors' code: transpose a 3x3 grid
OPERATIONS = (24, 25, 26, 27, 34)  # rotate, rotate back, flip left-right, flip up-down, submit
MAX_MOVES, NUM_MOVES = 6, 4
RIGHT, WRONG = 15.0, 1.0  # change one, and see the share of solutions change
BATCH, LEARNING_RATE, EXPLORATION = 256, 2e-3, 0.05


class Flow(eqx.Module):
    policy: eqx.nn.MLP
    log_z: jax.Array

    def __init__(self, key: jax.Array, size: int):
        self.policy = eqx.nn.MLP(size, len(OPERATIONS), 64, 2, key=key)
        self.log_z = jnp.zeros(())

    def __call__(self, grids: jax.Array, moves: jax.Array) -> jax.Array:
        """Return log probabilities of the operations; after the last move only the submit is left."""
        cells = jax.nn.one_hot(grids.reshape(-1), 10).ravel()
        logits = self.policy(jnp.append(cells, moves / MAX_MOVES))
        is_over = (moves >= MAX_MOVES) & (jnp.arange(len(OPERATIONS)) < NUM_MOVES)
        return jax.nn.log_softmax(jnp.where(is_over, -1e9, logits))


def train(env: Any, params: Any, num_updates: int, key: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
    """Learn from BATCH trajectories an update; return the arrays of the flow, and what was sampled."""
    key_model, key = jax.random.split(key)
    first, first_grid = env.reset(jax.random.key(0), params, task_index=0, pair_index=0)
    flow = Flow(key_model, first_grid.size * 10 + 1)
    optimizer = optax.multi_transform(
        {"policy": optax.adam(LEARNING_RATE), "log_z": optax.adam(0.1)},
        lambda flow: eqx.tree_at(
            lambda f: f.log_z, jax.tree.map(lambda _: "policy", eqx.filter(flow, eqx.is_array)), "log_z"
        ),
    )
    arrays, static = eqx.partition(flow, eqx.is_array)
    operations = jnp.array(OPERATIONS, jnp.int32)
    zero = jnp.zeros(BATCH, jnp.int32)
    side = jnp.full(BATCH, first_grid.shape[0] - 1, jnp.int32)

    def sample(arrays: Any, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return actions [S, B], grids [S, B, H, W] and who solved [B]."""

        def step(states: Any, inputs: tuple) -> tuple[Any, tuple]:
            key, moves = inputs
            key_act, key_explore, key_which = jax.random.split(key, 3)
            log_probs = jax.vmap(eqx.combine(arrays, static), (0, None))(states.working_grid, moves)
            explored = jax.random.categorical(key_explore, jnp.where(log_probs < -1e8, -1e9, 0.0))
            actions = jax.random.categorical(key_act, log_probs)
            actions = jnp.where(jax.random.uniform(key_which, (BATCH,)) < EXPLORATION, explored, actions)
            box = jaxarc.BboxAction(operations[actions], zero, zero, side, side)
            following, *_ = jax.vmap(env.step, (0, 0, None))(states, box, params)
            return following, (jnp.where(states.done, -1, actions), states.working_grid)

        states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (BATCH, *leaf.shape)), first)
        steps = jax.random.split(key, MAX_MOVES + 1), jnp.arange(MAX_MOVES + 1)
        states, (actions, grids) = jax.lax.scan(step, states, steps)
        return actions, grids, states.is_solved

    def loss(arrays: Any, actions: jax.Array, grids: jax.Array, solved: jax.Array) -> jax.Array:
        """Trajectory balance: log Z + log P(trajectory) = log R."""
        flow = eqx.combine(arrays, static)
        log_probs = jax.vmap(jax.vmap(flow, (0, None)))(grids, jnp.arange(MAX_MOVES + 1))
        taken = jnp.take_along_axis(log_probs, jnp.maximum(actions, 0)[..., None], axis=-1)[..., 0]
        log_forward = jnp.where(actions >= 0, taken, 0.0).sum(axis=0)
        log_reward = jnp.log(jnp.where(solved, RIGHT, WRONG))
        return ((flow.log_z + log_forward - log_reward) ** 2).mean()

    def update(carry: tuple, key: jax.Array) -> tuple[tuple, dict[str, jax.Array]]:
        arrays, optimizer_state = carry
        actions, grids, solved = sample(arrays, key)
        value, gradient = jax.value_and_grad(loss)(arrays, actions, grids, solved)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state)
        return (optax.apply_updates(arrays, updates), optimizer_state), {
            "loss": value,
            "actions": actions.T.astype(jnp.int8),
            "solved": solved,
        }

    start = arrays, optimizer.init(arrays)
    (arrays, _), history = jax.lax.scan(update, start, jax.random.split(key, num_updates))
    return arrays, history


def every_sequence(grid: np.ndarray, answer: np.ndarray) -> tuple[list[tuple[int, ...]], list[list[np.ndarray]], list]:
    """List all sequences of moves, the grids before each action, and whether a submit after them is right."""
    moves = (lambda g: np.rot90(g, -1), np.rot90, np.fliplr, np.flipud)
    sequences, paths = [()], [[grid]]
    for sequence, path in zip(sequences, paths, strict=True):  # grows while it is read
        if len(sequence) < MAX_MOVES:
            for number, move in enumerate(moves):
                sequences.append((*sequence, number))
                paths.append([*path, move(path[-1])])
    return sequences, paths, [np.array_equal(path[-1], answer) for path in paths]


def total_variation(flow: Flow, sequences: list, paths: list, right: list) -> tuple[float, float]:
    """Return how far the policy's distribution over all sequences is from the reward's, and its share of right ones."""
    probs = jax.jit(jax.vmap(flow))
    states = {(grid.tobytes(), moves): grid for path in paths for moves, grid in enumerate(path)}
    grids, moves = np.stack(list(states.values())), np.array([moves for _, moves in states])
    table = dict(zip(states, np.asarray(probs(jnp.asarray(grids), jnp.asarray(moves))), strict=True))
    log_prob = [
        sum(
            float(table[grid.tobytes(), n][a])
            for n, (grid, a) in enumerate(zip(path, (*sequence, NUM_MOVES), strict=True))
        )
        for sequence, path in zip(sequences, paths, strict=True)
    ]
    learned, rewards = np.exp(log_prob), np.where(right, RIGHT, WRONG)
    return 0.5 * float(np.abs(learned - rewards / rewards.sum()).sum()), float(learned[np.array(right)].sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=2000, help=f"each of {BATCH} trajectories")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    env, params = jaxarc.make(
        TASK,
        max_grid_height=3,
        max_grid_width=3,
        max_episode_steps=MAX_MOVES + 1,
        selection_format="bbox",
        allowed_operations=OPERATIONS,
        invalid_action_policy="noop",
    )
    grid, answer = jaxarc.load_tasks("arc-agi-1/training")[TASK].train[0]
    sequences, paths, right = every_sequence(np.asarray(grid), np.asarray(answer))
    best = sum(np.array(right) * RIGHT) / sum(np.where(right, RIGHT, WRONG))
    learn = jax.jit(jax.vmap(lambda key: train(env, params, options.updates, key)))
    keys = jax.random.split(jax.random.key(0), options.seeds)
    compiled = learn.lower(keys).compile()
    began, cpu = time.perf_counter(), time.process_time()
    flows, history = jax.device_get(jax.block_until_ready(compiled(keys)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    static = eqx.partition(Flow(jax.random.key(0), grid.size * 10 + 1), eqx.is_array)[1]
    rows = []
    for seed in range(options.seeds):
        flow = eqx.combine(jax.tree.map(lambda leaf, seed=seed: leaf[seed], flows), static)
        distance, share = total_variation(flow, sequences, paths, right)
        solutions = history["actions"][seed][history["solved"][seed]]
        found = len(np.unique(solutions, axis=0))
        rows.append({"total_variation": distance, "share_right": share, "distinct_solutions": found})
        print(f"seed {seed}: total variation {distance:.3f}, {100 * share:.1f} % right, {found} distinct solutions")
    total = options.seeds * options.updates * BATCH
    uniform = total_variation(lambda g, m: uniform_policy(m), sequences, paths, right)
    print(f"{total:,} trajectories in {cpu:.1f} CPU seconds, {total / cpu:,.0f} a CPU second")
    print(f"the reward's own share of right: {100 * best:.1f} %, uniform policy: total variation {uniform[0]:.3f}")
    if options.json:
        about = {
            "trajectories_a_seed": options.updates * BATCH,
            "sequences": len(sequences),
            "solutions": sum(right),
            "share_right_of_the_reward": best,
            "uniform": {"total_variation": uniform[0], "share_right": uniform[1]},
            "cpu_seconds": round(cpu, 1),
            "wall_seconds": round(seconds, 1),
            "rows": rows,
        }
        options.json.write_text(json.dumps(about, indent=1) + "\n")


def uniform_policy(moves: jax.Array) -> jax.Array:
    is_over = (moves >= MAX_MOVES) & (jnp.arange(len(OPERATIONS)) < NUM_MOVES)
    return jax.nn.log_softmax(jnp.where(is_over, -1e9, 0.0))


if __name__ == "__main__":
    main()
