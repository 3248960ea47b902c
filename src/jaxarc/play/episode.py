"""An episode that a person plays: one move after the other, with undo, saved in a file."""

import datetime
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from jaxarc import constants as c
from jaxarc.envs.operations import get_operation_name
from jaxarc.errors import JaxarcError
from jaxarc.experts import Action, ActionFormat, Painter, Pair
from jaxarc.experts.host_canvas import FULL_CANVAS, check_action
from jaxarc.experts.traces import ExpertSpec, PairId, Trace, WorkUnit
from jaxarc.experts.traces.trace import hash_of
from jaxarc.experts.traces.trace_file import TraceFileError, TraceLine, read_trace_file, write_trace_file
from jaxarc.play.session import MOST_STEPS, Session, StateView, StepResult

_MOST_NAMED = 4  # cells that are listed one by one


class WrongMoveError(JaxarcError, ValueError):
    """Something is asked for that the episode does not allow."""


class Move(NamedTuple):
    """An action and what it led to."""

    action: Action
    result: StepResult


class Episode:
    """The moves on one pair.

    Going back is to take an earlier state: states do not change, so it is what a replay of the remaining actions gives.
    """

    def __init__(self, name: str, session: Session, place: PairId, dataset: str, folder: Path):
        """Lay the pair out.

        Args:
            name: unlike that of any other episode of this process.
            session: where it is played.
            place: of the pair.
            dataset: by which name others load its task.
            folder: gets the file, as soon as there is something to keep.

        Raises:
            UnknownTaskError: there is no such task.
            WrongMoveError: the task has no such pair.
        """
        self.name, self.place, self.dataset = name, place, dataset
        self.pair = _pair_at(place, session)
        self.file: Path | None = None
        self._session, self._folder, self._file_problem = session, folder, ""
        self._first = session.reset(place)
        self._moves: list[Move] = []
        self._in_force = 0  # moves; the others were taken back
        self._events: list[Event] = []
        self._plans: dict[tuple[Action, ...], tuple[Action, ...]] = {}  # by the actions before: what comes next
        self._source: Path | None = None  # of what this episode continues
        self._was_helped = False
        self._begun, self._clock = datetime.datetime.now().astimezone(), time.monotonic()

    def act(self, action: Action) -> None:
        """Take a step in the environment; what was taken back before is gone.

        Raises:
            InvalidActionError: it is not an action of the format and the canvas.
            WrongMoveError: the episode is over.
        """
        self._take(action)
        self._note("act", action)

    def take_up(self, actions: Sequence[Action], was_helped: bool, source: Path) -> None:
        """Take the actions of an earlier episode on this pair, which this one continues in a file of its own.

        Args:
            actions: those that were in force.
            was_helped: whether hints were given then; what is continued counts as helped, too.
            source: the file they were kept in.

        Raises:
            InvalidActionError, WrongMoveError: as for :meth:`act`.
        """
        for action in actions:
            self._take(action)
            self._events.append(Event(0.0, "act", action))
        self._source, self._was_helped = source, was_helped

    def rewind(self, to: int) -> None:
        """Go to the state after the first ``to`` moves, back or forth.

        Raises:
            WrongMoveError: there are not as many.
        """
        if not 0 <= to <= len(self._moves):
            raise WrongMoveError(f"there are {len(self._moves)} moves, so go to 0..{len(self._moves)}, not {to}")
        if to != self._in_force:
            self._in_force = to
            self._note("rewind", (to,))

    def hint(self) -> Action:
        """Return the painter's next action; it looks at the answer, and is noted as help.

        Raises:
            WrongMoveError: the episode is over.
        """
        self._require_open()
        done = self._actions
        if done not in self._plans:
            plan = Painter().solve(Pair(self._look.grid, self.pair.output), self._session.action_format)
            self._plans.update({(*done, *plan[:count]): plan[count:] for count in range(len(plan))})
        action = self._plans[done][0]
        self._note("hint", action)
        return action

    def save(self) -> None:
        """Write the file, if anything was done; where that fails the board says so, and the game goes on."""
        if not self._events:
            return
        played = HumanEpisode(
            self.dataset,
            self.place,
            self.pair,
            self._session.action_format,
            self._actions,
            tuple(self._events),
            self._begun,
            self._return,
            self._now.is_solved,
            self._was_helped,
            "" if self._source is None else self._source.name,
        )
        try:
            self.file = self.file or new_episode_file(self._folder, self.place, self._begun)
            write_human_episode(self.file, played)
        except OSError as error:
            self._file_problem = f"not saved ({error}); make room or mend the folder, then save again"
        else:
            self._file_problem = ""

    def board(self) -> dict[str, Any]:
        """Return what the page shows, for JSON."""
        look, now, form = self._look, self._now, self._session.action_format
        return {
            "episode": self.name,
            "grid": look.grid.tolist(),
            "clipboard": None if look.held is None else look.held.tolist(),
            "selected": np.argwhere(look.selected).tolist(),
            "similarity": now.similarity,
            "reward": now.reward if self._in_force else None,
            "return": self._return,
            "steps": int(look.step_count),
            "most_steps": MOST_STEPS,
            "ending": self._ending(look),
            "in_force": self._in_force,
            "moves": [
                {"name": say_action(action, form), "reward": result.reward, "similarity": result.similarity}
                for action, result in self._moves
            ],
            "hints": sum(event.kind == "hint" for event in self._events),
            "file": None if self.file is None else str(self.file),
            "file_problem": self._file_problem,
        }

    @property
    def _now(self) -> StepResult:
        return self._moves[self._in_force - 1].result if self._in_force else self._first

    @property
    def _look(self) -> StateView:
        return self._session.view(self._now.state)

    @property
    def _actions(self) -> tuple[Action, ...]:
        return tuple(move.action for move in self._moves[: self._in_force])

    @property
    def _return(self) -> float:
        return sum(move.result.reward for move in self._moves[: self._in_force])

    def _ending(self, look: StateView) -> str | None:
        if self._now.is_solved:
            return "solved"
        return "wrong" if look.terminated else "out of time" if look.truncated else None

    def _take(self, action: Action) -> None:
        check_action(action, self._in_force, self._session.action_format, FULL_CANVAS)
        self._require_open()
        move = Move(action, self._session.step(self._now.state, action))
        self._moves = [*self._moves[: self._in_force], move]
        self._in_force += 1

    def _require_open(self) -> None:
        if self._ending(self._look) is not None:
            raise WrongMoveError("the episode is over; undo its last move, or go to another pair")

    def _note(self, kind: Literal["act", "rewind", "hint"], numbers: Action) -> None:
        self._events.append(Event(round(time.monotonic() - self._clock, 2), kind, numbers))
        self.save()


def say_action(action: Action, action_format: str) -> str:
    """Name an action and its cells, counted from 1 as the page does."""
    name, numbers = get_operation_name(action[0]), action[1:]
    if action[0] in (c.SUBMIT, c.COPY_INPUT):
        return name
    if action[0] == c.RESIZE and numbers:
        return f"resize to {max(numbers[::2]) + 1}×{max(numbers[1::2]) + 1}"
    cells = [(row + 1, column + 1) for row, column in zip(numbers[::2], numbers[1::2], strict=True)]
    if not cells:
        return f"{name}, whole grid"
    if action_format != "bbox" and len(cells) <= _MOST_NAMED:
        return f"{name} at {', '.join(f'({row}, {column})' for row, column in cells)}"
    (top, bottom), (left, right) = ((min(side), max(side)) for side in zip(*cells, strict=True))
    where = f"rows {top}–{bottom}, columns {left}–{right}"
    return f"{name}, {where}" if action_format == "bbox" else f"{name}, {len(cells)} cells in {where}"


def _pair_at(place: PairId, session: Session) -> Pair:
    task = session.tasks.raw_task(place.task_id)
    pairs = task.train if place.split == "train" else task.test
    if not 0 <= place.pair_index < len(pairs):
        raise WrongMoveError(
            f"task {place.task_id} has the {place.split} pairs 0..{len(pairs) - 1}, got {place.pair_index}; name one"
        )
    return Pair(*pairs[place.pair_index])


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
