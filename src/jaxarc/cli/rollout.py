"""``jaxarc rollout``: how fast the environment is, and how a random policy fares in it."""

import functools
import time
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import typer
from jaxtyping import Array, Float32, Int32
from rich.console import Console
from rich.table import Table

from jaxarc.config.action import SELECTION_FORMATS
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.registration import make
from jaxarc.wrappers import AutoReset, EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState

_STEPS_A_CALL = 50
_ENV = EpisodeStatistics(AutoReset(ArcEnvironment()))


class Totals(NamedTuple):
    episodes: Int32[Array, ""]
    solved: Int32[Array, ""]
    return_sum: Float32[Array, ""]


def rollout(
    dataset: Annotated[str, typer.Option(help="Name of a dataset or path of a folder.")] = "arc-agi-1/training",
    selection_format: Annotated[str, typer.Option("--format", help=f"{', '.join(SELECTION_FORMATS)}.")] = "bbox",
    num_envs: Annotated[int, typer.Option(min=1, help="Environments side by side.")] = 1024,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each environment, rounded up to whole calls.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    max_steps: Annotated[int, typer.Option(min=1, help="Steps after which an episode is cut off.")] = 100,
) -> None:
    """Play random actions, and print steps per second, returns and solved episodes."""
    config = {"selection_format": selection_format, "max_episode_steps": max_steps, "invalid_action_policy": "noop"}
    _, params = make(dataset, **config)
    key_reset, key_actions = jax.random.split(jax.random.key(seed))
    start = time.perf_counter()
    states = _start(jax.random.split(key_reset, num_envs), params)
    keys = jax.random.split(key_actions, -(-steps // _STEPS_A_CALL))
    play = _play.lower(states, keys[0], params, num_envs).compile()
    compiled = time.perf_counter()
    totals = jax.tree.map(jnp.zeros_like, jax.eval_shape(lambda: Totals(jnp.int32(0), jnp.int32(0), jnp.float32(0))))
    for key in keys:
        states, more = play(states, key, params)
        totals = jax.tree.map(jnp.add, totals, more)
    episodes, solved, return_sum = (total.item() for total in totals)
    seconds = time.perf_counter() - compiled
    taken = num_envs * _STEPS_A_CALL * len(keys)
    table = Table("random policy", dataset, show_header=True)
    table.add_row("environments × steps", f"{num_envs:,} × {taken // num_envs:,}")
    table.add_row("steps per second", f"{taken / seconds:,.0f}")
    table.add_row("compilation", f"{compiled - start:.1f} s")
    table.add_row("episodes", f"{episodes:,}")
    table.add_row("mean return", f"{return_sum / episodes:.3f}" if episodes else "no episode ended")
    table.add_row("solved episodes", f"{solved:,}")
    Console().print(table)


@jax.jit
def _start(keys: Array, params: EnvParams) -> StatisticsState:
    return jax.vmap(_ENV.reset, (0, None))(keys, params)[0]


@functools.partial(jax.jit, static_argnames="num_envs")
def _play(states: StatisticsState, key: Array, params: EnvParams, num_envs: int) -> tuple[StatisticsState, Totals]:
    space = _ENV.action_space(params)

    def step(states: StatisticsState, key_actions: Array) -> tuple[StatisticsState, Totals]:
        actions = jax.vmap(space.sample)(jax.random.split(key_actions, num_envs))
        states, _, _, done, info = jax.vmap(_ENV.step, (0, 0, None))(states, actions, params)
        returns = jnp.where(done, info["episode_return"], jnp.float32(0))
        solved = (done & info["success"]).sum(dtype=jnp.int32)
        return states, Totals(done.sum(dtype=jnp.int32), solved, returns.sum())

    states, totals = jax.lax.scan(step, states, jax.random.split(key, _STEPS_A_CALL))
    return states, jax.tree.map(lambda x: x.sum(dtype=x.dtype), totals)
