"""Some of the tasks of a dataset: the grammar of names, and the conditions behind it.

``NAME[@VERSION][:CLAUSE[,CLAUSE...]]``, such as ``arc-agi-1/training@kaggle2019:first 10,max_side=8``. A clause is a
keyword of :meth:`jaxarc.datasets.TaskSet.select` in the spelling of a name, so both say the same:

    load_tasks("arc-agi-1/training:max_side=8,first 10")
    load_tasks("arc-agi-1/training").select(max_side=8, first=10)
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, MAX_TRACKED_PAIRS, NUM_COLORS
from jaxarc.errors import UsageError
from jaxarc.tasks.raw_task import RawTask

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")  # of a path on Windows, whose colon is no separator


class SubsetError(UsageError, ValueError):
    """A subset is spelled wrong, or leaves no task."""


def split_clauses(name: str) -> tuple[str, str | None]:
    """Cut a name at its first colon into the dataset and the clauses; ``None`` where there is no colon."""
    # The colon of a drive, as in C:\tasks:first 10, is no beginning of clauses.
    start = 2 if _DRIVE.match(name) else 0
    index = name.find(":", start)
    return (name, None) if index < 0 else (name[:index], name[index + 1 :])


def split_version(name: str) -> tuple[str, str | None]:
    """Cut a name at its last ``@``; ``None`` where there is none."""
    base, at, version = name.rpartition("@")
    return (base, version) if at else (name, None)


def normalize_name(name: str) -> str:
    """Return a name in lower case without dashes, underscores and spaces, so that spellings of it are equal."""
    return "".join(letter for letter in name.lower() if letter not in "-_ ")


def parse_clauses(text: str) -> dict[str, Any]:
    """Turn ``first 10,max_side=8`` into keywords of :meth:`jaxarc.datasets.TaskSet.select`.

    Raises:
        SubsetError: a clause is unknown, comes twice, or has a wrong value.
    """
    keywords: dict[str, Any] = {}
    for clause in text.split(","):
        # "max_side=8" and "first 10" are the same spelling after the first equals sign has become a blank.
        key, _, value = clause.strip().replace("=", " ", 1).partition(" ")
        if key not in _CLAUSES:
            near = difflib.get_close_matches(key, _CLAUSES, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SubsetError(
                f"unknown clause {key!r} in {clause!r}; {hint}Known clauses: {', '.join(_CLAUSES)}, such as 'first 10' "
                "or 'max_side=10'"
            )
        if key in keywords:
            raise SubsetError(f"the clause {key!r} comes twice in {text!r}; write it once")
        form = _CLAUSES[key]
        keywords[key] = form.parse(value.strip())
        if keywords[key] is None:
            raise SubsetError(f"the clause {key!r} in {clause!r} takes {form.takes}, got {value.strip()!r}; correct it")
    return keywords


def choose_tasks(tasks: Sequence[RawTask], set_name: str, conditions: Mapping[str, Any]) -> Sequence[RawTask]:
    """Keep the tasks that meet every condition, in their order; see :meth:`jaxarc.datasets.TaskSet.select`.

    Args:
        tasks: the tasks.
        set_name: for messages.
        conditions: a value for each keyword of ``select`` but the ids; ``None`` and ``False`` ask for nothing.

    Raises:
        SubsetError: no task is left; the message names the condition and what would leave one.
    """
    # One condition after the other, so that the message names the first one that
    # leaves nothing, and what would leave some.
    kept = tasks
    for name, clause in _CLAUSES.items():
        value = conditions.get(name)
        if clause.is_met is None or value is None or value is False:
            continue
        left = tuple(task for task in kept if clause.is_met(task, value))
        if not left:
            raise SubsetError(f"select({name}={value!r}) leaves no task of {set_name!r}; {clause.hint(value, kept)}")
        kept = left
    first = conditions.get("first")
    if first is not None and first < 1:
        raise SubsetError(f"select(first={first}) leaves no task of {set_name!r}; ask for 1 or more")
    return kept[:first]


def fitting_tasks(tasks: Iterable[RawTask], grid_shape: tuple[int, int]) -> tuple[RawTask, ...]:
    """Keep the tasks whose grids all fit a canvas of ``grid_shape``, rows and columns."""
    height, width = grid_shape
    return tuple(task for task in tasks if task.grid_shape[0] <= height and task.grid_shape[1] <= width)


def keeps_shape(task: RawTask) -> bool:
    """Return whether every output is as large as its input; one that is unknown does not count."""
    return all(source.shape == target.shape for source, target in task.pairs if target.size)


class _Clause(NamedTuple):
    """One keyword of ``select``: how its value is spelled in a name, and which tasks meet it."""

    takes: str
    parse: Callable[[str], Any]  # None: a wrong value
    is_met: Callable[[RawTask, Any], bool] | None = None  # None: it does not look at one task after the other
    hint: Callable[[Any, Sequence[RawTask]], str] = lambda value, tasks: ""  # for a value that leaves none of these


def _whole_number(low: int, high: int) -> _Clause:
    def parse(value: str) -> int | None:
        number = int(value) if re.fullmatch(r"[0-9]{1,9}", value) else low - 1
        return number if low <= number <= high else None

    return _Clause(f"a whole number in {low}..{high}", parse)


def _bound(name: str, high: int, measure: Callable[[RawTask], int]) -> _Clause:
    if name.startswith("min_"):
        is_met = lambda task, least: measure(task) >= least
        hint = lambda _, tasks: f"the largest of the {len(tasks)} tasks needs {name}={max(map(measure, tasks))} or less"
    else:
        is_met = lambda task, most: measure(task) <= most
        hint = lambda _, tasks: f"the smallest of the {len(tasks)} tasks needs {name}={min(map(measure, tasks))}"
    return _whole_number(1, high)._replace(is_met=is_met, hint=hint)


def _largest_side(task: RawTask) -> int:
    return max(task.grid_shape)


def _num_demonstrations(task: RawTask) -> int:
    return len(task.train)


def _num_colors(task: RawTask) -> int:
    return len({color for _, grid in task.named_grids() for color in np.unique(grid).tolist()})


def _outputs_fit(task: RawTask) -> bool:
    pairs = task.all_pairs
    return all(answer.shape[axis] <= source.shape[axis] for source, answer in pairs for axis in (0, 1))


def _nearest_concepts(concept: str, tasks: Sequence[RawTask]) -> str:
    concepts = sorted({task.concept for task in tasks if task.concept})
    if not concepts:
        return "its tasks have no concepts; leave concept out"
    by_spelling = {normalize_name(name): name for name in concepts}
    # Compared without case and dashes, so "above below" is as near to "AboveBelow" as can be.
    near = difflib.get_close_matches(normalize_name(concept), by_spelling, n=2)
    if near:
        return f"did you mean {' or '.join(repr(by_spelling[name]) for name in near)}?"
    return f"its concepts: {', '.join(concepts[:20])}"


def _ids(value: str) -> list[str] | None:
    ids = value.split("+")
    return ids if all(ids) else None


_FLAG: Final = ("no value", {"": True, "true": True, "false": False}.get)
_IDS: Final = _Clause("task ids with a plus between them", _ids)
_CLAUSES: Final[Mapping[str, _Clause]] = {
    "ids": _IDS,
    "without": _IDS,
    "concept": _Clause(
        "a name",
        lambda value: value or None,
        lambda task, concept: normalize_name(task.concept) == normalize_name(concept),
        _nearest_concepts,
    ),
    "same_shape": _Clause(
        *_FLAG,
        lambda task, _: keeps_shape(task),
        lambda _, tasks: f"every one of the {len(tasks)} tasks has an output of another shape than its input",
    ),
    "output_fits_input": _Clause(
        *_FLAG,
        lambda task, _: _outputs_fit(task),
        lambda _, tasks: f"every one of the {len(tasks)} tasks has an output that is higher or wider than its input",
    ),
    "min_side": _bound("min_side", MAX_GRID_SIZE, _largest_side),
    "max_side": _bound("max_side", MAX_GRID_SIZE, _largest_side),
    "min_demonstrations": _bound("min_demonstrations", MAX_TRACKED_PAIRS, _num_demonstrations),
    "max_demonstrations": _bound("max_demonstrations", MAX_TRACKED_PAIRS, _num_demonstrations),
    "min_colors": _bound("min_colors", NUM_COLORS, _num_colors),
    "max_colors": _bound("max_colors", NUM_COLORS, _num_colors),
    "first": _whole_number(1, 10**9 - 1),
}
