"""``jaxarc rollout``: how fast the environment is, and how a random policy fares in it."""

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Annotated

import jax
import typer
from jax.sharding import Mesh
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from jaxarc.config.action import SELECTION_FORMATS
from jaxarc.envs import EnvParams
from jaxarc.parallel import (
    CompiledRollout,
    RandomPolicy,
    Totals,
    compile_rollout,
    data_mesh,
    replicate,
    require_even_split,
    use_host_cores,
)
from jaxarc.registration import make
from jaxarc.wrappers import AutoReset, EpisodeStatistics

_MOST_STEPS_A_CALL = 500  # a fraction of a second, between two moves of the progress bar


def rollout(
    dataset: Annotated[str, typer.Option(help="Name of a dataset or path of a folder.")] = "arc-agi-1/training",
    selection_format: Annotated[str, typer.Option("--format", help=f"{', '.join(SELECTION_FORMATS)}.")] = "bbox",
    num_envs: Annotated[int, typer.Option(min=1, help="Environments side by side.")] = 1024,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each environment, rounded up to whole calls.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    max_steps: Annotated[int, typer.Option(min=1, help="Steps after which an episode is cut off.")] = 100,
    history: Annotated[bool, typer.Option("--history/--no-history", help="Record every action in the state.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Timed runs; the median speed is reported.")] = 5,
    cores: Annotated[
        int | None, typer.Option(min=1, help="CPU cores to use, all by default; no effect on accelerators.")
    ] = None,
) -> None:
    """Play random actions, and print steps per second, returns and solved episodes."""
    mesh = _choose_mesh(num_envs, cores)
    config = {"selection_format": selection_format, "max_episode_steps": max_steps, "history_enabled": history}
    inner, params = make(dataset, **config, invalid_action_policy="noop")
    params = replicate(params, mesh)
    env = EpisodeStatistics(AutoReset(inner))
    policy = RandomPolicy(env.action_space(params))
    num_calls = -(-steps // _MOST_STEPS_A_CALL)
    steps_a_call = -(-steps // num_calls)
    compiled = compile_rollout(env, params, policy, num_envs, steps_a_call, mesh)
    with _progress(num_calls * repeats) as progress:
        task = progress.task_ids[0]
        totals, seconds = _play(
            compiled, params, policy, jax.random.key(seed), num_calls, repeats, lambda: progress.advance(task)
        )
    Console().print(_table(dataset, num_envs, mesh.size, compiled.compile_seconds, totals, seconds))


def _choose_mesh(num_envs: int, cores: int | None) -> Mesh:
    """Use the cores asked for; otherwise as many as can share the environments evenly."""
    try:
        use_host_cores(cores)
    except RuntimeError as error:  # JAX runs already: the command was called from Python
        if cores is not None:
            raise typer.BadParameter(str(error), param_hint="--cores") from None
    mesh = data_mesh()
    if cores is None:
        return data_mesh(max(count for count in range(1, mesh.size + 1) if num_envs % count == 0))
    try:
        require_even_split(num_envs, mesh)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--num-envs") from None
    return mesh


def _play(
    compiled: CompiledRollout,
    params: EnvParams,
    policy: RandomPolicy,
    key: jax.Array,
    num_calls: int,
    repeats: int,
    advance: Callable[[], None],
) -> tuple[Totals, list[float]]:
    """Return the totals of all repeats, and the seconds of each; a repeat goes on where the one before ended."""
    key_first, *keys_left = jax.random.split(key, 1 + repeats * num_calls)
    first = compiled(params, policy, key_first)  # unmeasured: it resets, and touches its memory for the first time
    keys, states = iter(keys_left), jax.block_until_ready(first.states)
    totals, seconds = None, []
    for _ in range(repeats):
        start = time.perf_counter()
        for key_call in itertools.islice(keys, num_calls):
            result = compiled(params, policy, key_call, states)
            states, more = result.states, result.totals
            totals = more if totals is None else totals + more
            advance()
        seconds.append(time.perf_counter() - start)
    assert totals is not None
    return totals, seconds


def _progress(num_calls: int) -> Progress:
    columns = (TextColumn("playing"), BarColumn(), MofNCompleteColumn(), TextColumn("calls"), TimeRemainingColumn())
    console = Console(stderr=True)
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    progress.add_task("playing", total=num_calls)
    return progress


def _table(
    dataset: str, num_envs: int, num_devices: int, compile_seconds: float, totals: Totals, seconds: list[float]
) -> Table:
    steps = totals.steps // len(seconds)
    speeds = sorted(steps / each for each in seconds)
    speed = f"{statistics.median(speeds):,.0f}"
    if len(seconds) > 1:
        speed += f" ({speeds[0]:,.0f} to {speeds[-1]:,.0f})"
    table = Table("random policy", dataset, show_header=True)
    table.add_row("environments × steps", f"{num_envs:,} × {steps // num_envs:,}, {len(seconds)} times")
    table.add_row("devices", f"{num_devices} {jax.default_backend()}")
    table.add_row("steps per second", speed)
    table.add_row("compilation", f"{compile_seconds:.1f} s")
    table.add_row("episodes", f"{totals.episodes:,}")
    mean = "no episode ended"
    if totals.episodes and totals.return_sum is not None:
        mean = f"{totals.return_sum / totals.episodes:.3f}"
    table.add_row("mean return", mean)
    table.add_row("solved episodes", f"{totals.solved:,}")
    return table
