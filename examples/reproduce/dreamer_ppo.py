"""PPO's half of DreamerV3 against PPO: one rule on 3x3 grids, then another rule with what was learned.

    python examples/reproduce/dreamer_ppo.py

As in "Enhancing Analogical Reasoning in ARC via Model-Based RL" (arXiv 2408.14855): five actions on the whole grid (two
rotations, two flips, submit), 1,000 pairs of a rule to learn from, 100 others to test, the answer hidden; how many of
the 100 are right. Grids are random here, as the paper's augmented pairs are not published. The agent sees the grid and
the number of its steps: without the number no memoryless agent can tell a turned grid from one that it has to turn.
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
from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask
from jaxarc.wrappers import AutoReset

try:
    import optax
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install optax") from None

RULES = {"flip": np.fliplr, "rotate": np.rot90, "diagonal": np.transpose}  # the diagonal takes two of the five actions
OPERATIONS = (24, 25, 26, 27, 34)
SOURCES = (None, "flip", "rotate")  # what is learned before the diagonal flip
REWARD = {"similarity_weight": 0.0, "step_penalty": -0.01, "success_bonus": 1.0, "unsolved_submission_penalty": 0.0}
SIDE, MAX_STEPS, NUM_TRAIN, NUM_TEST = 3, 5, 1000, 100
NUM_ENVS, NUM_STEPS, EPOCHS, MINIBATCHES, WIDTH = 64, 8, 4, 4, 64
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.99, 0.95, 0.2, 0.01, 1e-3


def make(rule: str, first: int, count: int) -> tuple[Any, Any]:
    """Make an environment of random pairs of a rule; ``first`` keeps train and test pairs apart."""
    grids = [np.random.default_rng((7, n)).integers(0, 10, (SIDE, SIDE)) for n in range(first, first + count)]
    pairs = [(grid, RULES[rule](grid)) for grid in grids]
    tasks = TaskSet(rule, [RawTask(f"{rule}/{first + n}", (pair,), (pair,)) for n, pair in enumerate(pairs)])
    return jaxarc.make(
        tasks,
        max_grid_height=SIDE,
        max_grid_width=SIDE,
        max_episode_steps=MAX_STEPS,
        selection_format="bbox",
        allowed_operations=OPERATIONS,
        invalid_action_policy="noop",
        grid_format="one_hot",
        layout="flat",
        include_step_count=True,
        **REWARD,
    )


def on_whole_grid(actions: jax.Array) -> jaxarc.BboxAction:
    zeros = jnp.zeros_like(actions)
    return jaxarc.BboxAction(
        jnp.array(OPERATIONS, jnp.int32)[actions], zeros, zeros, zeros + SIDE - 1, zeros + SIDE - 1
    )


def learn(env: Any, params: Any, test: Any, arrays: Any, static: Any, num_updates: int, key: jax.Array) -> tuple:
    """Return the arrays of the network after PPO, and how many test pairs were right after each update."""
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(LEARNING_RATE))
    looping = AutoReset(env)
    key_reset, key = jax.random.split(key)
    states, observations = jax.vmap(looping.reset, (0, None))(jax.random.split(key_reset, NUM_ENVS), params)

    def evaluated(arrays: Any, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
        counted = observations.at[:, 0].mul(MAX_STEPS)  # the number of steps, instead of its share of all
        outputs = jax.vmap(eqx.combine(arrays, static))(counted)
        return jax.nn.log_softmax(outputs[:, :-1]), outputs[:, -1]

    def step(carry: tuple, key: jax.Array) -> tuple[tuple, tuple]:
        arrays, states, observations = carry
        log_probs, values = evaluated(arrays, observations)
        actions = jax.random.categorical(key, log_probs)
        stepped = jax.vmap(looping.step, (0, 0, None))(states, on_whole_grid(actions), params)
        states, following, rewards, dones, info = stepped
        next_values = evaluated(arrays, info["final_observation"])[1] * info["discount"]
        log_prob = jnp.take_along_axis(log_probs, actions[:, None], axis=1)[:, 0]
        return (arrays, states, following), (observations, actions, log_prob, values, rewards, dones, next_values)

    def loss(arrays: Any, batch: tuple) -> jax.Array:
        observations, actions, old, advantage, target = batch
        log_probs, values = evaluated(arrays, observations)
        ratio = jnp.exp(jnp.take_along_axis(log_probs, actions[:, None], axis=1)[:, 0] - old)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1).mean()
        return -surrogate + 0.5 * ((values - target) ** 2).mean() - ENTROPY * entropy

    def update(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
        arrays, optimizer_state, states, observations = carry
        key_steps, key_order = jax.random.split(key)
        start = arrays, states, observations
        (_, states, observations), samples = jax.lax.scan(step, start, jax.random.split(key_steps, NUM_STEPS))
        seen, actions, log_prob, values, rewards, dones, next_values = samples

        def backward(later: jax.Array, sample: tuple) -> tuple[jax.Array, jax.Array]:
            value, reward, done, next_value = sample
            advantage = reward + GAMMA * next_value - value + GAMMA * LAMBDA * (1 - done) * later
            return advantage, advantage

        _, advantages = jax.lax.scan(backward, jnp.zeros(NUM_ENVS), (values, rewards, dones, next_values), reverse=True)
        batch = seen, actions, log_prob, advantages, advantages + values
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)
        shuffle = lambda key: jax.random.permutation(key, NUM_ENVS * NUM_STEPS).reshape(MINIBATCHES, -1)
        order = jax.vmap(shuffle)(jax.random.split(key_order, EPOCHS)).reshape(EPOCHS * MINIBATCHES, -1)

        def descend(carry: tuple, indices: jax.Array) -> tuple[tuple, None]:
            gradient = jax.grad(loss)(carry[0], jax.tree.map(lambda leaf: leaf[indices], flat))
            changes, optimizer_state = optimizer.update(gradient, carry[1])
            return (optax.apply_updates(carry[0], changes), optimizer_state), None

        (arrays, optimizer_state), _ = jax.lax.scan(descend, (arrays, optimizer_state), order)
        return (arrays, optimizer_state, states, observations), count_right(arrays)

    def count_right(arrays: Any) -> jax.Array:
        keys = jax.random.split(jax.random.key(0), NUM_TEST)
        states, observations = jax.vmap(env.reset, (0, None, 0))(keys, test, jnp.arange(NUM_TEST))
        for _ in range(MAX_STEPS):
            actions = evaluated(arrays, observations)[0].argmax(axis=1).astype(jnp.int32)
            states, observations, *_ = jax.vmap(env.step, (0, 0, None))(states, on_whole_grid(actions), test)
        return states.is_solved.sum()

    start = arrays, optimizer.init(arrays), states, observations
    carry, curve = jax.lax.scan(update, start, jax.random.split(key, num_updates))
    return carry[0], curve


def chance(env: Any, test: Any) -> float:
    """Return how many of the test pairs random actions solve, in the mean of 100 tries."""

    def tried(key: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.key(0), NUM_TEST)
        states, _ = jax.vmap(env.reset, (0, None, 0))(keys, test, jnp.arange(NUM_TEST))
        for actions in jax.random.randint(key, (MAX_STEPS, NUM_TEST), 0, len(OPERATIONS)):
            states, *_ = jax.vmap(env.step, (0, 0, None))(states, on_whole_grid(actions), test)
        return states.is_solved.sum()

    return float(jax.jit(jax.vmap(tried))(jax.random.split(jax.random.key(3), 100)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=150, help=f"for a rule, each of {NUM_ENVS * NUM_STEPS} steps")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    env, _ = make("flip", 0, 1)
    size = SIDE * SIDE * 11 + 1
    network = lambda key: eqx.nn.MLP(size, len(OPERATIONS) + 1, WIDTH, 2, jax.nn.tanh, key=key)
    static = eqx.partition(network(jax.random.key(0)), eqx.is_array)[1]
    params = {rule: (make(rule, 0, NUM_TRAIN)[1], make(rule, NUM_TRAIN, NUM_TEST)[1]) for rule in RULES}
    begin = jax.jit(jax.vmap(lambda key: eqx.filter(network(key), eqx.is_array)))
    run = jax.jit(  # one program for all rules: their params have equal shapes
        jax.vmap(
            lambda arrays, key, train, test: learn(env, train, test, arrays, static, options.updates, key),
            in_axes=(0, 0, None, None),
        )
    )
    began, rows = time.process_time(), []
    for source in SOURCES:
        arrays = begin(jax.random.split(jax.random.key(42), options.seeds))
        if source is not None:
            keys = jax.random.split(jax.random.key(1), options.seeds)
            arrays, curve = run(arrays, keys, *params[source])
            rows.append({"rule": source, "after": None, "right": curve.tolist()})
        arrays, curve = run(arrays, jax.random.split(jax.random.key(2), options.seeds), *params["diagonal"])
        rows.append({"rule": "diagonal", "after": source, "right": curve.tolist()})
    random = {rule: chance(env, test) for rule, (_, test) in params.items()}
    for row in rows:
        row["random"] = random[row["rule"]]
        right = np.array(row["right"])
        steps = [
            int(np.argmax(curve >= 95) + 1) * NUM_ENVS * NUM_STEPS if (curve >= 95).any() else None for curve in right
        ]
        row["steps_to_95"] = steps
        name = row["rule"] + (f" after {row['after']}" if row["after"] else "")
        print(f"{name}: {right[:, -1].tolist()} of {NUM_TEST} unseen pairs right, 95 of them after {steps} steps")
    print(f"random actions: {random} of {NUM_TEST} pairs right")
    seconds = round(time.process_time() - began, 1)
    print(f"{seconds} CPU seconds")
    if options.json:
        about = {"steps_a_rule": options.updates * NUM_ENVS * NUM_STEPS, "cpu_seconds": seconds}
        options.json.write_text(json.dumps({**about, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
