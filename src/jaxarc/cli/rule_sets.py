"""``jaxarc tasks generate rules``: task sets of rules that are drawn at random, in the data folder."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import typer

from jaxarc.cli.console import progress_bar
from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.datasets.catalogue import load_tasks
from jaxarc.datasets.installed import Label, install_grids, installed_path
from jaxarc.jobs import host_cores
from jaxarc.jobs.results import Results

if TYPE_CHECKING:
    from jaxarc.search.drawn_rules import DrawnRules

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
    held_out: Annotated[
        int, typer.Option(min=0, max=_MOST, help="Rules of each of NAME-arguments, NAME-compositions, NAME-words.")
    ] = 0,
    replace: Annotated[bool, typer.Option("--replace", help="Replace sets of these names that are there.")] = False,
) -> None:
    """Draw tasks whose rules are programs of one to four functions of the search; no two do the same.

    Inputs are those of ARC-AGI-1's training tasks, turned and recolored. Each task has three demonstrations and a test;
    its title is the program, and its id a hash of what the rule does. The same seed gives the same files anywhere.

    A run that was stopped goes on by the same command.

    With --held-out some functions, some pairs of functions one after the other, and some arguments are in no rule of
    NAME. Three more sets have rules with one of these each.

    Examples:
        jaxarc tasks generate rules small --count 10000
        jaxarc tasks generate rules train --count 100000 --held-out 1000
        jaxarc tasks show rules/small
    """
    from jaxarc.search.drawn_rules import NOTHING, NUM_PAIRS, PARTS, HeldOut, Scenes, draw_rules  # few need it

    names = {part: f"rules/{name}" if part == PARTS[0] else f"rules/{name}-{part}" for part in PARTS}
    counts = {part: count if part == PARTS[0] else held_out for part in PARTS}
    # Beside the sets, and not among them until all is drawn.
    folder = _path(names[PARTS[0]]).with_suffix(".drawn")
    for part, full_name in names.items():
        path = _path(full_name)
        if not path.exists():
            continue
        if not counts[part]:
            raise FileExistsError(
                f"{full_name!r} is of an earlier {names[PARTS[0]]!r} and may hold rules of the new one; add "
                f"--held-out, choose another name, or run: jaxarc tasks remove {full_name}"
            )
        if not replace and not folder.exists():  # where it does, a run was stopped while it wrote the sets
            raise FileExistsError(f"{full_name!r} is there already in {path}; choose another name, or add --replace")
    choice = HeldOut.choose(seed) if held_out else NOTHING
    scenes = Scenes.of([[grid for grid, _ in task.pairs if max(grid.shape) <= canvas] for task in load_tasks(_SOURCE)])
    # Only these two decide what is drawn.
    Results.of(folder, [], {"--seed": seed, "--canvas": canvas})
    found: dict[str, list[DrawnRules]] = {part: [] for part in PARTS}
    with progress_bar("rules", total=sum(counts.values()), waiting="drawing ...") as show:
        count_found = 0
        for drawn in draw_rules(scenes, counts, canvas, seed, processes or host_cores(), choice, folder):
            for part, rules in drawn.items():
                found[part].append(rules)
                count_found += len(rules.hashes)
            show(count_found, None)
    for part, own in found.items():
        if counts[part]:
            labels = [
                Label(f"{number:016x}", program, "", NUM_PAIRS - 1, 1, 0)
                for rules in own
                for number, program in zip(rules.hashes.tolist(), rules.programs(), strict=True)
            ]
            sizes = np.concatenate([rules.sizes.reshape(-1, 2) for rules in own])
            file = install_grids(names[part], labels, sizes, np.concatenate([rules.cells for rules in own]))
            typer.echo(f"{names[part]}: {len(labels):,} tasks in {file}")
    shutil.rmtree(folder)
    if held_out:
        typer.echo(f"held out: {', '.join(sorted(choice.functions))}; {len(choice.pairs)} pairs of functions;")
        typer.echo(f"of arguments {', '.join(sorted(map(str, choice.words)))}")


def _path(name: str) -> Path:
    try:
        return installed_path(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from error
