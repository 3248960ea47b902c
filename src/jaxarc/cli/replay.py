"""``jaxarc replay``: episodes in one HTML file, to look at step by step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import jax
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jaxarc.cli.replay_sources import (
    DEFAULT_DATASET,
    Scene,
    Showing,
    show_run,
    show_traces,
    traces_of_cache,
    traces_of_file,
)
from jaxarc.cli.trace_options import DEFAULT_FORMAT, CacheOption, FormatOption, find_recipe
from jaxarc.evaluation.filming import Film, film_episodes
from jaxarc.experts.traces.expert_names import EXPERTS
from jaxarc.io.atomic import write_whole
from jaxarc.render.replay_page import ReplayEpisode, ReplayPage, ReplayTask
from jaxarc.tasks import load_tasks
from jaxarc.training import RunFolder
from jaxarc.training.saved_agent import WhichCheckpoint

_MOST: Final = 1000


def replay(
    source: Annotated[
        str,
        typer.Argument(
            help=f"A folder of jaxarc train, a file of traces or recorded actions, or an expert whose traces are "
            f"recorded: {', '.join(EXPERTS)}, human, ..."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("replay.html"),
    dataset: Annotated[
        str | None, typer.Option(help=f"What the traces are of; by default what they say, or else {DEFAULT_DATASET}.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be given several times.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Not more episodes than so many.")] = _MOST,
    learned: Annotated[
        bool, typer.Option("--learned", help="Of a run, also the pairs that it learned from, first of all.")
    ] = False,
    checkpoint: Annotated[
        WhichCheckpoint, typer.Option(help="Of a run: the one that solved most unseen pairs, or the newest.")
    ] = "best",
    agent_seed: Annotated[
        int | None, typer.Option(help="Of a run with several seeds: the agent of this one; the first by default.")
    ] = None,
    action_format: FormatOption = DEFAULT_FORMAT,
    cache: CacheOption = None,
) -> None:
    """Write episodes into one HTML file that needs nothing else: open it in a browser, or mail it.

    All are played again in the environment itself, so grids, rewards and similarities are its own.
    """
    path, wanted = Path(source), task or []
    if path.is_dir():
        _refuse_dataset(dataset)
        run = RunFolder(path)
        showings = [show_run(run, checkpoint, agent_seed, with_learned=learned, task_ids=wanted, most=most)]
    else:
        showings = _show_recorded(source, dataset, wanted, most, action_format, cache)
    title = path.resolve().name if path.exists() else f"{source}, {dataset or DEFAULT_DATASET}"
    page = ReplayPage(title, _about(showings))
    with _progress(sum(len(showing.scenes) for showing in showings)) as advance:
        solved = sum(_film_into(page, showing, advance) for showing in showings)
    write_whole(out, page.to_html().encode())
    size = out.stat().st_size / 2**20
    line = f"{len(page):,} episodes, {solved:,} solved: {out} ({size:.1f} MiB)"
    Console().print(line, highlight=False, markup=False, soft_wrap=True)


def _about(showings: Sequence[Showing]) -> dict[str, str]:
    configs = [showing.params.config for showing in showings]
    canvases = dict.fromkeys("{}x{}".format(*config.grid_shape) for config in configs)
    formats = dict.fromkeys(config.action.selection_format for config in configs)
    return {"canvas": ", ".join(canvases), "actions": ", ".join(formats)}


def _refuse_dataset(dataset: str | None) -> None:
    if dataset is not None:
        raise typer.BadParameter(
            "the agent of a run plays the pairs that it was measured on; leave it out", param_hint="--dataset"
        )


def _show_recorded(
    source: str, dataset: str | None, task_ids: Sequence[str], most: int, action_format: str, cache: Path | None
) -> list[Showing]:
    """Find traces in a file, or those of an expert in the cache."""
    if Path(source).is_file():
        traces = traces_of_file(Path(source), dataset)
    else:
        recipe, dataset = find_recipe(source, action_format), dataset or DEFAULT_DATASET
        traces = traces_of_cache(recipe, load_tasks(dataset), cache)
        if not traces:
            raise typer.BadParameter(
                f"{source!r} is no folder and no file, and no trace by {recipe.title} of {dataset} is recorded; "
                f"correct it, or run: jaxarc traces record {dataset} --expert EXPERT --action-format {action_format}",
                param_hint="SOURCE",
            )
    chosen = [trace for trace in traces if not task_ids or trace.place.task_id in task_ids]
    if not chosen:
        known = ", ".join(list(dict.fromkeys(trace.place.task_id for trace in traces))[:3])
        raise typer.BadParameter(
            f"no trace is of {', '.join(task_ids)}; there are some of {known}, ...", param_hint="--task"
        )
    return list(show_traces(chosen[:most]))


def _film_into(page: ReplayPage, showing: Showing, advance: Callable[[], None]) -> int:
    """Play and add every episode; return how many were solved."""
    films = film_episodes(showing.agent, showing.params, showing.places, jax.random.key(0))
    solved = 0
    for scene, film in zip(showing.scenes, films, strict=True):
        page.add(*_to_replay(scene, film, showing.params.config.action.selection_format))
        solved += film.is_solved
        advance()
    return solved


def _to_replay(scene: Scene, film: Film, selection_format: str) -> tuple[ReplayTask, ReplayEpisode]:
    task = ReplayTask(scene.task_id, scene.demonstrations, scene.title)
    episode = ReplayEpisode(
        pair=scene.pair,
        player=scene.player,
        selection_format=selection_format,
        actions=film.actions,
        grids=film.grids,
        clipboards=film.clipboards,
        target=film.target,
        rewards=film.rewards,
        similarities=film.similarities,
        invalid=film.invalid,
        is_solved=film.is_solved,
    )
    return task, episode


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on stderr where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("episodes", total=total)
        yield lambda: progress.advance(bar)
