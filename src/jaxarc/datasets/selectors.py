"""Some of the tasks of a dataset: the grammar of names, and the conditions behind it.

``NAME[@VERSION][:CLAUSE[,CLAUSE...]]``, such as ``arc-agi-1/training@kaggle2019:first 10,max_side=8``. A clause is a
keyword of :meth:`jaxarc.datasets.TaskSet.select` in the spelling of a name, so both say the same:

    load_tasks("arc-agi-1/training:max_side=8,first 10")
    load_tasks("arc-agi-1/training").select(max_side=8, first=10)
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import yaml

from jaxarc.constants import MAX_GRID_SIZE, MAX_TRACKED_PAIRS, NUM_COLORS
from jaxarc.errors import JaxarcWarning, UsageError
from jaxarc.files import user_path
from jaxarc.tasks.raw_task import RawTask

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")  # of a path on Windows, whose colon is no separator
_MAX_SUBSET_BYTES: Final = 2**20


class SubsetError(UsageError, ValueError):
    """A subset is spelled wrong, or leaves no task."""


class TooLargeWarning(JaxarcWarning):
    """Tasks were left out because they do not fit the canvas."""


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

    ``without_errata`` stays a keyword of its own: only the catalogue knows the errata of a dataset.

    Raises:
        SubsetError: a clause is unknown, comes twice, or has a wrong value.
        FileNotFoundError: the file of a clause ``file=...`` is not there.
    """
    keywords: dict[str, Any] = {}
    for clause in text.split(","):
        key, value = _split_clause(clause)
        # A file stands for all the clauses in it, any other clause for itself; in the end no name may come twice.
        found = _read_subset(user_path(value)) if key == "file" and value else {key: _parse(key, value, clause)}
        for name, parsed in found.items():
            if name in keywords:
                raise SubsetError(f"the clause {name!r} comes twice in {text!r}; write it once")
            keywords[name] = parsed
    return keywords


def choose_tasks(tasks: Sequence[RawTask], set_name: str, conditions: Mapping[str, Any]) -> tuple[RawTask, ...]:
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
    kept = tuple(tasks)
    for name, condition in _CONDITIONS.items():
        value = conditions.get(name)
        if value is None or value is False:
            continue
        left = tuple(task for task in kept if condition.is_met(task, value))
        if not left:
            raise SubsetError(f"select({name}={value!r}) leaves no task of {set_name!r}; {condition.hint(value, kept)}")
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


class _Condition(NamedTuple):
    """One keyword of ``select``."""

    is_met: Callable[[RawTask, Any], bool]
    hint: Callable[[Any, Sequence[RawTask]], str]  # for a value that leaves none of these tasks


def _at_least(name: str, measure: Callable[[RawTask], int]) -> _Condition:
    return _Condition(
        lambda task, low: measure(task) >= low,
        lambda _, tasks: f"the largest of the {len(tasks)} tasks needs {name}={max(map(measure, tasks))} or less",
    )


def _at_most(name: str, measure: Callable[[RawTask], int]) -> _Condition:
    return _Condition(
        lambda task, high: measure(task) <= high,
        lambda _, tasks: f"the smallest of the {len(tasks)} tasks needs {name}={min(map(measure, tasks))}",
    )


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


_CONDITIONS: Final[Mapping[str, _Condition]] = {
    "concept": _Condition(
        lambda task, concept: normalize_name(task.concept) == normalize_name(concept),
        _nearest_concepts,
    ),
    "same_shape": _Condition(
        lambda task, _: keeps_shape(task),
        lambda _, tasks: f"every one of the {len(tasks)} tasks has an output of another shape than its input",
    ),
    "output_fits_input": _Condition(
        lambda task, _: _outputs_fit(task),
        lambda _, tasks: f"every one of the {len(tasks)} tasks has an output that is higher or wider than its input",
    ),
    "min_side": _at_least("min_side", _largest_side),
    "max_side": _at_most("max_side", _largest_side),
    "min_demonstrations": _at_least("min_demonstrations", _num_demonstrations),
    "max_demonstrations": _at_most("max_demonstrations", _num_demonstrations),
    "min_colors": _at_least("min_colors", _num_colors),
    "max_colors": _at_most("max_colors", _num_colors),
}


class _WrongValueError(Exception):
    """Says which values a clause takes."""


def _split_clause(clause: str) -> tuple[str, str]:
    # "max_side=8" and "first 10" are the same spelling after the first equals sign has become a blank.
    key, _, value = clause.strip().replace("=", " ", 1).partition(" ")
    return key, value.strip()


def _parse(key: str, value: Any, where: str) -> Any:
    if key not in _PARSERS:
        near = difflib.get_close_matches(key, _PARSERS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SubsetError(
            f"unknown clause {key!r} in {where!r}; {hint}Known clauses: {', '.join(_PARSERS)}, such as 'first 10' or "
            "'max_side=10'"
        )
    try:
        return _PARSERS[key](value)
    except _WrongValueError as error:
        raise SubsetError(f"the clause {key!r} in {where!r} takes {error}, got {value!r}; correct it") from error


def _whole_number(low: int, high: int | None = None) -> Callable[[Any], int]:
    wanted = f"a whole number of {low} or more" if high is None else f"a whole number in {low}..{high}"

    def parse(value: Any) -> int:
        if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,9}", value):
            raise _WrongValueError(wanted)
        if int(value) < low or (high is not None and int(value) > high):
            raise _WrongValueError(wanted)
        return int(value)

    return parse


def _flag(value: Any) -> bool:
    if value not in ("", "true", "false"):
        raise _WrongValueError("no value")
    return value != "false"


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _WrongValueError("a name")
    return value


def _ids(value: Any) -> list[str]:
    ids = value.split("+") if isinstance(value, str) else value
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one for one in ids):
        raise _WrongValueError("task ids with a plus between them, or in a file a list of them")
    return ids


def _file(value: Any) -> str:
    raise _WrongValueError("the path of a YAML file, in a name and not in such a file")


_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "first": _whole_number(1),
    "max_side": _whole_number(1, MAX_GRID_SIZE),
    "min_side": _whole_number(1, MAX_GRID_SIZE),
    "max_demonstrations": _whole_number(1, MAX_TRACKED_PAIRS),
    "min_demonstrations": _whole_number(1, MAX_TRACKED_PAIRS),
    "max_colors": _whole_number(1, NUM_COLORS),
    "min_colors": _whole_number(1, NUM_COLORS),
    "same_shape": _flag,
    "output_fits_input": _flag,
    "concept": _word,
    "ids": _ids,
    "without": _ids,
    "without_errata": _flag,
    "file": _file,
}


def _read_subset(file: Path) -> dict[str, Any]:
    """Read a YAML file: a list of ids, or a mapping of clauses."""
    if not file.is_file():
        raise FileNotFoundError(f"no file {file} for the clause 'file'; give the path of a YAML file of task ids")
    if file.stat().st_size > _MAX_SUBSET_BYTES:
        raise SubsetError(f"{file}: more than {_MAX_SUBSET_BYTES:,} bytes; a subset is a list of ids")
    try:
        # The base loader leaves every value a string: 22168020 is an id, and no other loader would keep 00576224.
        content = yaml.load(file.read_bytes(), Loader=yaml.BaseLoader)  # makes strings, lists and mappings only
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise SubsetError(f"{file}: not YAML ({reason!r}); write one '- id' per line") from error
    clauses = {"ids": content} if isinstance(content, list) else content
    if not isinstance(clauses, dict) or not clauses:
        raise SubsetError(f"{file}: a subset is a list of ids or a mapping such as 'max_side: 10'; write one")
    return {key: _parse(str(key), value, str(file)) for key, value in clauses.items()}
