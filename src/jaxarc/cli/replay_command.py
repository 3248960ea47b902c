"""``jaxarc replay``: episodes in one HTML file, to look at step by step, or as a picture."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from rich.console import Console

from jaxarc.cli.console import (
    DEFAULT_FORMAT,
    AgentSeedOption,
    GameOption,
    NetworkOption,
    RewardOption,
    load_own_parts,
    print_line,
    progress_bar,
)
from jaxarc.cli.picture_files import RENDERERS, ColorsOption, require_kind
from jaxarc.cli.replay_sources import DEFAULT_DATASET, episodes_of, recorded_by_expert, recorded_in_file
from jaxarc.cli.trace_options import CacheOption, FormatOption
from jaxarc.config.agent_training import WhichCheckpoint
from jaxarc.evaluation.episodes import EpisodeBatch, EpisodeInfo, EpisodeTrajectory
from jaxarc.experts.expert import EXPERTS
from jaxarc.files import write_whole
from jaxarc.games.game import HEX_COLORS
from jaxarc.games.recordings import GameRecording, is_recording, read_recording
from jaxarc.render.drawings import episodes_file
from jaxarc.render.game_page import recording_page, to_digits
from jaxarc.render.palette import PALETTES
from jaxarc.render.replay_page import ReplayEpisode, ReplayTask
from jaxarc.runs import RunFolder, locate_run
from jaxarc.runs.kind import SavedRun, kind_of

_MOST: Final = 1000
_TIME_OF_RUN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}-[0-9]{2}-[0-9]{2}-"  # as jaxarc train names folders
Item = TypeVar("Item")
_KINDS: Final = (".html", ".gif", *RENDERERS)


def replay(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of jaxarc train, the agent ladder_l2_small of this package, a file of traces or recorded "
            f"actions, a recording of a game, or an expert whose traces are recorded: {', '.join(EXPERTS)}, human, ..."
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
    agent_seed: AgentSeedOption = None,
    game: GameOption = None,
    network: NetworkOption = None,
    reward: RewardOption = None,
    action_format: FormatOption = DEFAULT_FORMAT,
    cache: CacheOption = None,
) -> None:
    """Write episodes into one self-contained HTML file, or into a picture.

    All episodes are replayed in the environment, so grids, rewards and similarities are exact. A GIF animates
    the episodes; SVG and PNG show every step, one below the other.

    Examples:
        jaxarc replay ladder_l2_small
        jaxarc replay runs/NAME
        jaxarc replay plays/ice-TIME.jsonl -o game.html
        jaxarc replay traces.jsonl -o traces.html --most 2000
        jaxarc replay painter --dataset arc-agi-1/training --task 007bbfb7 -o one.gif
    """
    path = locate_run(Path(source))
    kind = require_kind(output, *_KINDS)
    load_own_parts(network, reward, game)
    shown = None
    if path.is_dir():
        if dataset is not None:
            raise typer.BadParameter(
                "the agent of a run plays the pairs that it was measured on; leave it out", param_hint="--dataset"
            )
        saved = SavedRun.open(RunFolder(path), checkpoint).require_agent()
        shown = kind_of(saved.experiment).saved(saved).replayed(agent_seed)
    elif path.is_file() and is_recording(path):
        shown = read_recording(path)
    if isinstance(shown, GameRecording):
        _write_game(shown, output)
        return
    most = most or (_MOST if kind == ".html" else 1)
    if shown is not None:
        measured = [(info.task_id, i) for i, info in enumerate(shown.infos) if learned or not info.is_learned]
        chosen = _of_tasks(measured, task or [], "measured pair")
        batches = [shown.only(chosen[:most])]
        title = f"Agent {re.sub(_TIME_OF_RUN, '', path.resolve().name)}"
    else:
        if path.is_file():
            traces = recorded_in_file(path, dataset)
            title = path.resolve().name
        else:
            dataset = dataset or DEFAULT_DATASET
            traces = recorded_by_expert(source, dataset, action_format, cache)
            title = f"{source}, {dataset}"
        chosen = _of_tasks([(trace.pair_id.task_id, trace) for trace in traces], task or [], "trace")
        batches = episodes_of(chosen[:most])
    _write_episodes(batches, len(chosen), title, output, colors)


def _of_tasks(items: Sequence[tuple[str, Item]], task_ids: Sequence[str], what: str) -> list[Item]:
    """Choose what is of some tasks, or all if none is named; each item comes with its task."""
    chosen = [item for task_id, item in items if not task_ids or task_id in task_ids]
    if not chosen:
        known = ", ".join(list(dict.fromkeys(task_id for task_id, _ in items))[:3])
        raise typer.BadParameter(
            f"no {what} is of {', '.join(task_ids)}; there are some of {known}, ...", param_hint="--task"
        )
    return chosen


def _write_game(recording: GameRecording, output: Path) -> None:
    """Write the frames of a recorded game, as they are, into a page."""
    require_kind(output, ".html")
    steps = [
        {
            "action": action,
            "x": x,
            "y": y,
            "frames": [to_digits(frame) for frame in seen.frames],
            "state": seen.state,
            "completed": seen.levels_completed,
            "levels": seen.win_levels,
        }
        for action, x, y, seen in recording.steps
    ]
    content = recording_page(recording.game, steps, HEX_COLORS)
    write_whole(output, content)
    last = recording.steps[-1].seen
    words = f"{len(steps):,} actions, {last.levels_completed} of {last.win_levels} levels"
    print_line(Console(), f"{recording.game}, {words}: {output} ({len(content) / 2**20:.1f} MiB)")
    if recording.about:
        print_line(Console(), recording.about)


def _write_episodes(batches: Sequence[EpisodeBatch], total: int, title: str, output: Path, colors: str) -> None:
    """Play episodes, write them into a file, and print how many of them are solved."""
    solved = []

    def episodes() -> Iterator[tuple[ReplayTask, ReplayEpisode]]:
        for batch in batches:
            for info, trajectory in batch.play():
                solved.append(trajectory.is_solved)
                yield to_episode(info, trajectory, batch.params.config.action.selection_format)
                show(len(solved), sum(len(batch.infos) for batch in batches))

    configs = [batch.params.config for batch in batches]
    canvases = dict.fromkeys("{}x{}".format(*config.grid_shape) for config in configs)
    formats = dict.fromkeys(config.action.selection_format for config in configs)
    about = {"canvas": ", ".join(canvases), "actions": ", ".join(formats)}
    with progress_bar("episodes", waiting="compiling") as show:
        content = episodes_file(output.suffix.lower(), episodes(), title, about, PALETTES[colors])
    write_whole(output, content)
    size = len(content) / 2**20
    shown = f"{len(solved):,}" if len(solved) == total else f"{len(solved):,} of {total:,}"
    more = "" if len(solved) == total else f"; add --most {total} to see all"
    print_line(Console(), f"{shown} episodes, {sum(solved):,} solved: {output} ({size:.1f} MiB){more}")


def to_episode(
    info: EpisodeInfo, trajectory: EpisodeTrajectory, selection_format: str
) -> tuple[ReplayTask, ReplayEpisode]:
    """Return a trajectory as what is replayed and drawn."""
    steps = {name: value for name, value in trajectory._asdict().items() if name in ReplayEpisode._fields}
    task = ReplayTask(info.task_id, info.demonstrations, info.title)
    return task, ReplayEpisode(info.pair, info.player, selection_format, **steps)
