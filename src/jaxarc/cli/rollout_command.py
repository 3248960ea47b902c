"""``jaxarc rollout``: how fast the environment is, and how a random policy fares in it."""

import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from jaxarc.cli.console import DatasetArgument, JsonOption, number_table, print_json, progress_bar
from jaxarc.config import ParallelConfig
from jaxarc.config.environment_rules import SELECTION_FORMATS
from jaxarc.envs import EnvParams
from jaxarc.files import code_digest
from jaxarc.parallel import (
    CompiledRollout,
    MetricTotals,
    RandomPolicy,
    compile_rollout,
    data_mesh,
    digest,
    distributed_session,
    is_primary,
    replicate,
    require_same,
    use_host_cores,
)
from jaxarc.registration import make
from jaxarc.runs.folder import library_versions
from jaxarc.wrappers import AutoReset, EpisodeStatistics

_CHUNK_STEPS = 500  # a fraction of a second, between two moves of the progress bar


def rollout(
    dataset: DatasetArgument = "arc-agi-1/training",
    selection_format: Annotated[str, typer.Option("--format", help=f"{', '.join(SELECTION_FORMATS)}.")] = "bbox",
    num_envs: Annotated[int, typer.Option(min=1, help="Number of environments.")] = 1024,
    steps: Annotated[int, typer.Option(min=1, help="Steps per environment.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    max_steps: Annotated[int, typer.Option(min=1, help="Step limit of an episode.")] = 100,
    history: Annotated[bool, typer.Option("--history/--no-history", help="Record every action in the state.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Timed runs; the median is printed.")] = 5,
    cores: Annotated[
        int | None, typer.Option(min=1, help="CPU cores to use. Default: all; no effect on accelerators.")
    ] = None,
    multihost: Annotated[
        bool,
        typer.Option("--multihost", help="Run as one of several processes; SLURM sets the options below."),
    ] = False,
    coordinator_address: Annotated[str | None, typer.Option(help="host:port of process 0.")] = None,
    num_processes: Annotated[int | None, typer.Option(help="Number of processes.")] = None,
    process_id: Annotated[int | None, typer.Option(help="Index of this process; process 0 prints.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Play random actions, and print steps per second, returns and solved episodes.

    Examples:
        jaxarc rollout
        jaxarc rollout mini-arc --num-envs 8192 --steps 200 --json
        jaxarc rollout --num-envs 8192 --cores 1 --format point
    """
    try:
        use_host_cores(cores)
    except RuntimeError as error:  # JAX runs already: the command was called from Python
        if cores is not None:
            raise typer.BadParameter(str(error), param_hint="--cores") from None
    processes = ParallelConfig(0, "seeds", multihost, coordinator_address, num_processes, process_id)
    config = {"selection_format": selection_format, "max_episode_steps": max_steps, "history_enabled": history}
    asked = {"DATASET": dataset, "--num-envs": num_envs, "--steps": steps, "--repeats": repeats}
    asked |= {"--seed": seed, **config}
    with distributed_session(processes):
        if multihost:
            require_same({**asked, **library_versions(), "the code of jaxarc": code_digest()})
        inner, params = make(dataset, **config, invalid_action_policy="noop")
        if multihost:
            require_same({"the hash of the tasks": digest(_numbers_of(params))})
        mesh = data_mesh()
        params = replicate(params, mesh)
        env = EpisodeStatistics(AutoReset(inner))
        policy = RandomPolicy(env.action_space(params))
        compiled = compile_rollout(env, params, policy, num_envs, steps, mesh, chunk_steps=_CHUNK_STEPS)
        columns = (MofNCompleteColumn(), TextColumn("steps"), TimeRemainingColumn())
        total = steps * repeats
        with progress_bar("playing", *columns, total=total, is_shown=is_primary()) as show:
            advance = lambda done: show(done, total)
            played = _play(compiled, params, policy, jax.random.key(seed), repeats, advance)
        if is_primary():
            results = _results(dataset, num_envs, mesh.size, compiled.compile_seconds, played)
            if as_json:
                print_json(results)
            else:
                Console().print(_table(results))


def _numbers_of(params: EnvParams) -> list[jax.Array]:
    """Return the arrays that the processes compare: all but random keys."""
    return [leaf for leaf in jax.tree.leaves(params) if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]


class _Played(NamedTuple):
    """The results of all repeats."""

    totals: MetricTotals
    seconds: list[float]  # of each repeat


def _play(
    compiled: CompiledRollout,
    params: EnvParams,
    policy: RandomPolicy,
    key: jax.Array,
    repeats: int,
    advance: Callable[[int], None],
) -> _Played:
    """Play all repeats; each goes on where the one before ended."""
    key_first, *keys = jax.random.split(key, 1 + repeats)
    # Unmeasured: it resets, and touches its memory for the first time.
    states = jax.block_until_ready(next(compiled.chunks(params, policy, key_first)).carry.states)
    totals = None
    seconds = []
    before = 0  # steps of the repeats so far
    for key_repeat in keys:
        start = time.perf_counter()
        note = lambda done, _, before=before: advance(before + done)
        result = compiled(params, policy, key_repeat, states, note, donate_states=True)
        states = result.carry.states
        seconds.append(time.perf_counter() - start)
        totals = result.totals if totals is None else totals + result.totals
        before += result.num_steps
    assert totals is not None
    return _Played(totals, seconds)


def _results(dataset: str, num_envs: int, num_devices: int, compile_seconds: float, played: _Played) -> dict[str, Any]:
    totals, seconds = played
    steps = totals.steps // len(seconds)
    speeds = sorted(steps / each for each in seconds)
    mean_return = None
    if totals.episodes and totals.return_sum is not None:
        mean_return = totals.return_sum / totals.episodes
    return {
        "dataset": dataset,
        "num_envs": num_envs,
        "steps": steps // num_envs,
        "repeats": len(seconds),
        "devices": f"{num_devices} {jax.default_backend()}",
        "steps_per_second": {"median": statistics.median(speeds), "min": speeds[0], "max": speeds[-1]},
        "compile_seconds": compile_seconds,
        "episodes": totals.episodes,
        "mean_return": mean_return,
        "solved_episodes": totals.solved,
    }


def _table(results: dict[str, Any]) -> Table:
    speed = results["steps_per_second"]
    spread = f" ({speed['min']:,.0f} to {speed['max']:,.0f})" if results["repeats"] > 1 else ""
    mean = results["mean_return"]
    table = number_table("random policy", results["dataset"], num_words=2)
    table.add_row("environments × steps", f"{results['num_envs']:,} × {results['steps']:,}, {results['repeats']} times")
    table.add_row("devices", results["devices"])
    table.add_row("steps per second", f"{speed['median']:,.0f}{spread}")
    table.add_row("compilation", f"{results['compile_seconds']:.1f} s")
    table.add_row("episodes", f"{results['episodes']:,}")
    table.add_row("mean return", "no episode ended" if mean is None else f"{mean:.3f}")
    table.add_row("solved episodes", f"{results['solved_episodes']:,}")
    return table
