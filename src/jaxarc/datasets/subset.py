"""Some of the tasks of a set: by concept, by shape, by size, the first few."""

import difflib
from collections.abc import Iterable, Sequence

from jaxarc.errors import JaxarcError
from jaxarc.tasks.raw_task import RawTask


class SubsetError(JaxarcError, ValueError):
    """A subset is spelled wrong, or leaves no task."""


class TooLargeWarning(UserWarning):
    """Tasks were left out because they do not fit the canvas."""


def choose_tasks(
    tasks: Sequence[RawTask],
    set_name: str,
    *,
    concept: str | None = None,
    same_shape: bool = False,
    min_side: int | None = None,
    max_side: int | None = None,
    first: int | None = None,
) -> tuple[RawTask, ...]:
    """Keep the tasks that meet every condition, in their order; see :meth:`jaxarc.datasets.TaskSet.select`.

    Raises:
        SubsetError: no task is left; the message names the condition and what would leave one.
    """
    kept = tuple(tasks)
    if concept is not None:
        wanted = normalize_name(concept)
        kept = _unless_empty(
            [task for task in kept if normalize_name(task.concept) == wanted],
            f"select(concept={concept!r}) leaves no task of {set_name!r}; {_nearest_concepts(concept, kept)}",
        )
    if same_shape:
        kept = _unless_empty(
            [task for task in kept if keeps_shape(task)],
            f"select(same_shape=True) leaves no task of {set_name!r}; every one of the {len(kept)} tasks has an output "
            "of another shape than its input",
        )
    if min_side is not None:
        kept = _unless_empty(
            [task for task in kept if max(task.grid_shape) >= min_side],
            f"select(min_side={min_side}) leaves no task of {set_name!r}; "
            f"the largest of the {len(kept)} tasks needs min_side={max(max(task.grid_shape) for task in kept)} or less",
        )
    if max_side is not None:
        kept = _unless_empty(
            [task for task in kept if max(task.grid_shape) <= max_side],
            f"select(max_side={max_side}) leaves no task of {set_name!r}; "
            f"the smallest of the {len(kept)} tasks needs max_side={min(max(task.grid_shape) for task in kept)}",
        )
    if first is not None and first < 1:
        raise SubsetError(f"select(first={first}) leaves no task of {set_name!r}; ask for 1 or more")
    return kept[:first]


def fitting_tasks(tasks: Iterable[RawTask], grid_shape: tuple[int, int]) -> tuple[RawTask, ...]:
    """Keep the tasks whose grids all fit a canvas of ``grid_shape``, rows and columns."""
    height, width = grid_shape
    return tuple(task for task in tasks if task.grid_shape[0] <= height and task.grid_shape[1] <= width)


def keeps_shape(task: RawTask) -> bool:
    """Tell whether every output is as large as its input."""
    return all(source.shape == target.shape for source, target in task.pairs)


def normalize_name(name: str) -> str:
    """Return a name in lower case without dashes, underscores and spaces, so that spellings of it are equal."""
    return "".join(letter for letter in name.lower() if letter not in "-_ ")


def _unless_empty(tasks: list[RawTask], complaint: str) -> tuple[RawTask, ...]:
    if not tasks:
        raise SubsetError(complaint)
    return tuple(tasks)


def _nearest_concepts(concept: str, tasks: Sequence[RawTask]) -> str:
    concepts = sorted({task.concept for task in tasks if task.concept})
    if not concepts:
        return "its tasks have no concepts; leave concept out"
    by_spelling = {normalize_name(name): name for name in concepts}
    near = difflib.get_close_matches(normalize_name(concept), by_spelling, n=2)
    if near:
        return f"did you mean {' or '.join(repr(by_spelling[name]) for name in near)}?"
    return f"its concepts: {', '.join(concepts[:20])}"
