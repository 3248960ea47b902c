"""The interface of an expert: given a pair, it returns the actions that turn the input into the output.

An expert runs on the host, in plain Python or anything that Python can call; this module does not import JAX.
"""

import abc
import difflib
import importlib
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, cast, get_args

import numpy as np
from jaxtyping import Int8

from jaxarc.errors import JaxarcError, UsageError

ActionFormat: TypeAlias = Literal["point", "bbox", "mask"]
ACTION_FORMATS: Final = get_args(ActionFormat)

Action: TypeAlias = tuple[int, ...]
"""Operation, then row and column of a point, ``r1, c1, r2, c2`` of a box, or row and column of every cell of a mask."""

EXPERTS: Final = {
    "painter": "jaxarc.experts.painter:Painter",
    "search": "jaxarc.experts.search_painter:SearchPainter",
}
"""Experts that have a name of their own; all others are named ``module:attribute``."""


class Pair(NamedTuple):
    """An input and the output that it should become, without padding."""

    input: Int8[np.ndarray, "h w"]  # 0 .. 9
    output: Int8[np.ndarray, "h2 w2"]  # 0 .. 9


class Expert(Protocol):
    """Solves pairs, one at a time."""

    name: str  # part of the identity of its traces
    version: int  # raise it when the actions change: traces of other versions are recorded anew

    def solve(self, pair: Pair, action_format: ActionFormat) -> Sequence[Action]:
        """Return actions that turn the pair's input into its output, the last of them a submit.

        Args:
            pair: what to solve; editing starts from its input.
            action_format: how selections are given.

        Raises:
            CannotSolveError: this expert knows no way, with the reason.
        """
        ...


class HiddenAnswerExpert(abc.ABC):
    """Solves pairs whose output it is not given, from other pairs of the task.

    What it returns is kept where it ends in the output, as with every expert; elsewhere the pair has no trace.
    """

    name: str
    version: int

    def prepare(self) -> None:  # noqa: B027  most experts have nothing to prepare
        """Do once what takes time and serves all pairs, before any process or time limit of a pair starts."""

    @abc.abstractmethod
    def solve_hidden(
        self, demonstrations: Sequence[Pair], grid: Int8[np.ndarray, "h w"], action_format: ActionFormat
    ) -> Sequence[Action]:
        """Return actions that turn an input into what should be its output, the last of them a submit.

        Args:
            demonstrations: the train pairs of the task, without the pair that is played.
            grid: the input of the pair that is played, from which editing starts.
            action_format: how selections are given.

        Raises:
            CannotSolveError: this expert knows no way, with the reason.
        """


AnyExpert: TypeAlias = Expert | HiddenAnswerExpert


def releases_gil(expert: AnyExpert) -> bool:
    """Whether an expert says so by an attribute of this name: threads of one process then solve several pairs."""
    return "releases_gil" in dir(expert) and bool(cast(Any, expert).releases_gil)


class ExpertError(JaxarcError, ValueError):
    """An expert broke the contract of its interface."""


class CannotSolveError(ExpertError):
    """An expert knows no way to solve a pair."""


class InvalidActionError(ExpertError):
    """An action does not fit the action format or the canvas."""


class NotSolvedError(ExpertError):
    """The actions do not end in the pair's output."""


class UnknownExpertError(UsageError, ExpertError):
    """No expert has this name, or the object of this name is not an expert."""


class Caught:
    """A context around an expert's code: keeps the error that it ends with in ``error`` instead of raising it.

    ``sys.exit`` is kept as an :class:`ExpertError`, so it does not end the program. Ctrl-C passes through.
    """

    error: Exception | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, SystemExit):
            fault = f"it called sys.exit({error.code!r}), which would end the program; raise an error"
            self.error = ExpertError(fault).with_traceback(error.__traceback__)
        elif isinstance(error, Exception):
            self.error = error
        return self.error is not None


def find_expert(name: str) -> AnyExpert:
    """Return the expert of a name; a class is called without arguments.

    Args:
        name: one of :data:`EXPERTS`, or ``module:attribute`` of a module that can be imported.

    Raises:
        UnknownExpertError: it cannot be found, or lacks ``name``, ``version`` or ``solve``.
    """
    module, colon, attribute = EXPERTS.get(name, name).partition(":")
    if not colon:
        near = difflib.get_close_matches(name, EXPERTS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(EXPERTS)}, or module:attribute"
        raise UnknownExpertError(f"no expert {name!r}; {hint}")
    # Importing a module runs code of others, which may raise anything; every error but our own is worded below.
    with Caught() as caught:
        found: Any = getattr(importlib.import_module(module), attribute)
        return _require_expert(found() if isinstance(found, type) else found, name)
    if isinstance(caught.error, UnknownExpertError):
        raise caught.error
    raise UnknownExpertError(
        f"the expert {name!r} cannot be loaded ({type(caught.error).__name__}: {caught.error}); "
        "give module:attribute of a module that Python finds from here"
    ) from caught.error


def _require_expert(expert: Any, name: str) -> AnyExpert:
    # `dir` and not `hasattr`: looking an attribute up may run a property of the expert.
    missing = [word for word in ("name", "version") if word not in dir(expert)]
    if not isinstance(expert, HiddenAnswerExpert) and "solve" not in dir(expert):
        missing.append("solve")
    if missing:
        lacks = " and no ".join(missing)
        raise UnknownExpertError(f"{name!r} is no expert: it has no {lacks}; see jaxarc.experts.Expert")
    return expert
