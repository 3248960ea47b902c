"""``jaxarc tasks generate rules``: task sets of rules that are drawn at random, in the data folder."""

from typing import Annotated, Final

import numpy as np
import typer

from jaxarc.cli.console import progress_bar
from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.datasets.catalogue import load_tasks
from jaxarc.datasets.installed import Label, install_grids, installed_path
from jaxarc.jobs import host_cores

app = typer.Typer(help="Generate tasks into the data folder.", no_args_is_help=True, add_completion=False)
_SOURCE: Final = "arc-agi-1/training"
_MOST: Final = 10_000_000


@app.callback()
def generate() -> None:
    """Generate tasks into the data folder, where they are found by name."""


@app.command()
def rules(
    name: Annotated[str, typer.Argument(help="What to call the set: rules/NAME.", show_default=False)],
    count: Annotated[int, typer.Option(min=1, max=_MOST, help="Different rules.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Of the draws.")] = 0,
    canvas: Annotated[int, typer.Option(min=3, max=MAX_GRID_SIZE, help="The largest side of a grid.")] = 10,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes side by side. Default: one for each core.", show_default=False)
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a set of this name that is there.")] = False,
) -> None:
    """Draw tasks whose rules are programs of one to four functions of the search, no function twice.

    Inputs are those of ARC-AGI-1's training tasks, turned and recolored. Each task has three demonstrations and a test;
    its title is the program, and its id a hash of what the rule does. The same seed gives the same file anywhere.

    Examples:
        jaxarc tasks generate rules small --count 10000
        jaxarc tasks show rules/small
    """
    from jaxarc.search.drawn_rules import NUM_PAIRS, Scenes, draw_rules  # takes a while, and few need it

    full_name = f"rules/{name}"
    try:
        path = installed_path(full_name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from error
    if path.exists() and not replace:
        raise FileExistsError(f"{full_name!r} is there already in {path}; choose another name, or add --replace")
    scenes = Scenes.of([[grid for grid, _ in task.pairs if max(grid.shape) <= canvas] for task in load_tasks(_SOURCE)])
    labels: list[Label] = []
    sizes, cells = [], []
    with progress_bar("rules", total=count, waiting="drawing ...") as show:
        for drawn in draw_rules(scenes, count, canvas, seed, processes or host_cores()):
            labels += [
                Label(f"{number:016x}", program, "", NUM_PAIRS - 1, 1, 0)
                for number, program in zip(drawn.hashes.tolist(), drawn.programs, strict=True)
            ]
            sizes.append(drawn.sizes.reshape(-1, 2).astype(np.int8))
            cells += drawn.cells
            show(len(labels), count)
    file = install_grids(full_name, labels, np.concatenate(sizes), np.concatenate(cells))
    typer.echo(f"{full_name}: {len(labels):,} tasks in {file}")
