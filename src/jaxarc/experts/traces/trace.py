"""What recording a unit gives: a trace, or why there is none."""

import json
import operator
from typing import Any, NamedTuple

from jaxarc.experts.expert import Action, ActionFormat, ExpertError, InvalidActionError, Pair
from jaxarc.experts.host_canvas import check_solution
from jaxarc.experts.traces.graph import canonical_json
from jaxarc.experts.traces.work_unit import ExpertSpec, WorkUnit


class Trace(NamedTuple):
    """Actions that turn the input of a unit into its output, the last of them a submit; checked."""

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


class RecordingFailedError(ExpertError):
    """A unit that had to be recorded has no trace."""


class TimeLimitError(ExpertError):
    """An expert took longer than its time limit."""


class WorkerDiedError(ExpertError):
    """The process of an expert ended while it was at work."""


class Caught:
    """A context around code of somebody else, such as an expert: keeps whatever error it ends with.

    Code of somebody else that calls ``sys.exit`` ends itself, not the program. Ctrl-C passes.
    """

    error: Exception | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, SystemExit):
            self.error = ExpertError(f"it called sys.exit({error.code!r}), which would end the program; raise an error")
        elif isinstance(error, Exception):
            self.error = error
        return self.error is not None


def checked_actions(pair: Pair, actions: Any, action_format: ActionFormat) -> tuple[Action, ...]:
    """Return an expert's actions as tuples of ints that provably solve the pair.

    Raises:
        InvalidActionError: they are no lists of whole numbers, or one is not an action of the format.
        NotSolvedError: they do not end in the pair's output, submitted.
    """
    try:
        listed = tuple(tuple(_whole(number) for number in action) for action in actions)
    except TypeError as error:
        raise InvalidActionError(
            f"an expert returns lists of whole numbers, such as [[34, 0, 0]], got {actions!r:.80} ({error}); correct it"
        ) from error
    check_solution(pair, listed, action_format)
    return listed


def checked_trace(unit_hash: str, unit: WorkUnit, actions: Any) -> Trace:
    """Make a trace of actions that were checked by :func:`checked_actions` now."""
    return Trace(unit_hash, unit.spec, checked_actions(unit.pair, actions, unit.spec.action_format))


def failure_of(unit_hash: str, error: BaseException | None) -> Failure:
    """Say in one line why a unit has no trace."""
    return Failure(unit_hash, type(error).__name__, " ".join(str(error).split()))


def _whole(number: Any) -> int:
    if isinstance(number, bool):
        raise TypeError("True and False are no whole numbers")
    return operator.index(number)
