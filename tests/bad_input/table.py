"""What the bad calls lead to: the table of errors in the docs, and what its tests look at."""

import dataclasses
import re
import traceback
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import jaxarc
from bad_input.calls import CALLS

PAGE: Final = Path(__file__).parents[2] / "docs" / "errors.md"
_SOURCE: Final = str(Path(jaxarc.__file__).parent)
_CHECKED_AT_RUN_TIME: Final = re.compile(
    r"^(?:\S+: )?((?:Invalid|Illegal) .*)$", re.MULTILINE
)  # inside equinox's words
_ABOUT: Final = """# Errors

A wrong argument is refused where it is passed, in one line that names the value, the rule and what to do. Here is what
public functions say to wrong types, shapes, dtypes and ranges. The tests make these very calls, and this page of them.

Most errors are a `ValueError`, `TypeError` or `KeyError`, or one of their classes named here. Values that are known
only while compiled code runs, such as an operation of an action, are a `RuntimeError` (`EquinoxRuntimeError`), or
whatever [`action.invalid_action_policy`](operations.md) says. What lies in files is refused by the classes named in the
functions' own descriptions in the API pages.

The names in the calls: `tasks` is a set of two tasks, `one` and `two`, on a canvas of 2x2; `env` and `params` come from
`make(tasks, config)`; `state` and `states` from `arc_reset` and `batch_reset`, `env_state` from `env.reset`; `point`
and `bbox` are actions, `points` two actions.
"""


@dataclasses.dataclass(frozen=True)
class Refusal:
    """What came of a bad call."""

    call: str
    error: str  # its class
    message: str
    is_ours: bool  # whether our code raised it, and not some library below

    @property
    def row(self) -> str:
        """A row of the table."""
        message = re.sub(r"([|*_\\[\]])", r"\\\1", self.message).replace("<", "&lt;").replace(">", "&gt;")
        return f"| `{self.call.replace('|', chr(92) + '|')}` | `{self.error}` | {message} |"


def refusals(names: dict[str, Any], folder: Path) -> dict[str, list[Refusal]]:
    """Make every bad call.

    Args:
        names: what the calls mean.
        folder: where the files in ``names`` are; its path is cut out of messages.

    Raises:
        AssertionError: a call is not refused.
    """
    return {page: [_refusal(call, names, folder) for call in calls] for page, calls in CALLS.items()}


def page_of(found: dict[str, list[Refusal]]) -> str:
    """Write the page of the docs."""
    parts = [_ABOUT]
    for page, rows in found.items():
        parts.append(
            f"\n## {page}\n\n| Call | Error | Message |\n|---|---|---|\n" + "\n".join(one.row for one in rows) + "\n"
        )
    return "".join(parts)


def _refusal(call: str, names: dict[str, Any], folder: Path) -> Refusal:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(call, dict(names))
    except Exception as error:
        message = _message(error).replace(f"{folder}/", "")
        return Refusal(call, type(error).__name__, message, _raised_by_us(error, error.__traceback__))
    raise AssertionError(f"{call} is not refused, it gives {result!r:.200}")


def _message(error: Exception) -> str:
    checked = _CHECKED_AT_RUN_TIME.search(str(error))
    message = checked[1] if checked else " ".join(str(error).split())
    return re.sub(r"registered \d+ tasks", "registered 2 tasks", message)  # so many as all tests of a process load


def _raised_by_us(error: Exception, trace: TracebackType | None) -> bool:
    if type(error).__name__ == "EquinoxRuntimeError":  # raised by the checks that we put into compiled code
        return bool(_CHECKED_AT_RUN_TIME.search(str(error)))
    return traceback.extract_tb(trace)[-1].filename.startswith(_SOURCE)
