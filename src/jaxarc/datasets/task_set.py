"""A named list of tasks on the host: look one up, choose some, put all on the device."""

import collections
import dataclasses
import difflib
import hashlib
import math
import numbers
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, overload

import numpy as np

from jaxarc.config.environment_rules import TOO_LARGE
from jaxarc.datasets.selectors import SubsetError, choose_tasks, fitting_tasks
from jaxarc.notebooks import notebook_html
from jaxarc.tasks.packed_tasks import PackedTasks
from jaxarc.tasks.raw_task import NUM_SHOWN, RawTask, check_canvas, check_fits
from jaxarc.tasks.registry import UnknownTaskError, register_task

if TYPE_CHECKING:  # what needs JAX loads it when it is called, so that files are read and drawn without it
    from jaxtyping import Array, Float32

    from jaxarc.tasks.buffer import TaskBuffer
    from jaxarc.tasks.pair_pool import PairPool
    from jaxarc.types import JaxArcTask, PRNGKey


_SUBSET: Final = re.compile(r"(.*) \(\d+ of (\d+) tasks\)")  # the name of a subset
_INNERMOST: Final = re.compile(r"\([^()]*\)")


@dataclasses.dataclass(frozen=True, eq=False)
class TaskSet:
    """Tasks in a fixed order, which is also their order in the buffer.

    Iteration, ``tasks[0]`` and ``tasks["007bbfb7"]`` give a :class:`~jaxarc.tasks.RawTask`, whose grids have their own
    size; a slice gives a task set. :meth:`get_task_by_id` gives a padded
    :class:`~jaxarc.types.JaxArcTask` for the guide API.

    Tasks and buffer are padded to ``grid_shape``: the chosen canvas, or else the smallest that holds every task.

    Raises:
        ValueError: there is no task, two tasks share an id, or the canvas is not in 1..30.
    """

    name: str
    tasks: Sequence[RawTask]  # a tuple, or packed where there are many
    canvas: tuple[int, int] | None = None  # rows and columns to pad to; None: max_grid_shape

    def __post_init__(self) -> None:
        if not isinstance(self.tasks, PackedTasks):
            object.__setattr__(self, "tasks", tuple(self.tasks))
        if not self.tasks:
            raise ValueError(f"task set {self.name!r} is empty; it needs at least one task")
        if self.canvas is not None:
            object.__setattr__(self, "canvas", check_canvas(self.canvas))
        if len(set(self.task_ids)) != len(self.tasks):
            repeated = next(task_id for i, task_id in enumerate(self.task_ids) if self._indices[task_id] != i)
            raise ValueError(
                f"task set {self.name!r} has two tasks with the id {repeated!r}; ids are unique, rename one"
            )

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[RawTask]:
        return iter(self.tasks)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._indices

    @overload
    def __getitem__(self, which: int | str) -> RawTask: ...

    @overload
    def __getitem__(self, which: slice) -> "TaskSet": ...

    def __getitem__(self, which: int | str | slice) -> "RawTask | TaskSet":
        """Return a task by index or id, or a task set of a slice.

        Raises:
            IndexError: there is no such index.
            UnknownTaskError: a ``KeyError``; there is no such id. Names the nearest ones.
            ValueError: the slice is empty.
        """
        if isinstance(which, str):
            return self.raw_task(which)
        if isinstance(which, slice):
            return self._subset(self.tasks[which])
        index = operator.index(which)
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name!r} has the tasks 0..{len(self) - 1}, got the index {index}; choose one")
        return self.tasks[index]

    def __repr__(self) -> str:
        height, width = self.max_grid_shape
        count = f"{len(self)} task{'s' * (len(self) != 1)}"
        if self.has_pools:
            count += f" of {sum(len(task.all_pairs) for task in self):,} pairs"
        return f"TaskSet({self.name!r}, {count}, largest {height}x{width})"

    def _repr_html_(self) -> str | None:
        return notebook_html(self)

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Ids in the order of the buffer."""
        if isinstance(self.tasks, PackedTasks):
            return tuple(self.tasks.task_ids)
        return tuple(task.task_id for task in self.tasks)

    @property
    def titles(self) -> tuple[str, ...]:
        """Names for people in the order of the buffer; empty texts where the ids say enough."""
        if isinstance(self.tasks, PackedTasks):
            return tuple(self.tasks.titles)
        return tuple(task.title for task in self.tasks)

    @cached_property
    def max_grid_shape(self) -> tuple[int, int]:
        """Rows of the highest and columns of the widest grid of all tasks."""
        if isinstance(self.tasks, PackedTasks):
            return self.tasks.grid_shape
        shapes = [task.grid_shape for task in self.tasks]
        return max(height for height, _ in shapes), max(width for _, width in shapes)

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns ``(H, W)`` that tasks and buffer are padded to by default."""
        return self.max_grid_shape if self.canvas is None else self.canvas

    @property
    def max_pairs(self) -> tuple[int, int]:
        """Demonstrations of the task that has most, and tests of the one that has most."""
        if isinstance(self.tasks, PackedTasks):
            return self.tasks.max_pairs
        return max(len(task.train) for task in self.tasks), max(len(task.test) for task in self.tasks)

    @property
    def num_pairs(self) -> tuple[int, int]:
        """How many demonstrations and how many tests all tasks have together."""
        if isinstance(self.tasks, PackedTasks):
            num_train, num_test, _ = self.tasks.counts.sum(axis=0).tolist()
            return num_train, num_test
        return sum(len(task.train) for task in self.tasks), sum(len(task.test) for task in self.tasks)

    @property
    def has_answers(self) -> bool:
        """Whether the output of every test pair is known; of a hidden test set it is not."""
        if isinstance(self.tasks, PackedTasks):
            return self.tasks.has_answers
        return all(task.has_answers for task in self.tasks)

    @property
    def has_pools(self) -> bool:
        """Whether tasks have more pairs than they show, so that ``make`` draws the pairs of each episode."""
        if isinstance(self.tasks, PackedTasks):
            return self.tasks.has_pools
        return any(task.pool for task in self.tasks)

    def index_of(self, task_id: str) -> int:
        """Return the index of a task in this set, which is its index in the buffer too.

        Raises:
            UnknownTaskError: a ``KeyError`` that names the nearest ids.
        """
        if task_id not in self._indices:
            near = difflib.get_close_matches(str(task_id), self._indices, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(map(repr, near))}?" if near else f"ids look like {self.task_ids[0]!r}"
            raise UnknownTaskError(f"{self.name!r} has no task {task_id!r:.200} among its {len(self)} tasks; {hint}")
        return self._indices[task_id]

    def raw_task(self, task_id: str) -> RawTask:
        """Return the unpadded task, or raise ``UnknownTaskError``."""
        return self.tasks[self.index_of(task_id)]

    def get_task_by_id(
        self,
        task_id: str,
        grid_shape: tuple[int, int] | None = None,
        max_pairs: tuple[int, int] | None = None,
    ) -> "JaxArcTask":
        """Return one task padded to ``grid_shape``, by default the canvas of this set, with its id registered.

        Args:
            task_id: the id.
            grid_shape: rows and columns of the canvas.
            max_pairs: slots for demonstrations and for tests, see :attr:`max_pairs`; by default one for each pair.

        Raises:
            UnknownTaskError: a ``KeyError`` that names the nearest ids.
            ValueError: the task does not fit ``grid_shape``, or has more pairs than slots.
        """
        from jaxarc.tasks.task import pad_task

        return pad_task(self.raw_task(task_id), grid_shape or self.grid_shape, register_task(task_id), max_pairs)

    def get_random_task(self, key: "PRNGKey") -> "JaxArcTask":
        """Return one task of this set, each as likely as any other."""
        import jax

        return self.get_task_by_id(self.task_ids[int(jax.random.randint(key, (), 0, len(self)))])

    def sample(self, key: "PRNGKey | int", count: int = 1) -> "TaskSet":
        """Return ``count`` different tasks in a random order, the same ones for the same key or seed.

        Raises:
            ValueError: ``count`` is not in 1..``len(self)``.
            TypeError: it is no whole number.
        """
        count = operator.index(count)
        if not 1 <= count <= len(self):
            raise ValueError(f"a sample of {self.name!r} has 1..{len(self)} tasks, got count={count}; change it")
        return self._subset([self.tasks[index] for index in self._shuffled(key)[:count]])

    def split(self, size: float, key: "PRNGKey | int" = 0) -> "tuple[TaskSet, TaskSet]":
        """Split the tasks at random in two sets, to train on and to hold out, the same ones for the same key or seed.

        Args:
            size: of the first set: how many tasks, a whole number, or their share, another number in 0 .. 1.
            key: a key or a seed.

        Returns:
            Both sets, each in the order of this one.

        Raises:
            ValueError: a set would be empty.
            TypeError: the size is no number.
        """
        if isinstance(size, bool) or not isinstance(size, numbers.Real):
            raise TypeError(f"size must be a count of tasks or a share of them, got {size!r:.60}; write 40 or 0.1")
        is_share = not isinstance(size, numbers.Integral)
        count = int(size) if not is_share else round(float(size) * len(self)) if math.isfinite(size) else 0
        if not 1 <= count < len(self):
            raise ValueError(
                f"a split of {self.name!r} leaves 1..{len(self) - 1} tasks in the first set, got size={size}, which is "
                f"{count} tasks; change it"
            )
        order = self._shuffled(key)
        first, second = (self._subset([self.tasks[i] for i in sorted(part)]) for part in (order[:count], order[count:]))
        return first, second

    def __add__(self, other: "TaskSet") -> "TaskSet":
        """Return the tasks of both sets, those of this one first; a canvas stays where both have the same.

        Raises:
            ValueError: a task of both has the same id.
        """
        if not isinstance(other, TaskSet):
            return NotImplemented
        canvas = self.canvas if self.canvas == other.canvas else None
        return TaskSet(f"{self.name} + {other.name}", (*self.tasks, *other.tasks), canvas)

    def get_available_task_ids(self) -> list[str]:
        """List the ids in the order of the buffer."""
        return list(self.task_ids)

    def on_canvas(self, grid_shape: tuple[int, int]) -> "TaskSet":
        """Return the same tasks, padded to ``grid_shape`` by default.

        Raises:
            ValueError: a side is not in 1..30.
        """
        return dataclasses.replace(self, canvas=grid_shape)

    def by_size(self, sides: Sequence[int] | None = None) -> "tuple[TaskSet, ...]":
        """Split the tasks by the smallest square canvas that holds each: small grids are then small arrays, too.

        Args:
            sides: of the canvases, rising; by default at most five, on which all tasks have fewest cells in sum.

        Returns:
            A set for each canvas that has tasks, padded to it by default, the smallest first.

        Raises:
            ValueError: the sides do not rise within 1..30, or the last canvas is too small for a task.
        """
        largest = [max(task.grid_shape) for task in self.tasks]
        chosen = tuple(cheapest_sides(largest) if sides is None else map(operator.index, sides))
        for side in chosen:
            check_canvas((side, side))
        if list(chosen) != sorted(set(chosen)):
            raise ValueError(f"the sides of canvases must rise, got {list(chosen)}; write them from small to large")
        if not chosen or chosen[-1] < max(largest):
            task = self.tasks[largest.index(max(largest))]
            raise ValueError(
                f"task {task.task_id!r} of {self.name!r} needs a canvas of {max(largest)}x{max(largest)}, and the "
                f"largest is {chosen[-1] if chosen else 0}; add {max(largest)} to the sides {list(chosen)}"
            )
        groups = []
        for smaller, side in zip((0, *chosen), chosen, strict=False):
            if tasks := [task for task, needed in zip(self.tasks, largest, strict=True) if smaller < needed <= side]:
                groups.append(self._subset(tasks).on_canvas((side, side)))
        return tuple(groups)

    def fit(self, grid_shape: tuple[int, int], too_large: str = "refuse") -> "TaskSet":
        """Return the tasks that fit a canvas, padded to it by default.

        Args:
            grid_shape: rows and columns ``(H, W)`` of the canvas.
            too_large: what happens to the others: ``refuse`` raises, ``skip`` leaves them out; of tasks with pools the
                pairs that do not fit, and tasks that have no test and three demonstrations then.

        Raises:
            ValueError: a task is too large and ``too_large`` is ``refuse``, no task fits, or an argument is wrong.
        """
        if too_large not in TOO_LARGE:
            raise ValueError(f"too_large is one of {', '.join(map(repr, TOO_LARGE))}, got {too_large!r}; choose one")
        shape = check_canvas(grid_shape)
        height, width = self.max_grid_shape
        if height <= shape[0] and width <= shape[1]:
            return self.on_canvas(shape)
        if too_large == "refuse":
            for task in self.tasks:
                check_fits(task, shape)
        kept = tuple(_fitting_pools(self, shape)) if self.has_pools else fitting_tasks(self, shape)
        if not kept:
            raise SubsetError(
                f"no task of {self.name!r} fits the canvas {shape[0]}x{shape[1]}; {height}x{width} holds all"
            )
        fitting = self if len(kept) == len(self) else self._subset(kept)
        return dataclasses.replace(fitting, tasks=kept, canvas=shape)

    def select(
        self,
        ids: Iterable[str] | None = None,
        max_side: int | None = None,
        *,
        min_side: int | None = None,
        max_demonstrations: int | None = None,
        min_demonstrations: int | None = None,
        max_colors: int | None = None,
        min_colors: int | None = None,
        same_shape: bool = False,
        output_fits_input: bool = False,
        concept: str | None = None,
        without: Iterable[str] = (),
        first: int | None = None,
    ) -> "TaskSet":
        """Keep the tasks that meet every condition.

        Args:
            ids: these tasks, in this order.
            max_side: tasks whose largest grid side is at most this.
            min_side: tasks whose largest grid side is at least this.
            max_demonstrations: tasks with at most as many demonstrations.
            min_demonstrations: tasks with at least as many.
            max_colors: tasks whose grids have at most as many different colors, black included.
            min_colors: tasks whose grids have at least as many.
            same_shape: tasks whose outputs are all as large as their inputs.
            output_fits_input: tasks whose outputs are all no higher and no wider than their inputs.
            concept: tasks of this concept; case, dashes, underscores and spaces do not count.
            without: not these tasks.
            first: of all that are left, this many from the front.

        Raises:
            UnknownTaskError: a ``KeyError``; an id of ``ids`` or ``without`` is not in this set.
            SubsetError: a ``ValueError``; nothing is left. Says which condition left nothing, and what would.
            ValueError: an id is named twice.
        """
        if isinstance(ids, str) or isinstance(without, str):
            named = ids if isinstance(ids, str) else without
            raise ValueError(f"ids must be a list of task ids, got the string {named!r}; write [{named!r}]")
        # Through ``raw_task``, so that an id that does not exist is an error here too, with near matches.
        left_out = {self.raw_task(task_id).task_id for task_id in without}
        asked = self.tasks if ids is None else tuple(self.raw_task(task_id) for task_id in ids)
        if not asked:
            raise SubsetError(f"select(ids=[]) leaves no task of {self.name!r}; name at least one id, or leave ids out")
        kept = tuple(task for task in asked if task.task_id not in left_out) if left_out else asked
        if not kept:
            raise SubsetError(f"select(without=...) leaves no task of {self.name!r}; it names all {len(asked)} tasks")
        conditions = {
            "concept": concept,
            "same_shape": same_shape,
            "output_fits_input": output_fits_input,
            "min_side": min_side,
            "max_side": max_side,
            "min_demonstrations": min_demonstrations,
            "max_demonstrations": max_demonstrations,
            "min_colors": min_colors,
            "max_colors": max_colors,
            "first": first,
        }
        chosen = choose_tasks(kept, self.name, conditions)
        return self._subset(chosen)

    def buffer(self, grid_shape: tuple[int, int] | None = None) -> "TaskBuffer":
        """Put all tasks on the device, padded to ``grid_shape``, by default the canvas of this set.

        Raises:
            ValueError: a task does not fit; the message names it, its size, the canvas and what to do.
        """
        from jaxarc.tasks.buffer import pack_tasks

        return pack_tasks(self.tasks, grid_shape or self.grid_shape)

    def pair_pool(
        self, grid_shape: tuple[int, int] | None = None, num_train: int = NUM_SHOWN, num_test: int = 1
    ) -> "PairPool":
        """Put all pairs on the device, pools too; each reset draws the demonstrations and the tests of its task.

        Args:
            grid_shape: rows and columns of the canvas, by default that of this set.
            num_train: demonstrations of an episode.
            num_test: tests of an episode.

        Raises:
            ValueError: a task does not fit or has fewer pairs than an episode needs; names it and what to do.
        """
        from jaxarc.tasks.pair_pool import pack_pool_tasks

        return pack_pool_tasks(self.tasks, grid_shape or self.grid_shape, num_train, num_test)

    def _shuffled(self, key: "PRNGKey | int") -> list[int]:
        import jax

        from jaxarc.prng import as_typed_key

        key = jax.random.key(int(key)) if isinstance(key, int | np.integer) else as_typed_key(key)
        return jax.random.permutation(key, len(self)).tolist()

    def _subset(self, tasks: Sequence[RawTask]) -> "TaskSet":
        # A subset of a subset names the whole set and how many tasks it has, not each step on the way.
        name, total = self.name, str(len(self))
        outside = name  # of all parentheses: "a (2 of 9 tasks) + b" is a sum, whose last part has a count of its own
        while (shorter := _INNERMOST.sub("", outside)) != outside:
            outside = shorter
        if " + " in outside:
            name = f"({name})"
        elif part := _SUBSET.fullmatch(name):
            name, total = part.groups()
        return TaskSet(f"{name} ({len(tasks)} of {total} tasks)", tasks, self.canvas)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {task_id: index for index, task_id in enumerate(self.task_ids)}


def choose_sides(canvases: Sequence[int] | Literal["auto"], tasks: TaskSet) -> tuple[int, ...]:
    """Return the sides of a config's canvases; ``"auto"`` are the best three for all tasks.

    Each canvas compiles programs of its own. Of the pairs of ARC-AGI-1 three canvases leave 276 of 900 cells, four 237.
    """
    if canvases == "auto":
        return tuple(cheapest_sides([max(task.grid_shape) for task in tasks], most=3))
    return tuple(canvases)


def cheapest_sides(largest: Sequence[int], most: int = 5) -> list[int]:
    """Choose sides of canvases such that tasks on the smallest that holds each have fewest cells in sum.

    Of tasks with largest sides 3, 3, 4 and 10 two canvases are 4 and 10: 3 * 16 + 100 cells, where 3 and 10 have 218.

    Args:
        largest: of each task, the largest side of its grids.
        most: number of canvases at most.
    """
    counts = collections.Counter(largest)
    sides = sorted(counts)
    # cheapest[side]: cells in sum of all tasks up to a side that is a canvas, and the canvases.
    cheapest = {side: (side**2 * sum(counts[s] for s in sides if s <= side), [side]) for side in sides}
    for _ in range(most - 1):
        cheapest = {
            side: min(
                [
                    cheapest[side],
                    *(
                        (cells + side**2 * sum(counts[s] for s in sides if below < s <= side), [*chosen, side])
                        for below, (cells, chosen) in cheapest.items()
                        if below < side
                    ),
                ]
            )
            for side in sides
        }
    return cheapest[sides[-1]][1]


def digest_of(tasks: Iterable[RawTask]) -> str:
    """Return the SHA-256, 64 hexadecimal digits, of the grids of all tasks.

    Equal for the same tasks in any order and under any names; another pair order, one changed cell, or one task more or
    less give another digest.
    """
    return hashlib.sha256(b"".join(sorted(_digest_of_task(task) for task in tasks))).hexdigest()


def task_weights(task_set: TaskSet, chosen: Iterable[str] | Mapping[str, float]) -> "Float32[Array, ' T']":
    """Weigh the tasks of a set by id, normalized to sum to one; a task that is not named gets 0.

    Args:
        task_set: the tasks, in the order of its buffer.
        chosen: ids that share the weight equally, or a weight for each id.

    Raises:
        UnknownTaskError: a ``KeyError``; the set has no task of that id.
        ValueError: an id is named twice, a weight is negative or not finite, or no weight is positive.
    """
    if isinstance(chosen, str):
        raise ValueError(f"chosen must be a list of ids or a mapping from id to weight, got the string {chosen!r}")
    named = list(chosen.items()) if isinstance(chosen, Mapping) else [(task_id, 1.0) for task_id in chosen]
    # Three tasks and {"b": 3, "c": 1} give 0, 3/4, 1/4, in the order of the set.
    weights = np.zeros(len(task_set), np.float64)
    seen: set[str] = set()
    for task_id, weight in named:
        if task_id in seen:
            raise ValueError(f"task {task_id!r} is named twice; name it once or pass a mapping from id to weight")
        seen.add(task_id)
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(f"the weight of task {task_id!r} must be finite and at least 0, got {weight}")
        weights[task_set.index_of(task_id)] = weight
    if not weights.sum() > 0:
        raise ValueError(f"at least one task needs a positive weight, got {len(named)} weights that sum to 0")
    import jax.numpy as jnp

    return jnp.asarray(weights / weights.sum(), jnp.float32)


def _fitting_pools(tasks: Iterable[RawTask], grid_shape: tuple[int, int]) -> Iterator[RawTask]:
    """Keep the pairs that fit a canvas, and the tasks that still have a test and three demonstrations."""
    height, width = grid_shape
    for task in tasks:
        pairs = [pair for pair in task.all_pairs if all(g.shape[0] <= height and g.shape[1] <= width for g in pair)]
        if len(pairs) > NUM_SHOWN:
            yield RawTask.of_pool(task.task_id, pairs, task.title, task.concept)


def _digest_of_task(task: RawTask) -> bytes:
    # Counts and sizes go in front of the cells: without them 2x3 and 3x2 grids of the same cells would look alike.
    found = hashlib.sha256(bytes([len(task.train), len(task.test)]))
    for pair in task.all_pairs:
        for grid in pair:
            found.update(bytes(grid.shape))
            found.update(grid.tobytes())
    return found.digest()
