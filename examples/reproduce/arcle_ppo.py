"""ARCLE's PPO: three policies for the selection, on tasks of at most 5x5 cells, the answer in sight.

    python examples/reproduce/arcle_ppo.py
    python examples/reproduce/arcle_ppo.py --settings random --policies equivariant --seeds 1   # the shortest

As in ARCLE (arXiv 2407.20806, section 4): fill a box with one of ten colors, or submit; the answer is in the
observation; a reward for each cell that becomes right. Settings: ``random``, a new pair of random 5x5 grids in each
episode, the paper's hardest, and single tasks of ARC-AGI-1. Policies of (color or submit, corner, corner):

    factorized   three independent choices
    sequential   color, then a corner given the color, then the other corner given both
    equivariant  the same, and the network of a color sees which cells have it: colors that change places change nothing

Ours: small networks for each cell instead of transformers, and no auxiliary losses.
"""

import argparse
import functools
import json
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxarc
from jaxarc.evaluation import one_task_per_pair
from jaxarc.wrappers import AutoReset

try:
    import optax
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install optax") from None

SIDE, CELLS, COLORS, WIDTH, SUBMIT = 5, 25, 10, 32, 34
SETTINGS = ("random", "3618c87e", "a79310a0")
POLICIES = ("equivariant", "sequential", "factorized")
REWARD = {"similarity_weight": 5.0, "step_penalty": -0.02, "success_bonus": 1.0, "unsolved_submission_penalty": -0.2}
RULES = {"max_grid_height": SIDE, "max_grid_width": SIDE, "max_episode_steps": 50, "layout": "stacked"}
RULES |= {"selection_format": "bbox", "allowed_operations": (*range(COLORS), SUBMIT), "invalid_action_policy": "noop"}
RULES |= {"reveal_target": True, **REWARD}
NUM_ENVS, NUM_STEPS, EPOCHS, MINIBATCHES, SOLVED, EVERY = 256, 16, 1, 16, 0.95, 5
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.9, 0.9, 0.2, 0.01, 4e-3
RELATIVE = np.subtract.outer(np.arange(CELLS) // SIDE, np.arange(CELLS) // SIDE) * (2 * SIDE - 1)
RELATIVE = RELATIVE + np.subtract.outer(np.arange(CELLS) % SIDE, np.arange(CELLS) % SIDE) + 2 * SIDE * (SIDE - 1)


class Policy(eqx.Module):
    cells: eqx.nn.Linear
    place: jax.Array
    which: eqx.nn.MLP  # color or submit
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    relative: jax.Array  # of the second corner to the first
    value: eqx.nn.MLP
    kind: str = eqx.field(static=True)

    def __init__(self, key: jax.Array, kind: str):
        keys = jax.random.split(key, 6)
        size = 3 if kind == "equivariant" else 22
        self.cells = eqx.nn.Linear(size, WIDTH, key=keys[0])
        self.place = jax.random.normal(keys[1], (CELLS, WIDTH)) * 0.1
        choices = 1 if kind == "equivariant" else COLORS + 1
        self.which = eqx.nn.MLP(2 * WIDTH, choices, WIDTH, 1, key=keys[2])
        self.first = eqx.nn.Linear(WIDTH, 1 if kind != "sequential" else COLORS + 1, key=keys[3])
        self.second = eqx.nn.Linear(WIDTH, 1 if kind != "sequential" else COLORS + 1, key=keys[4])
        self.relative = jnp.zeros((2 * SIDE - 1) ** 2).at[2 * SIDE * (SIDE - 1)].set(3.0)  # one cell comes first
        self.value = eqx.nn.MLP(2 * WIDTH + 1, 2, WIDTH, 1, key=keys[5])
        self.kind = kind

    def __call__(self, observation: jax.Array, key: jax.Array | None, action: jax.Array | None, greedy: bool = False):
        """Return action [3], its log probability, the entropy and the value; without an action one is drawn."""
        grids = observation.reshape(CELLS, 2, 11)
        work, target = grids[:, 0], grids[:, 1]
        right = (work * target).sum(axis=1, keepdims=True)
        pool = lambda features: jnp.concatenate([features.mean(axis=0), features.max(axis=0)])
        if self.kind == "equivariant":  # features of each color [colors, cells, width]
            of_color = jnp.stack([work[:, :COLORS].T, target[:, :COLORS].T], axis=-1)
            seen = jnp.concatenate([of_color, jnp.broadcast_to(right, (COLORS, CELLS, 1))], axis=-1)
            features = jax.nn.relu(seen @ self.cells.weight.T + self.cells.bias + self.place)
            pooled = jax.vmap(pool)(features)
            logits, summary = jax.vmap(self.which)(pooled)[:, 0], pooled.mean(axis=0)
        else:
            seen = jnp.concatenate([work, target], axis=-1)
            features = jax.nn.relu(seen @ self.cells.weight.T + self.cells.bias + self.place)
            summary = pool(features)
            logits = self.which(summary)[:COLORS]
        value, submit = self.value(jnp.append(summary, right.mean()))
        logits = jnp.append(logits, submit - 3.0)  # a submit is rare at first
        keys = [None] * 3 if key is None else jax.random.split(key, 3)
        pick = lambda logits, key, index: (
            action[index] if action is not None else logits.argmax() if greedy else jax.random.categorical(key, logits)
        )
        color = pick(logits, keys[0], 0)
        cells = features[jnp.minimum(color, COLORS - 1)] if self.kind == "equivariant" else features
        head = color if self.kind == "sequential" else 0
        corner = cells @ self.first.weight[head] + self.first.bias[head]
        first = pick(corner, keys[1], 1)
        other = cells @ self.second.weight[head] + self.second.bias[head]
        if self.kind != "factorized":  # a factorized choice does not know the first corner
            other = other + self.relative[jnp.asarray(RELATIVE)[first]] + 3.0 * cells @ cells[first] / WIDTH
        second = pick(other, keys[2], 2)
        parts = [jax.nn.log_softmax(part) for part in (logits, corner, other)]
        selects = jnp.array([1.0, 0.0, 0.0]) + (color < COLORS) * jnp.array([0.0, 1.0, 1.0])
        chosen = jnp.stack([part[index] for part, index in zip(parts, (color, first, second), strict=True)])
        entropy = jnp.stack([-(jnp.exp(part) * part).sum() for part in parts])
        return jnp.stack([color, first, second]), (chosen * selects).sum(), (entropy * selects).sum(), value


def structured(action: jax.Array) -> jaxarc.BboxAction:
    color, first, second = action.astype(jnp.int32)
    operation = jnp.where(color < COLORS, color, SUBMIT)
    return jaxarc.BboxAction(operation, first // SIDE, first % SIDE, second // SIDE, second % SIDE)


def train(kind: str, env: Any, params: Any, test: tuple[Any, Any], num_updates: int, key: jax.Array) -> jax.Array:
    """Learn by PPO, and return the share of test episodes that the best action solves, after every EVERY updates."""
    key_model, key_reset, key_test, key = jax.random.split(key, 4)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(LEARNING_RATE, b2=0.99))
    arrays, static = eqx.partition(Policy(key_model, kind), eqx.is_array)
    states, observations = jax.vmap(env.reset, (0, None))(jax.random.split(key_reset, NUM_ENVS), params)
    act = lambda arrays, observation, key: eqx.combine(arrays, static)(observation, key, None)

    def step(carry: tuple, key: jax.Array) -> tuple[tuple, tuple]:
        arrays, states, observations = carry
        draws = jax.vmap(act, (None, 0, 0))(arrays, observations, jax.random.split(key, NUM_ENVS))
        actions, log_prob, _, values = draws
        stepped = jax.vmap(env.step, (0, 0, None))(states, jax.vmap(structured)(actions), params)
        states, following, rewards, dones, info = stepped
        last = jax.vmap(act, (None, 0, None))(arrays, info["final_observation"], jax.random.key(0))[3]
        sample = observations, actions, log_prob, values, rewards, dones, last * info["discount"]
        return (arrays, states, following), sample

    def loss(arrays: Any, batch: tuple) -> jax.Array:
        observations, actions, old, advantage, target = batch
        replay = lambda observation, action: eqx.combine(arrays, static)(observation, None, action)
        _, log_prob, entropy, values = jax.vmap(replay)(observations, actions)
        ratio = jnp.exp(log_prob - old)
        surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
        return -surrogate + 0.25 * ((values - target) ** 2).mean() - ENTROPY * entropy.mean()

    def update(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        arrays, optimizer_state, states, observations = carry
        key_steps, key_order = jax.random.split(key)
        start = arrays, states, observations
        (_, states, observations), samples = jax.lax.scan(step, start, jax.random.split(key_steps, NUM_STEPS))
        seen, actions, log_prob, values, rewards, dones, next_values = samples

        def backward(later: jax.Array, sample: tuple) -> tuple[jax.Array, jax.Array]:
            value, reward, done, next_value = sample
            advantage = reward + GAMMA * next_value - value + GAMMA * LAMBDA * (1 - done) * later
            return advantage, advantage

        zeros = jnp.zeros(NUM_ENVS)
        _, advantages = jax.lax.scan(backward, zeros, (values, rewards, dones, next_values), reverse=True)
        targets = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
        batch = seen, actions, log_prob, advantages, targets
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)
        shuffle = lambda key: jax.random.permutation(key, NUM_ENVS * NUM_STEPS).reshape(MINIBATCHES, -1)
        order = jax.vmap(shuffle)(jax.random.split(key_order, EPOCHS)).reshape(EPOCHS * MINIBATCHES, -1)

        def descend(carry: tuple, indices: jax.Array) -> tuple[tuple, None]:
            gradient = jax.grad(loss)(carry[0], jax.tree.map(lambda leaf: leaf[indices], flat))
            changes, optimizer_state = optimizer.update(gradient, carry[1])
            return (optax.apply_updates(carry[0], changes), optimizer_state), None

        (arrays, optimizer_state), _ = jax.lax.scan(descend, (arrays, optimizer_state), order)
        return (arrays, optimizer_state, states, observations), None

    def point(carry: tuple, keys: jax.Array) -> tuple[tuple, jax.Array]:
        carry, _ = jax.lax.scan(update, carry, keys)
        return carry, score(carry[0])

    def score(arrays: Any) -> jax.Array:
        best = lambda observation, _: eqx.combine(arrays, static)(observation, None, None, greedy=True)[0]
        return share_solved(best, test, key_test, key_test)  # the best action needs no key

    start = arrays, optimizer.init(arrays), states, observations
    keys = jax.random.split(key, num_updates).reshape(-1, EVERY)
    return jax.lax.scan(point, start, keys)[1]


def by_chance(_: jax.Array, key: jax.Array) -> jax.Array:
    return jax.random.randint(key, (3,), 0, jnp.array([COLORS + 1, CELLS, CELLS]))


def share_solved(act: Any, test: tuple[Any, Any], key_reset: jax.Array, key_act: jax.Array) -> jax.Array:
    """Play test episodes, of a single task each pair once, and return the share that is solved."""
    env, params = test
    count = NUM_ENVS if params.tasks.num_tasks == 1 else params.tasks.num_tasks
    which = jnp.arange(count) % params.tasks.num_tasks
    start = jax.vmap(env.reset, (0, None, 0))(jax.random.split(key_reset, count), params, which)

    def play(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        actions = jax.vmap(structured)(jax.vmap(act)(carry[1], jax.random.split(key, count)))
        return jax.vmap(env.step, (0, 0, None))(carry[0], actions, params)[:2], None

    keys = jax.random.split(key_act, params.config.environment.max_episode_steps)
    return jax.lax.scan(play, start, keys)[0][0].is_solved.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), help="random, or ids of tasks of ARC-AGI-1")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--updates", type=int, default=25, help=f"each of {NUM_ENVS * NUM_STEPS:,} steps")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for setting in options.settings:
        if setting == "random":
            tasks = jaxarc.tasks.procedural.procedural_tasks("random", (SIDE, SIDE), num_train=1, side=(SIDE, SIDE))
        else:
            tasks = one_task_per_pair(jaxarc.load_tasks("arc-agi-1/training").select([setting]))
        env, params = jaxarc.make(tasks, **RULES, start_grid="partial")
        test = jaxarc.make(tasks, **RULES)
        tries = jax.vmap(jax.random.key)(jnp.arange(20))
        random = float(jax.jit(jax.vmap(functools.partial(share_solved, by_chance, test)))(tries, tries).mean())
        print(f"{setting}: random actions solve {100 * random:.1f} %")
        for kind in options.policies:
            num_updates = max(1, options.updates // EVERY) * EVERY
            learn = jax.vmap(functools.partial(train, kind, AutoReset(env), params, test, num_updates))
            began = time.process_time()
            curve = np.asarray(jax.jit(learn)(jax.random.split(jax.random.key(0), options.seeds)))
            seconds = round(time.process_time() - began, 1)
            steps = [(int(np.argmax(seed >= SOLVED)) + 1) * EVERY * NUM_ENVS * NUM_STEPS for seed in curve]
            steps = [number if (seed >= SOLVED).any() else None for number, seed in zip(steps, curve, strict=True)]
            row = {"setting": setting, "policy": kind, "solved": curve.round(4).tolist(), "steps": steps}
            row["random"] = random
            rows.append({**row, "cpu_seconds": seconds})
            last = [round(100 * float(seed[-1]), 1) for seed in curve]
            print(f"{setting}, {kind}: {last} % solved at the end, {SOLVED:.0%} after {steps} steps, {seconds} s")
            if options.json:
                about = {"steps_a_seed": num_updates * NUM_ENVS * NUM_STEPS, "seeds": options.seeds}
                options.json.write_text(json.dumps({**about, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
