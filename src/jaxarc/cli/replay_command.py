"""``jaxarc replay``: episodes in one HTML file, to look at step by step, or as a picture."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import jax
import typer
from rich.console import Console

import jaxarc.games
from jaxarc.agents import GameAgent, load_game_agent
from jaxarc.agents.saved_agent import saved_experiment
from jaxarc.cli.console import DEFAULT_FORMAT, AgentSeedOption, print_line, progress_bar
from jaxarc.cli.picture_files import RENDERERS, ColorsOption, require_kind
from jaxarc.cli.replay_sources import (
    DEFAULT_DATASET,
    EpisodeBatch,
    recorded_by_expert,
    recorded_in_file,
    show_run,
    show_traces,
    to_episode,
)
from jaxarc.cli.trace_options import CacheOption, FormatOption
from jaxarc.evaluation.episodes import record_episodes
from jaxarc.experts.expert import EXPERTS
from jaxarc.files import write_whole
from jaxarc.games.frames import OwnFrames
from jaxarc.games.game import HEX_COLORS
from jaxarc.games.recordings import is_recording, read_recording
from jaxarc.render.drawings import episodes_file
from jaxarc.render.game_page import recording_page, to_digits
from jaxarc.render.palette import PALETTES
from jaxarc.render.replay_page import ReplayEpisode, ReplayTask
from jaxarc.runs import RunFolder, locate_run
from jaxarc.runs.run_state import WhichCheckpoint

_MOST: Final = 1000
_TIME_OF_RUN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}-[0-9]{2}-[0-9]{2}-"  # as jaxarc train names folders
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
    if path.is_file() and is_recording(path):
        _replay_game(path, output)
        return
    if path.is_dir() and (name := saved_experiment(RunFolder(path), checkpoint).game.name):
        _replay_agent(load_game_agent(path, checkpoint=checkpoint, seed=agent_seed), name, output)
        return
    most = most or (_MOST if kind == ".html" else 1)
    if path.is_dir():
        if dataset is not None:
            raise typer.BadParameter(
                "the agent of a run plays the pairs that it was measured on; leave it out", param_hint="--dataset"
            )
        run = RunFolder(path)
        batch, total = show_run(run, checkpoint, agent_seed, with_learned=learned, task_ids=task or [], most=most)
        batches = [batch]
        title = f"Agent {re.sub(_TIME_OF_RUN, '', path.resolve().name)}"
    elif path.is_file():
        batches, total = show_traces(recorded_in_file(path, dataset), task or [], most)
        title = path.resolve().name
    else:
        dataset = dataset or DEFAULT_DATASET
        traces = recorded_by_expert(source, dataset, action_format, cache)
        batches, total = show_traces(traces, task or [], most)
        title = f"{source}, {dataset}"
    solved: list[bool] = []
    content = episodes_file(kind, _play(batches, solved), title, _about(batches), PALETTES[colors])
    write_whole(output, content)
    size = len(content) / 2**20
    shown = f"{len(solved):,}" if len(solved) == total else f"{len(solved):,} of {total:,}"
    more = "" if len(solved) == total else f"; add --most {total} to see all"
    print_line(Console(), f"{shown} episodes, {sum(solved):,} solved: {output} ({size:.1f} MiB){more}")


def _replay_game(path: Path, output: Path) -> None:
    """Write the frames of a recorded game, as they are, into a page."""
    require_kind(output, ".html")
    recording = read_recording(path)
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


def _replay_agent(agent: GameAgent, name: str, output: Path) -> None:
    """Let an agent play the game that it learned, and write it into a page."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "played.jsonl"
        played = agent.play(OwnFrames(*jaxarc.games.make(name)), recording=recording)
        _replay_game(recording, output)
    print_line(Console(), f"official score {played.score:.1f}, actions {' '.join(map(str, played.actions))}")


def _about(batches: Sequence[EpisodeBatch]) -> dict[str, str]:
    configs = [batch.params.config for batch in batches]
    canvases = dict.fromkeys("{}x{}".format(*config.grid_shape) for config in configs)
    formats = dict.fromkeys(config.action.selection_format for config in configs)
    return {"canvas": ", ".join(canvases), "actions": ", ".join(formats)}


def _play(batches: Sequence[EpisodeBatch], solved: list[bool]) -> Iterator[tuple[ReplayTask, ReplayEpisode]]:
    """Play every episode and note whether it is solved, with a bar on stderr where that is a terminal."""
    total = sum(len(batch.infos) for batch in batches)
    done = 0
    with progress_bar("episodes", waiting="compiling") as show:
        for batch in batches:
            form = batch.params.config.action.selection_format
            key = jax.random.key(0)
            trajectories = record_episodes(batch.agent, batch.params, batch.specs, key, lengths=batch.lengths)
            for info, trajectory in zip(batch.infos, trajectories, strict=True):
                solved.append(trajectory.is_solved)
                yield to_episode(info, trajectory, form)
                done += 1
                show(done, total)
