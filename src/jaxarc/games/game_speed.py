"""How fast a game is: random actions in many copies of it at once, on one device."""

import time
from typing import Final

import jax
import jax.numpy as jnp

from jaxarc.games.engine import GameEnvironment, GameParams

NUM_GAMES: Final = 1024
NUM_STEPS: Final = 500


def measure_speed(env: GameEnvironment, params: GameParams, num_games: int = NUM_GAMES) -> dict[str, float]:
    """Return ``actions_per_second`` and ``compile_seconds`` of ``step_and_reset`` under ``scan``.

    Drawing the actions and every observation count, and RESET is among the actions. The best of three runs is kept.
    """

    @jax.jit
    def play(states, key):
        def step(carry, key):
            states, total = carry
            actions = jax.random.randint(key, (num_games,), 0, env.num_actions)
            states, observations, rewards, _, _ = jax.vmap(env.step_and_reset, (0, 0, None))(states, actions, params)
            # An observation that nobody reads costs nothing, so its sum is part of what is returned.
            seen = observations.sum(dtype=jnp.int32).astype(jnp.float32)
            return (states, total + rewards.sum() + seen), None

        return jax.lax.scan(step, (states, jnp.float32(0)), jax.random.split(key, NUM_STEPS))[0]

    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), num_games), params)
    start = time.perf_counter()
    compiled = play.lower(states, jax.random.key(1)).compile()
    compile_seconds = time.perf_counter() - start
    seconds = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(compiled(states, jax.random.key(1)))
        seconds = min(seconds, time.perf_counter() - start)
    return {"actions_per_second": num_games * NUM_STEPS / seconds, "compile_seconds": compile_seconds}
