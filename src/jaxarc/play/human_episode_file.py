"""A person's episode as a file of traces with one line, which tells besides the actions all that was done."""

import datetime
import secrets
from pathlib import Path
from typing import Final, Literal, NamedTuple

from jaxarc.experts import Action, ActionFormat, Pair
from jaxarc.experts.traces import ExpertSpec, PairId, Trace, WorkUnit
from jaxarc.experts.traces.trace_file import TraceFileError, TraceLine, read_trace_file, write_trace_file
from jaxarc.experts.traces.work_unit import hash_of

ALONE: Final = "human"
HELPED: Final = "human-with-hints"
"""Whose traces these are: who took hints is told from who did not, so that none is mistaken for a person's own."""


class Event(NamedTuple):
    """Something that a player did."""

    seconds: float  # since the episode began
    kind: Literal["act", "rewind", "hint"]
    numbers: Action  # of the action taken or hinted at; of a rewind how many actions stayed in force


class HumanEpisode(NamedTuple):
    """An episode, finished or not."""

    dataset: str  # what the task is loaded from
    place: PairId
    pair: Pair
    action_format: ActionFormat
    actions: tuple[Action, ...]  # that are in force, without what was taken back
    events: tuple[Event, ...]  # everything, in order
    begun: datetime.datetime
    reward: float  # sum of the rewards of the actions
    is_solved: bool
    was_helped: bool = False  # by hints, in the episode that this one continues
    continues: str = ""  # the file of that one


def read_human_episode(path: Path) -> TraceLine:
    """Read what is needed to continue an episode.

    Raises:
        TraceFileError: it is no file with one trace.
        OSError: the file cannot be read.
    """
    lines = read_trace_file(path)
    if len(lines) != 1:
        raise TraceFileError(f"{path} holds {len(lines)} traces; name a file of jaxarc play, which has one")
    return lines[0]


def write_human_episode(path: Path, played: HumanEpisode) -> None:
    """Write an episode whole, or leave the file as it was.

    ``jaxarc traces verify`` replays the actions; ``session`` beside them keeps what they do not tell.

    Raises:
        OSError: the file cannot be written.
    """
    num_hints = sum(event.kind == "hint" for event in played.events)
    spec = ExpertSpec(HELPED if num_hints or played.was_helped else ALONE, 1, "", played.action_format)
    trace = Trace(hash_of(WorkUnit(played.pair, spec).to_json()), spec, played.actions)
    session = {
        "begun": played.begun.isoformat(timespec="seconds"),
        "seconds": played.events[-1].seconds if played.events else 0.0,
        "solved": played.is_solved,
        "return": round(played.reward, 6),
        "hints": num_hints,
        "rewinds": sum(event.kind == "rewind" for event in played.events),
        "events": played.events,
    } | ({"continues": played.continues} if played.continues else {})
    write_trace_file(path, {played.place: trace}, {"dataset": played.dataset, "session": session})


def new_episode_file(folder: Path, place: PairId, begun: datetime.datetime) -> Path:
    """Return a path that nobody else will take, in this process or another: the time, the pair and random digits."""
    task = "".join(letter if letter.isalnum() or letter in "_.-" else "-" for letter in place.task_id)
    name = f"{begun:%Y-%m-%d_%H-%M-%S}-{task}-{place.split}-{place.pair_index}"
    return folder / f"{name}-{secrets.token_hex(4)}.jsonl"
