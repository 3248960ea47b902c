"""A plain PPO as PureJaxRL writes it, with the two usual networks, for whichever environment it is given.

It runs on JaxARC 1.0.3 and on this package alike, so only ``jax`` and ``optax`` are imported here. Rollouts are one
compiled scan. Each minibatch is a compiled call: on XLA's CPU backend the gradient of a convolution inside a compiled
loop is many times slower than outside one, and a call costs little beside a minibatch.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

ROLLOUT_STEPS, NUM_EPOCHS, NUM_MINIBATCHES = 32, 2, 4
GAMMA, LAMBDA, CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT = 0.99, 0.95, 0.2, 0.5, 0.01
LEARNING_RATE, MAX_NORM = 2.5e-4, 0.5
HIDDEN, CHANNELS, NUM_COLORS, NUM_OPERATIONS = 64, 32, 10, 35


class Game(NamedTuple):
    """An environment with box actions, batched; ``carry`` is whatever it needs to go on."""

    start: Callable[[Any], Any]  # key -> carry
    step: Callable[[Any, Any, Any], tuple[Any, Any, Any]]  # carry, int32[B, 5], key -> carry, reward, done
    observe: Callable[[Any], Any]  # carry -> working grid and target as int[B, H, W, 2], -1 as padding
    side: int
    num_envs: int


class Steps(NamedTuple):
    """What a rollout keeps of each step, leaves [S, B, ...]."""

    grids: Any  # int8
    action: Any  # operation, first row and column, second row and column
    log_prob: Any
    value: Any
    reward: Any
    done: Any


def training_sampler(game: Game, network: str) -> Callable[[float], float]:
    """Compile, and return a function that trains for at least so many seconds and tells steps per second."""
    sizes = (NUM_OPERATIONS, *[game.side] * 4)
    key = jax.random.PRNGKey(0)
    weights = make_weights(key, network, game.side, sum(sizes))
    optimizer = optax.chain(optax.clip_by_global_norm(MAX_NORM), optax.adam(LEARNING_RATE, eps=1e-5))
    collect = jax.jit(lambda weights, carry, key: _collect(game, network, sizes, weights, carry, key))

    @jax.jit
    def learn(weights: Any, state: Any, batch: dict[str, Any], part: Any) -> tuple[Any, Any]:
        minibatch = {name: values[part] for name, values in batch.items()}
        return _learn(optimizer, network, sizes, weights, state, minibatch)

    kept = {"weights": weights, "state": optimizer.init(weights), "carry": jax.jit(game.start)(key), "key": key}

    def update() -> None:
        kept["key"], key_steps, key_order = jax.random.split(kept["key"], 3)
        kept["carry"], batch = collect(kept["weights"], kept["carry"], key_steps)
        for key_epoch in jax.random.split(key_order, NUM_EPOCHS):
            order = jax.random.permutation(key_epoch, len(batch["advantage"]))
            for part in jnp.split(order, NUM_MINIBATCHES):
                kept["weights"], kept["state"] = learn(kept["weights"], kept["state"], batch, part)
        jax.block_until_ready(kept["weights"])

    def sample(min_seconds: float) -> float:
        updates, start = 0, time.perf_counter()
        while True:
            update()
            updates, seconds = updates + 1, time.perf_counter() - start
            if seconds >= min_seconds:
                return updates * ROLLOUT_STEPS * game.num_envs / seconds

    update()
    return sample


def make_weights(key: Any, network: str, side: int, num_logits: int) -> dict[str, Any]:
    """Make the weights of an ``mlp``, two layers of 64, or of a ``cnn``, two 3x3 convolutions and one such layer."""
    shapes = {
        "mlp": {"first": (side * side * 2, HIDDEN), "second": (HIDDEN, HIDDEN)},
        "cnn": {
            "first": (3, 3, 2 * NUM_COLORS, CHANNELS),
            "second": (3, 3, CHANNELS, CHANNELS),
            "dense": (side * side * CHANNELS, HIDDEN),
        },
    }[network] | {"heads": (HIDDEN, num_logits + 1)}
    keys = dict(zip(shapes, jax.random.split(key, len(shapes)), strict=True))
    draw = jax.nn.initializers.orthogonal(2.0**0.5)
    return {name: (draw(keys[name], shape), jnp.zeros(shape[-1])) for name, shape in shapes.items()}


def _apply(weights: dict[str, Any], network: str, grids: Any) -> tuple[Any, Any]:
    """Return logits [B, N] and value [B]."""
    dense = lambda name, x: x @ weights[name][0] + weights[name][1]
    if network == "mlp":
        x = grids.reshape(grids.shape[0], -1).astype(jnp.float32) / NUM_COLORS
        x = jnp.tanh(dense("second", jnp.tanh(dense("first", x))))
    else:
        x = jax.nn.one_hot(grids, NUM_COLORS).reshape(*grids.shape[:3], -1)
        for name in ("first", "second"):
            dimensions = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(x, weights[name][0], (1, 1), "SAME", dimension_numbers=dimensions)
            x = jax.nn.relu(x + weights[name][1])
        x = jax.nn.relu(dense("dense", x.reshape(x.shape[0], -1)))
    out = dense("heads", x)
    return out[:, :-1], out[:, -1]


def _score(sizes: tuple[int, ...], logits: Any, action: Any) -> tuple[Any, Any]:
    """Log-probability and entropy of five independent choices."""
    log_prob, entropy, start = 0.0, 0.0, 0
    for part, size in enumerate(sizes):
        logs = jax.nn.log_softmax(logits[:, start : start + size])
        log_prob += jnp.take_along_axis(logs, action[:, part, None], axis=1)[:, 0]
        entropy -= (jnp.exp(logs) * logs).sum(-1)
        start += size
    return log_prob, entropy


def _draw(sizes: tuple[int, ...], logits: Any, key: Any) -> Any:
    ends = [sum(sizes[:part]) for part in range(1, len(sizes))]
    parts, keys = jnp.split(logits, ends, axis=1), jax.random.split(key, len(sizes))
    return jnp.stack([jax.random.categorical(k, part) for k, part in zip(keys, parts, strict=True)], axis=1)


def _collect(game: Game, network: str, sizes: tuple[int, ...], weights: Any, carry: Any, key: Any) -> tuple[Any, Any]:
    """Play, and return the samples with advantages, flat."""

    def step(carry: Any, key: Any) -> tuple[Any, Steps]:
        key_action, key_step = jax.random.split(key)
        grids = game.observe(carry).astype(jnp.int8)
        logits, value = _apply(weights, network, grids)
        action = _draw(sizes, logits, key_action)
        log_prob, _ = _score(sizes, logits, action)
        carry, reward, done = game.step(carry, action, key_step)
        return carry, Steps(grids, action, log_prob, value, reward, done)

    carry, steps = jax.lax.scan(step, carry, jax.random.split(key, ROLLOUT_STEPS))
    _, last_value = _apply(weights, network, game.observe(carry).astype(jnp.int8))

    def look_back(later: tuple[Any, Any], now: Steps) -> tuple[tuple[Any, Any], Any]:
        gain, next_value = later
        going_on = 1.0 - now.done
        gain = now.reward + GAMMA * next_value * going_on - now.value + GAMMA * LAMBDA * going_on * gain
        return (gain, now.value), gain

    start = (jnp.zeros_like(last_value), last_value)
    _, advantage = jax.lax.scan(look_back, start, steps, reverse=True)
    batch = {"grids": steps.grids, "action": steps.action, "log_prob": steps.log_prob, "advantage": advantage}
    batch["target"] = advantage + steps.value
    return carry, {name: values.reshape(-1, *values.shape[2:]) for name, values in batch.items()}


def _learn(
    optimizer: Any, network: str, sizes: tuple[int, ...], weights: Any, state: Any, batch: Any
) -> tuple[Any, Any]:
    def loss(weights: Any) -> Any:
        logits, value = _apply(weights, network, batch["grids"])
        log_prob, entropy = _score(sizes, logits, batch["action"])
        ratio = jnp.exp(log_prob - batch["log_prob"])
        advantage = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
        return (VALUE_WEIGHT * (value - batch["target"]) ** 2 - gain - ENTROPY_WEIGHT * entropy).mean()

    change, state = optimizer.update(jax.grad(loss)(weights), state, weights)
    return optax.apply_updates(weights, change), state
