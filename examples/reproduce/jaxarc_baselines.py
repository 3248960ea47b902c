"""JaxARC's baselines: PPO, PQN and REINFORCE on all of Mini-ARC, the answer in sight.

    jaxarc tasks download mini-arc
    python examples/reproduce/jaxarc_baselines.py

As in github.com/aadimator/jaxarc-baselines, experiments/configs/baseline_ff_*_mini_all_5*k.yaml: points, ten colors,
resize, submit; 512 environments, 512 k steps; rewards "balanced"; the rest is as in Stoix. Different here: 30 of 149
tasks are held out, one small torso serves actor and critic, and it sees neither demonstrations nor input. ``ppo-cells``
is ours: see ROWS.
"""

import argparse
import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

import jaxarc
from jaxarc.datasets import TaskSet
from jaxarc.evaluation import one_task_per_pair
from jaxarc.wrappers import AutoReset

try:
    import optax
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install optax") from None

NUM_ENVS, HELD_OUT, FIRST_SEED, NUM_POINTS, CHANNELS, WIDTH = 512, 30, 42, 10, 16, 128
BALANCED = {"step_penalty": -0.02, "success_bonus": 10.0, "unsolved_submission_penalty": -1.0, "similarity_weight": 1.0}

RULES = {"max_grid_height": 5, "max_grid_width": 5, "max_episode_steps": 100, "layout": "stacked"}
RULES |= {"selection_format": "point", "flat_actions": True, "allowed_operations": (*range(10), 33, 34)}
RULES |= {"invalid_action_policy": "noop", "reveal_target": True}


class Row(NamedTuple):
    rollout: int  # steps of each environment between updates
    epochs: int
    minibatches: int
    learning_rate: float
    lamb: float  # of the lambda return that value, Q and advantage aim at
    gamma: float = 0.99
    head: str = "flat"  # or "cells": the logits of a cell's actions come from the features of that cell
    rules: Any = BALANCED  # or other rewards


ROWS = {
    "ppo": Row(25, 4, 8, 2.5e-4, 0.95),
    "pqn": Row(8, 4, 16, 5e-4, 0.95),
    "reinforce": Row(32, 1, 1, 3e-4, 1.0),
    "ppo-cells": Row(25, 2, 32, 1e-2, 0.9, 0.9, "cells", {"reward": "editing", "unsolved_submission_penalty": -1.0}),
}


class Network(eqx.Module):
    """Two layers for each cell, with an embedding of its place, two dense layers, and the heads."""

    torso: list[eqx.nn.Linear]
    place: jax.Array
    body: list[eqx.nn.Linear]
    actor: eqx.nn.Linear
    critic: eqx.nn.Linear
    head: str = eqx.field(static=True)

    def __init__(self, key: jax.Array, head: str, shape: tuple[int, ...], num_actions: int):
        keys = jax.random.split(key, 6)
        cells = shape[0] * shape[1]
        self.torso = [eqx.nn.Linear(shape[2], CHANNELS, key=keys[0]), eqx.nn.Linear(CHANNELS, CHANNELS, key=keys[1])]
        self.place = jnp.zeros((cells, CHANNELS))
        self.body = [eqx.nn.Linear(cells * CHANNELS, WIDTH, key=keys[2]), eqx.nn.Linear(WIDTH, WIDTH, key=keys[3])]
        size = (CHANNELS + shape[2], num_actions // cells) if head == "cells" else (WIDTH, num_actions)
        self.actor = eqx.nn.Linear(*size, key=keys[4])
        self.critic = eqx.nn.Linear(WIDTH, 1, key=keys[5])
        if head == "cells":  # the last two operations, resize and submit, are rare at first
            self.actor = eqx.tree_at(lambda layer: layer.bias, self.actor, self.actor.bias.at[-2:].add(-3.0))
        self.head = head

    def __call__(self, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return logits (of PQN: Q values) [B, actions] and values [B] of observations [B, H, W, C]."""
        batch, height, width, channels = observations.shape
        cells = observations.reshape(batch, height * width, channels)
        features = jax.nn.silu(dense(self.torso[0], cells) + self.place)
        features = jax.nn.silu(dense(self.torso[1], features))
        hidden = features.reshape(batch, -1)
        for layer in self.body:
            hidden = jax.nn.silu(dense(layer, hidden))
        if self.head == "cells":  # actions are numbered operation by operation, cell by cell
            seen = jnp.concatenate([features, cells], axis=-1)
            logits = dense(self.actor, seen).swapaxes(1, 2).reshape(batch, -1)
        else:
            logits = dense(self.actor, hidden)
        return logits, dense(self.critic, hidden)[:, 0]


dense = lambda layer, x: x @ layer.weight.T + layer.bias
chosen = lambda values, actions: jnp.take_along_axis(values, actions[:, None], axis=1)[:, 0]


class Sample(NamedTuple):
    observation: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    next_value: jax.Array  # of the last state before a reset; 0 after a submit
    success: jax.Array


def train(method: str, env: Any, params: Any, score: Callable, num_steps: int, key: jax.Array) -> dict[str, jax.Array]:
    """Learn, and return a curve of NUM_POINTS points."""
    row, is_q = ROWS[method], method == "pqn"
    key_model, key_reset, key = jax.random.split(key, 3)
    num_updates = max(NUM_POINTS, num_steps // (NUM_ENVS * row.rollout)) // NUM_POINTS * NUM_POINTS
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(row.learning_rate, eps=1e-5))
    model = Network(key_model, row.head, env.observation_space(params).shape, env.action_space(params).n)
    arrays, static = eqx.partition(model, eqx.is_array)
    states, observations = jax.vmap(env.reset, (0, None))(jax.random.split(key_reset, NUM_ENVS), params)

    def evaluated(arrays: Any, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits, values = eqx.combine(arrays, static)(observations)
        return logits, logits.max(axis=-1) if is_q else values

    def step(carry: tuple, key: jax.Array) -> tuple[tuple, Sample]:
        arrays, states, observations, epsilon = carry
        key_act, key_explore, key_which = jax.random.split(key, 3)
        logits, values = evaluated(arrays, observations)
        explored = jax.random.randint(key_explore, (NUM_ENVS,), 0, logits.shape[1])
        greedy = jnp.where(jax.random.uniform(key_which, (NUM_ENVS,)) < epsilon, explored, logits.argmax(axis=1))
        actions = greedy if is_q else jax.random.categorical(key_act, logits)
        log_prob = chosen(jax.nn.log_softmax(logits), actions)
        states, following, rewards, dones, info = jax.vmap(env.step, (0, 0, None))(states, actions, params)
        later = evaluated(arrays, info["final_observation"])[1] * info["discount"]
        sample = Sample(observations, actions, log_prob, values, rewards, dones, later, info["success"])
        return (arrays, states, following, epsilon), sample

    def loss(arrays: Any, batch: Sample, target: jax.Array) -> jax.Array:
        logits, values = evaluated(arrays, batch.observation)
        if is_q:
            return ((chosen(logits, batch.action) - target) ** 2).mean()
        log_probs = jax.nn.log_softmax(logits)
        log_prob = chosen(log_probs, batch.action)
        advantage, value_loss = target - batch.value, ((values - target) ** 2).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1).mean()
        if method == "reinforce":
            return -(log_prob * advantage).mean() + value_loss - 0.001 * entropy
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = jnp.exp(log_prob - batch.log_prob)
        surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.9, 1.1) * advantage).mean()
        return -surrogate + 0.5 * value_loss - 0.01 * entropy

    def learn(flat: tuple, carry: tuple, indices: jax.Array) -> tuple[tuple, None]:
        gradient = jax.grad(loss)(carry[0], *jax.tree.map(lambda x: x[indices], flat))
        updates, optimizer_state = optimizer.update(gradient, carry[1])
        return (optax.apply_updates(carry[0], updates), optimizer_state), None

    def update(carry: tuple, number: jax.Array) -> tuple[tuple, jax.Array]:
        arrays, optimizer_state, states, observations, key = carry
        key, key_steps, key_epochs = jax.random.split(key, 3)
        epsilon = 1.0 - 0.9 * jnp.minimum(2.0 * number / num_updates, 1.0)  # of PQN: from 1 to 0.1 in half the time
        start = arrays, states, observations, epsilon
        (_, states, observations, _), samples = jax.lax.scan(step, start, jax.random.split(key_steps, row.rollout))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (samples, lambda_returns(samples, row)))
        shuffle = lambda key: jax.random.permutation(key, NUM_ENVS * row.rollout)
        order = jax.vmap(shuffle)(jax.random.split(key_epochs, row.epochs)).reshape(row.epochs * row.minibatches, -1)
        learned, _ = jax.lax.scan(functools.partial(learn, flat), (arrays, optimizer_state), order)
        solved = (samples.success & samples.done).sum() / jnp.maximum(samples.done.sum(), 1)
        return (*learned, states, observations, key), jnp.stack([solved, samples.reward.mean()])

    def point(carry: tuple, numbers: jax.Array) -> tuple[tuple, dict[str, jax.Array]]:
        carry, progress = jax.lax.scan(update, carry, numbers)
        shares = dict(zip(("seen", "unseen"), score(eqx.combine(carry[0], static)), strict=True))
        return carry, shares | dict(zip(("episodes_solved", "reward"), progress.mean(axis=0), strict=True))

    start = arrays, optimizer.init(arrays), states, observations, key
    curve = jax.lax.scan(point, start, jnp.arange(num_updates).reshape(NUM_POINTS, -1))[1]
    return {**curve, "steps": (jnp.arange(NUM_POINTS) + 1) * (num_updates // NUM_POINTS * NUM_ENVS * row.rollout)}


def lambda_returns(samples: Sample, row: Row) -> jax.Array:
    def backward(later: jax.Array, sample: Sample) -> tuple[jax.Array, jax.Array]:
        mixed = row.lamb * later + (1 - row.lamb) * sample.next_value
        target = sample.reward + row.gamma * jnp.where(sample.done, sample.next_value, mixed)
        return target, target

    return jax.lax.scan(backward, samples.next_value[-1], samples, reverse=True)[1]


def make_score(env: Any, params: Any, num_seen: int, key: jax.Array | None = None) -> Callable:
    """Return a function that plays every pair once, by the best action or random ones: solved of seen, of unseen."""

    def score(model: Network) -> tuple[jax.Array, jax.Array]:
        start = jax.vmap(env.reset, (None, None, 0))(jax.random.key(0), params, jnp.arange(params.tasks.num_tasks))

        def step(carry: tuple, number: jax.Array) -> tuple[tuple, None]:
            logits = model(carry[1])[0]
            if key is not None:
                logits = jax.random.gumbel(jax.random.fold_in(key, number), logits.shape)
            return jax.vmap(env.step, (0, 0, None))(carry[0], logits.argmax(axis=1), params)[:2], None

        (states, _), _ = jax.lax.scan(step, start, jnp.arange(100))
        return states.is_solved[:num_seen].mean(), states.is_solved[num_seen:].mean()

    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--tasks", default="mini-arc", help="or a folder; arc-agi-1/training:max_side=5 is always here")
    parser.add_argument("--steps", type=int, default=512_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        tasks = TaskSet("by title", sorted(jaxarc.load_tasks(options.tasks), key=lambda t: f"{t.title}_{t.task_id}"))
    except (jaxarc.datasets.UnknownDatasetError, jaxarc.datasets.NotInstalledError) as error:
        raise SystemExit(f"{error}; or take --tasks arc-agi-1/training:max_side=5") from None
    held_out = tasks.sample(0, min(HELD_OUT, len(tasks) // 4))
    train_tasks = tasks.select(without=held_out.task_ids)
    seen, unseen = one_task_per_pair(train_tasks), one_task_per_pair(held_out)
    pairs = TaskSet("seen, then unseen", (*seen, *unseen))
    print(f"{len(train_tasks)} tasks of {len(seen)} pairs to learn, {len(held_out)} of {len(unseen)} held out")
    plain, measured = jaxarc.make(pairs, **RULES)
    score, chance = (make_score(plain, measured, len(seen), key) for key in (None, jax.random.key(1)))
    model = Network(jax.random.key(0), "flat", plain.observation_space(measured).shape, plain.action_space(measured).n)
    random = [float(share) for share in jax.jit(chance)(model)]
    print(f"random actions: {100 * random[0]:.1f} % of the seen, {100 * random[1]:.1f} % of the unseen pairs")
    keys = jax.vmap(jax.random.key)(FIRST_SEED + jnp.arange(options.seeds))
    about = {"tasks": [len(train_tasks), len(held_out)], "pairs": [len(seen), len(unseen)], "random": random}
    rows = {}
    for method in options.methods:
        env, params = jaxarc.make(train_tasks, **RULES, **ROWS[method].rules)
        learn = functools.partial(train, method, AutoReset(env), params, score, options.steps)
        began = time.process_time()
        curve = {name: value.T.tolist() for name, value in jax.device_get(jax.jit(jax.vmap(learn))(keys)).items()}
        rows[method] = {**curve, "cpu_seconds": round(time.process_time() - began, 1)}
        print(f"{method}: unseen pairs solved, of each seed: {curve['unseen'][-1]}, {rows[method]['cpu_seconds']} s")
        if options.json:
            options.json.write_text(json.dumps({**about, "seeds": options.seeds, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
