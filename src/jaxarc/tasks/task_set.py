"""A named list of tasks on the host: look one up, choose some, put all on the device."""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator
from functools import cached_property

import jax

from jaxarc.tasks.buffer import TaskBuffer, pack_tasks
from jaxarc.tasks.raw_task import RawTask, check_canvas
from jaxarc.tasks.registry import UnknownTaskError, register_task
from jaxarc.tasks.task import pad_task
from jaxarc.types import JaxArcTask, PRNGKey

__all__ = ["RawTask", "TaskSet"]


@dataclasses.dataclass(frozen=True, eq=False)
class TaskSet:
    """Tasks in a fixed order, which is also their order in the buffer.

    Tasks and buffer are padded to ``grid_shape``: the chosen canvas, or else the smallest that holds every task.

    Raises:
        ValueError: there is no task, two tasks share an id, or the canvas is not in 1..30.
    """

    name: str
    tasks: tuple[RawTask, ...]
    canvas: tuple[int, int] | None = None  # rows and columns to pad to; None: max_grid_shape

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", tuple(self.tasks))
        if not self.tasks:
            raise ValueError(f"task set {self.name!r} is empty; it needs at least one task")
        if self.canvas is not None:
            object.__setattr__(self, "canvas", check_canvas(self.canvas))
        if len(self._places) != len(self.tasks):
            repeated = next(task.task_id for i, task in enumerate(self.tasks) if self._places[task.task_id] != i)
            raise ValueError(
                f"task set {self.name!r} has two tasks with the id {repeated!r}; ids are unique, rename one"
            )

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[RawTask]:
        return iter(self.tasks)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._places

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Ids in the order of the buffer."""
        return tuple(task.task_id for task in self.tasks)

    @cached_property
    def max_grid_shape(self) -> tuple[int, int]:
        """Rows of the highest and columns of the widest grid of all tasks."""
        shapes = [task.grid_shape for task in self.tasks]
        return max(height for height, _ in shapes), max(width for _, width in shapes)

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns ``(H, W)`` that tasks and buffer are padded to by default."""
        return self.max_grid_shape if self.canvas is None else self.canvas

    def index_of(self, task_id: str) -> int:
        """Return the place of a task in this set, which is its place in the buffer.

        Raises:
            UnknownTaskError: a ``KeyError`` that names the nearest ids.
        """
        if task_id not in self._places:
            near = difflib.get_close_matches(str(task_id), self._places, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(map(repr, near))}?" if near else f"ids look like {self.task_ids[0]!r}"
            raise UnknownTaskError(f"{self.name!r} has no task {task_id!r} among its {len(self)} tasks; {hint}")
        return self._places[task_id]

    def raw_task(self, task_id: str) -> RawTask:
        """Return the unpadded task, or raise ``UnknownTaskError``."""
        return self.tasks[self.index_of(task_id)]

    def get_task_by_id(self, task_id: str, grid_shape: tuple[int, int] | None = None) -> JaxArcTask:
        """Return one task padded to ``grid_shape``, by default the canvas of this set, with its id registered.

        Raises:
            UnknownTaskError: a ``KeyError`` that names the nearest ids.
            ValueError: the task does not fit ``grid_shape``.
        """
        return pad_task(self.raw_task(task_id), grid_shape or self.grid_shape, register_task(task_id))

    def get_random_task(self, key: PRNGKey) -> JaxArcTask:
        """Return one task of this set, each as likely as any other."""
        return self.get_task_by_id(self.task_ids[int(jax.random.randint(key, (), 0, len(self)))])

    def get_available_task_ids(self) -> list[str]:
        """List the ids in the order of the buffer."""
        return list(self.task_ids)

    def on_canvas(self, grid_shape: tuple[int, int]) -> "TaskSet":
        """Return the same tasks, padded to ``grid_shape`` by default.

        Raises:
            ValueError: a side is not in 1..30.
        """
        return dataclasses.replace(self, canvas=grid_shape)

    def select(self, ids: Iterable[str] | None = None, max_side: int | None = None) -> "TaskSet":
        """Keep the tasks named by ``ids``, in that order, and those whose grids all have sides up to ``max_side``.

        Raises:
            UnknownTaskError: a ``KeyError``; an id is not in this set.
            ValueError: nothing is left, or an id is named twice.
        """
        if isinstance(ids, str):
            raise ValueError(f"ids must be a list of task ids, got the string {ids!r}; write [{ids!r}]")
        named = self.tasks if ids is None else tuple(self.raw_task(task_id) for task_id in ids)
        if not named:
            raise ValueError(f"select(ids=[]) leaves no task of {self.name!r}; name at least one id, or leave ids out")
        kept = [task for task in named if max_side is None or max(task.grid_shape) <= max_side]
        if not kept:
            smallest = min(max(task.grid_shape) for task in named)
            raise ValueError(
                f"select(max_side={max_side}) leaves no task of {self.name!r}; "
                f"the smallest of the {len(named)} tasks needs max_side={smallest}"
            )
        return TaskSet(f"{self.name} ({len(kept)} of {len(self)} tasks)", tuple(kept), self.canvas)

    def buffer(self, grid_shape: tuple[int, int] | None = None) -> TaskBuffer:
        """Put all tasks on the device, padded to ``grid_shape``, by default the canvas of this set.

        Raises:
            ValueError: a task does not fit; the message names it, its size, the canvas and what to do.
        """
        return pack_tasks(self.tasks, grid_shape or self.grid_shape)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {task.task_id: place for place, task in enumerate(self.tasks)}
