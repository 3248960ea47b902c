"""``jaxarc replay``: episodes in one HTML file, to look at step by step, or as a picture."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import jax
import typer
from rich.console import Console

from jaxarc.cli.console import progress_bar
from jaxarc.cli.picture_files import RENDERERS, ColorsOption, bytes_of, require_kind
from jaxarc.cli.replay_sources import (
    DEFAULT_DATASET,
    EpisodeBatch,
    show_run,
    show_traces,
    to_episode,
    traces_of_cache,
    traces_of_file,
)
from jaxarc.cli.trace_options import DEFAULT_FORMAT, CacheOption, FormatOption, find_expert_spec
from jaxarc.datasets import load_tasks
from jaxarc.errors import visible
from jaxarc.evaluation.episodes import record_episodes
from jaxarc.experts.expert import EXPERTS
from jaxarc.files import write_whole
from jaxarc.render.palette import PALETTES, Palette
from jaxarc.render.pictures import draw_episodes, episodes_gif
from jaxarc.render.replay_page import ReplayEpisode, ReplayPage, ReplayTask
from jaxarc.runs import RunFolder
from jaxarc.runs.state import WhichCheckpoint
from jaxarc.traces.files import TraceFileError

_MOST: Final = 1000
_TIME_OF_RUN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}-[0-9]{2}-[0-9]{2}-"  # as jaxarc train names folders
_KINDS: Final = (".html", ".gif", *RENDERERS)

ReplayedEpisode: TypeAlias = tuple[ReplayTask, ReplayEpisode]


def replay(
    source: Annotated[
        str,
        typer.Argument(
            help=f"A folder of jaxarc train, a file of traces or recorded actions, or an expert whose traces are "
            f"recorded: {', '.join(EXPERTS)}, human, ..."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help=f"The file to write: {', '.join(_KINDS)}.")] = Path(
        "replay.html"
    ),
    dataset: Annotated[
        str | None, typer.Option(help=f"What the traces are of; by default what they say, or else {DEFAULT_DATASET}.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    most: Annotated[
        int | None,
        typer.Option(min=1, help=f"Show this many episodes at most; by default {_MOST:,} in a page, 1 in a picture."),
    ] = None,
    colors: ColorsOption = "arc",
    learned: Annotated[
        bool, typer.Option("--learned", help="For a run: also its training pairs, before the others.")
    ] = False,
    checkpoint: Annotated[
        WhichCheckpoint, typer.Option(help="For a run: the checkpoint with most unseen pairs solved, or the newest.")
    ] = "best",
    agent_seed: Annotated[
        int | None, typer.Option(help="For a run with several seeds: the agent of this seed. Default: the first.")
    ] = None,
    action_format: FormatOption = DEFAULT_FORMAT,
    cache: CacheOption = None,
) -> None:
    """Write episodes into one self-contained HTML file, or into a picture.

    All episodes are replayed in the environment, so grids, rewards and similarities are exact. A GIF animates
    the episodes; SVG and PNG show every step, one below the other.

    Examples:
        jaxarc replay runs/NAME
        jaxarc replay traces.jsonl -o traces.html --most 2000
        jaxarc replay painter --dataset arc-agi-1/training --task 007bbfb7 -o one.gif
    """
    path = Path(source)
    wanted = task or []
    kind = require_kind(output, *_KINDS)
    most = most or (_MOST if kind == ".html" else 1)
    if path.is_dir():
        _refuse_dataset(dataset)
        run = RunFolder(path)
        batch, total = show_run(run, checkpoint, agent_seed, with_learned=learned, task_ids=wanted, most=most)
        batches = [batch]
    else:
        batches, total = _show_recorded(source, dataset, wanted, most, action_format, cache)
    title = _title_of(path) if path.exists() else f"{source}, {dataset or DEFAULT_DATASET}"
    draw = _page if kind == ".html" else _picture
    content, solved = draw(kind, batches, title, PALETTES[colors])
    write_whole(output, content)
    size = len(content) / 2**20
    shown = f"{len(solved):,}" if len(solved) == total else f"{len(solved):,} of {total:,}"
    more = "" if len(solved) == total else f"; add --most {total} to see all"
    line = f"{shown} episodes, {sum(solved):,} solved: {output} ({size:.1f} MiB){more}"
    Console().print(visible(line), highlight=False, markup=False, soft_wrap=True)


def _title_of(path: Path) -> str:
    """Name a file, or the agent of a run without the time in the name of its folder."""
    name = path.resolve().name
    return f"Agent {re.sub(_TIME_OF_RUN, '', name)}" if path.is_dir() else name


def _page(kind: str, batches: Sequence[EpisodeBatch], title: str, palette: Palette) -> tuple[bytes, list[bool]]:
    """Return a page, in which one chooses the palette, and which episodes are solved; holds one at a time."""
    page = ReplayPage(title, _about(batches))
    solved = []
    for task, episode in _play(batches):
        page.add(task, episode)
        solved.append(episode.is_solved)
    return page.to_html().encode(), solved


def _picture(kind: str, batches: Sequence[EpisodeBatch], title: str, palette: Palette) -> tuple[bytes, list[bool]]:
    played = list(_play(batches))
    if kind == ".gif":
        content = episodes_gif(played, palette=palette)
    else:
        content = bytes_of(draw_episodes(RENDERERS[kind], played, palette), title)
    return content, [episode.is_solved for _, episode in played]


def _about(batches: Sequence[EpisodeBatch]) -> dict[str, str]:
    configs = [batch.params.config for batch in batches]
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
) -> tuple[list[EpisodeBatch], int]:
    """Find traces in a file, or those of an expert in the cache; return the first of them, and how many there are."""
    if Path(source).is_file():
        traces = traces_of_file(Path(source), dataset)
    else:
        spec = find_expert_spec(source, action_format)
        dataset = dataset or DEFAULT_DATASET
        traces = traces_of_cache(spec, load_tasks(dataset), cache)
        if not traces:
            if source in EXPERTS or ":" in source:
                advice = f"run: jaxarc traces record {dataset} --expert {source} --format {action_format}"
                raise TraceFileError(f"no trace by {spec.title} of {dataset} is recorded; {advice}")
            raise typer.BadParameter(
                f"no file or folder {source!r}, and no expert of this name has a recorded trace of {dataset}; name a "
                f"run folder, a file of traces, or one of {', '.join(EXPERTS)}, human",
                param_hint="SOURCE",
            )
    chosen = [trace for trace in traces if not task_ids or trace.pair_id.task_id in task_ids]
    if not chosen:
        known = ", ".join(list(dict.fromkeys(trace.pair_id.task_id for trace in traces))[:3])
        raise typer.BadParameter(
            f"no trace is of {', '.join(task_ids)}; there are some of {known}, ...", param_hint="--task"
        )
    return list(show_traces(chosen[:most])), len(chosen)


def _play(batches: Sequence[EpisodeBatch]) -> Iterator[ReplayedEpisode]:
    """Play every episode, with a bar on stderr where that is a terminal."""
    total = sum(len(batch.infos) for batch in batches)
    done = 0
    with progress_bar("episodes", waiting="compiling") as show:
        for batch in batches:
            selection_format = batch.params.config.action.selection_format
            trajectories = record_episodes(
                batch.agent, batch.params, batch.specs, jax.random.key(0), lengths=batch.lengths
            )
            for info, trajectory in zip(batch.infos, trajectories, strict=True):
                yield to_episode(info, trajectory, selection_format)
                done += 1
                show(done, total)
