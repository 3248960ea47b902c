"""``jaxarc profile``: where the time of a rollout goes, and the memory of a training run."""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jax
import typer
from jax.stages import Compiled
from jaxtyping import Array, Float32
from rich.console import Console
from rich.table import Table

from jaxarc.cli.console import DatasetArgument, JsonOption, escape, print_json
from jaxarc.config.environment import SELECTION_FORMATS
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.files import write_whole
from jaxarc.parallel import available_memory, program_memory, require_memory, size_of
from jaxarc.profiling import OperationCost, OperationCosts, costliest_operations, profile_fn, trace
from jaxarc.registration import make
from jaxarc.types import Observation
from jaxarc.wrappers import AutoReset

app = typer.Typer(help="Measure where time and memory go.", no_args_is_help=True, add_completion=False)


@app.callback()
def profile() -> None:
    """Measure where time and memory go."""


_ENV = AutoReset(ArcEnvironment())
_GROWTH = 4.0  # memory of a rollout over that of its first states
_COMPILED_NAME = "rollout.hlo.txt"
_LAYOUT = re.compile(r"\{[^}]*\}|/\*.*?\*/")  # of a shape in HLO: s8[32,900]{1,0}

Carry = tuple[ArcEnvState, Observation]


@app.command()
def rollout(
    dataset: DatasetArgument = "arc-agi-1/training",
    selection_format: Annotated[str, typer.Option("--format", help=f"{', '.join(SELECTION_FORMATS)}.")] = "bbox",
    num_envs: Annotated[int, typer.Option(min=1, help="Number of environments.")] = 1024,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each environment in the call that is traced.")] = 50,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the trace; made when missing.")] = Path(
        "runs/profile"
    ),
    top: Annotated[int, typer.Option(min=1, help="Operations to list.")] = 10,
) -> None:
    """Trace random play in one compiled call, and list the operations that take the time.

    Examples:
        jaxarc profile rollout --num-envs 4096 --top 20
        jaxarc profile rollout --format mask --output runs/profile
    """
    console = Console()
    _, params = make(dataset, selection_format=selection_format, invalid_action_policy="noop")
    key_reset, key_actions = jax.random.split(jax.random.key(0))
    free = available_memory()
    keys = jax.random.split(key_reset, num_envs)
    require_memory(num_envs, size_of(jax.eval_shape(_start, keys, params)), free, growth=_GROWTH)
    carry = _start(keys, params)
    console.print(f"Compiling a rollout of {num_envs:,} environments × {steps:,} steps ...", highlight=False)
    play = _play.lower(carry, key_actions, params, num_envs, steps).compile()
    require_memory(num_envs, program_memory(play), free)
    untraced = profile_fn(lambda args: play(*args), (carry, key_actions, params), 2, 5)["median"]
    with trace(output):
        jax.block_until_ready(play(carry, key_actions, params))
    text = _text_of(play)
    write_whole(output / _COMPILED_NAME, text.encode())
    costs = costliest_operations(output, text, top)
    console.print(_kernel_table(costs, num_envs, steps))
    if costs.containers:
        console.print(_container_table(costs.containers, num_envs, steps))
    console.print(_closing(costs, untraced, num_envs * steps, output), highlight=False, soft_wrap=True)


@app.command()
def memory(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="As of jaxarc train: topic.field=value.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Start from this file instead of configs/: a run's config.json, or what --show printed."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what the memory of a training run is for; its programs are compiled for one device, nothing is trained.

    Examples:
        jaxarc profile memory experiment=small_grids
        jaxarc profile memory surrogate=parent_sets
    """
    from jaxarc.cli.settings import read_any_experiment
    from jaxarc.cli.training_memory import memory_of, memory_table

    reports = memory_of(read_any_experiment(overrides or [], config))
    if as_json:
        print_json({name: {**report._asdict(), "total": report.total} for name, report in reports.items()})
        return
    for name, report in reports.items():
        Console().print(memory_table(name, report))


@jax.jit
def _start(keys: Array, params: EnvParams) -> Carry:
    return jax.vmap(_ENV.reset, (0, None))(keys, params)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _play(carry: Carry, key: Array, params: EnvParams, num_envs: int, steps: int) -> tuple[Carry, Float32[Array, ""]]:
    """Play random actions; the observation is carried along, so that no step can leave it out."""
    space = _ENV.action_space(params)

    def step(carry: Carry, key_actions: Array) -> tuple[Carry, Float32[Array, ""]]:
        actions = jax.vmap(space.sample)(jax.random.split(key_actions, num_envs))
        state, observation, reward, _, _ = jax.vmap(_ENV.step, (0, 0, None))(carry[0], actions, params)
        return (state, observation), reward.sum()

    carry, rewards = jax.lax.scan(step, carry, jax.random.split(key, steps))
    return carry, rewards.sum()


def _text_of(compiled: Compiled) -> str:
    text = compiled.as_text()
    if text is None:
        backend = jax.default_backend()
        raise typer.BadParameter(f"the backend {backend} gives no text of its programs; use cpu, gpu or tpu")
    return text


def _kernel_table(costs: OperationCosts, num_envs: int, steps: int) -> Table:
    table = _table("kernel", "share")
    for cost in costs.kernels:
        _add_row(table, cost, num_envs, steps, f"{cost.seconds / costs.kernel_seconds:.1%}")
    return table


def _container_table(containers: Sequence[OperationCost], num_envs: int, steps: int) -> Table:
    table = _table("container")
    for cost in containers:
        _add_row(table, cost, num_envs, steps)
    return table


def _table(first: str, *more: str) -> Table:
    table = Table()
    table.add_column(first, overflow="fold")
    for name in ("ns", *more, "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("shape", overflow="ellipsis", max_width=17, no_wrap=True)
    table.add_column("source", overflow="fold")
    return table


def _add_row(table: Table, cost: OperationCost, num_envs: int, steps: int, *more: str) -> None:
    nanoseconds = f"{1e9 * cost.seconds / (num_envs * steps):.1f}"
    cells = (cost.name, nanoseconds, *more, f"{cost.calls / steps:.1f}", _LAYOUT.sub("", cost.shape), _source(cost))
    table.add_row(*map(escape, cells))


def _source(cost: OperationCost) -> str:
    """The last two parts of the path of JAX operations, and the line of source."""
    operations = "/".join(cost.op_name.split("/")[-2:])
    return f"{operations} {Path(cost.source_line).name}".strip()


def _closing(costs: OperationCosts, untraced: float, num_steps: int, folder: Path) -> str:
    path = escape(str(folder))
    without, with_trace = (f"{1e9 * seconds / num_steps:,.0f} ns" for seconds in (untraced, costs.kernel_seconds))
    return (
        "ns: per environment and step; calls: per step; source: end of the JAX operation's path and its line.\n"
        "A container lasts as long as what runs inside it.\n"
        f"Without the trace the call took {without} per environment and step; in the trace its {costs.kernel_calls:,} "
        f"kernel calls add up to {with_trace}.\n"
        "Tracing inflates tiny kernels: recording costs about the same for each call, however short it is. Compare "
        "large kernels with one another, and measure a change with [bold]jaxarc rollout[/].\n"
        f"Trace: {path}; compiled program: {path}/{_COMPILED_NAME}\n"
        f"Open it: [bold]xprof --logdir {path}[/] or [bold]tensorboard --logdir {path}[/] (pip install xprof "
        "tensorboard), or drop the newest *.trace.json.gz below it onto https://ui.perfetto.dev"
    )
