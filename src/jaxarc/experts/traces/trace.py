"""Work units and their traces: one pair for one expert, known by its content, and the actions that solve it."""

import dataclasses
import hashlib
import json
import operator
from typing import Any, NamedTuple, cast

from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.experts.expert import (
    Action,
    ActionFormat,
    AnyExpert,
    ExpertError,
    HiddenAnswerExpert,
    InvalidActionError,
    Pair,
)
from jaxarc.experts.host_canvas import check_solution
from jaxarc.experts.traces.graph import canonical_json, pair_from_json, pair_to_json


class RecordingFailedError(ExpertError):
    """A unit that had to be recorded has no trace."""


class TimeLimitError(ExpertError):
    """An expert took longer than its time limit."""


class WorkerDiedError(ExpertError):
    """The process of an expert ended before it answered."""


class ExpertSpec(NamedTuple):
    """An expert and the format of its actions: together with the pair, all that a trace depends on."""

    expert: str  # the expert's name
    version: int  # the expert's version
    settings: str  # of an expert that is a dataclass its fields, in canonical JSON; else empty
    action_format: ActionFormat
    canvas: tuple[int, int] = (MAX_GRID_SIZE, MAX_GRID_SIZE)  # rows and columns

    @property
    def title(self) -> str:
        """A line for people."""
        return f"{self.expert} {self.version}, {self.action_format}, {self.canvas[0]}x{self.canvas[1]}"

    @classmethod
    def of(cls, expert: AnyExpert, action_format: ActionFormat) -> "ExpertSpec":
        """Return the spec of an expert on the full canvas.

        Raises:
            ExpertError: its name is not a text, its version not an int, or one of its settings cannot be written as
                JSON.
        """
        if expert is None or isinstance(expert, str):
            raise ExpertError(f"an expert has a name, a version and a method solve, got {expert!r}; see find_expert")
        if not isinstance(expert.name, str) or not expert.name:
            raise ExpertError(f"an expert's name is a text that is not empty, got {expert.name!r}; name it")
        if type(expert.version) is not int:
            raise ExpertError(
                f"the version of the expert {expert.name!r} is an int, got {expert.version!r}; correct it"
            )
        return cls(expert.name, expert.version, _settings_of(expert), action_format)


class WorkUnit(NamedTuple):
    """One pair to be solved. It holds no task id: an equal pair of another task is the same unit.

    A unit is known by the hash of its text without demonstrations: a trace that solves the pair is valid whatever was
    shown to the expert.
    """

    pair: Pair
    spec: ExpertSpec
    demonstrations: tuple[Pair, ...] = ()  # what a HiddenAnswerExpert is shown instead of the output

    @classmethod
    def from_json(cls, text: str) -> "WorkUnit":
        """Read what :meth:`to_json` wrote."""
        data = json.loads(text)
        spec = ExpertSpec(
            data["expert"],
            data["version"],
            data["settings"],
            cast(ActionFormat, data["action_format"]),
            tuple(data["canvas"]),
        )
        shown = data.get("demonstrations", [])
        return cls(pair_from_json(data["pair"]), spec, tuple(pair_from_json(pair) for pair in shown))

    def to_json(self) -> str:
        """Write it in the one text that equal units share."""
        fields: dict[str, Any] = {**self.spec._asdict(), "pair": pair_to_json(self.pair)}
        if self.demonstrations:
            fields["demonstrations"] = [pair_to_json(pair) for pair in self.demonstrations]
        return canonical_json(fields)


class Trace(NamedTuple):
    """Actions that turn the input of a unit into its output, the last of them a submit; checked by replay."""

    unit_hash: str
    spec: ExpertSpec
    actions: tuple[Action, ...]

    def to_json(self) -> str:
        """Write it in canonical form."""
        return canonical_json({"unit": self.unit_hash, "recipe": self.spec, "actions": self.actions})

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """Read what :meth:`to_json` wrote.

        Raises:
            ValueError: it is not such a text.
        """
        try:
            data = json.loads(text)
            expert, version, settings, action_format, (height, width) = data["recipe"]
            actions = tuple(tuple(action) for action in data["actions"])
            return cls(data["unit"], ExpertSpec(expert, version, settings, action_format, (height, width)), actions)
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"not a trace: {text[:60]!r}; record it again") from error


class Failure(NamedTuple):
    """Why a unit has no trace."""

    unit_hash: str
    kind: str  # the class of the error, such as NotSolvedError
    message: str


def hash_of(text: str) -> str:
    """SHA-256 of a unit's text, 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def solve_unit(expert: AnyExpert, unit: WorkUnit) -> tuple[Action, ...]:
    """Let an expert solve a unit, and return its checked actions; a :class:`HiddenAnswerExpert` sees no output.

    Raises:
        ExpertError: as :func:`checked_actions`; and whatever the expert raises.
    """
    action_format = unit.spec.action_format
    if isinstance(expert, HiddenAnswerExpert):
        actions = expert.solve_hidden(unit.demonstrations, unit.pair.input, action_format)
    else:
        actions = expert.solve(unit.pair, action_format)
    return checked_actions(unit.pair, actions, action_format)


def checked_actions(pair: Pair, actions: Any, action_format: ActionFormat) -> tuple[Action, ...]:
    """Return an expert's actions as tuples of ints that provably solve the pair.

    Raises:
        InvalidActionError: they are not lists of whole numbers, or one is not an action of the format.
        NotSolvedError: they do not end in the pair's output, submitted.
    """
    try:
        listed = tuple(tuple(_require_int(number) for number in action) for action in actions)
    except TypeError as error:
        raise InvalidActionError(
            f"an expert returns lists of whole numbers, such as [[34, 0, 0]], got {actions!r:.80} ({error}); correct it"
        ) from error
    check_solution(pair, listed, action_format)
    return listed


def checked_trace(unit_hash: str, unit: WorkUnit, actions: Any) -> Trace:
    """Check actions as :func:`checked_actions` does, and make a trace of them."""
    return Trace(unit_hash, unit.spec, checked_actions(unit.pair, actions, unit.spec.action_format))


def failure_of(unit_hash: str, error: BaseException | None) -> Failure:
    """Say in one line why a unit has no trace."""
    return Failure(unit_hash, type(error).__name__, " ".join(str(error).split()))


def _require_int(number: Any) -> int:
    # operator.index takes NumPy's integers too and refuses floats; of True it would make 1.
    if isinstance(number, bool):
        raise TypeError("True and False are no whole numbers")
    return operator.index(number)


def _settings_of(expert: AnyExpert) -> str:
    if not dataclasses.is_dataclass(expert) or isinstance(expert, type):
        return ""
    try:
        return canonical_json(dataclasses.asdict(expert))
    except (TypeError, ValueError) as error:
        raise ExpertError(
            f"the settings of the expert {expert.name!r} cannot be written as JSON ({error}); give its fields numbers, "
            "texts, and tuples of them"
        ) from error
