"""Parameters of an environment: its tasks, their weights, and the rules."""

import dataclasses
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Int32

from jaxarc.compilation import as_declared, require_own_jax
from jaxarc.config import AugmentationConfig, JaxArcConfig
from jaxarc.constants import MAX_TRACKED_PAIRS
from jaxarc.device_arrays import device_array, own_arrays
from jaxarc.envs.observations import observation_space
from jaxarc.errors import whole_number
from jaxarc.spaces import Box
from jaxarc.tasks.buffer import SMALLEST_WEIGHT, TaskSource


class EnvParams(eqx.Module):
    """Parameters of an environment: its tasks, their weights, and the rules.

    Arrays may change from call to call without a recompilation; the config is static.

    Raises:
        ValueError: tasks, weights, pair and config do not fit one another.
    """

    tasks: TaskSource  # a TaskBuffer of given tasks, or a TaskGenerator of new ones
    # How often a reset draws each task, relative to their sum: 0 or more, one 1e-30 or more.
    weights: Float[Array, " T"] = eqx.field(converter=own_arrays)
    config: JaxArcConfig = eqx.field(static=True)
    pair_index: Int32[Array, ""] | None = None  # the only pair to play of each task; None: the config says which

    def __check_init__(self) -> None:
        if not isinstance(self.tasks, TaskSource) or not isinstance(self.config, JaxArcConfig):
            kinds = f"{type(self.tasks).__name__} and {type(self.config).__name__}"
            raise TypeError(
                f"params hold a TaskBuffer or TaskGenerator and a JaxArcConfig, got {kinds}; see jaxarc.make"
            )
        if isinstance(self.weights, list | tuple | float | int):
            raise TypeError(
                f"weights must be an array, got {type(self.weights).__name__}; see jaxarc.tasks.uniform_weights"
            )
        if self.tasks.grid_shape != self.config.grid_shape:
            raise ValueError(
                f"the buffer is packed for a canvas of {self.tasks.grid_shape}, but the config's canvas is "
                f"{self.config.grid_shape}; pack it with task_set.buffer(config.grid_shape)"
            )
        needed = self.config.augmentation.num_symmetries
        if self.tasks.max_symmetries < needed:
            raise ValueError(
                f"augmentation.symmetries={self.config.augmentation.symmetries!r} needs {needed} symmetries of every "
                f"pair, but the buffer holds {self.tasks.max_symmetries}; pack it with buffer.with_symmetries({needed})"
            )
        if self.weights.shape != (self.tasks.num_tasks,):
            raise ValueError(
                f"weights must have one entry per task, shape ({self.tasks.num_tasks},), got {self.weights.shape}"
            )
        if not isinstance(self.weights, Tracer):
            _check_weights(np.asarray(self.weights))
        # Solved pairs are bits of an int32, so switching between pairs works for up to 31 of them. Counts are None
        # inside `jit`, where the arrays are traced.
        counts = _counts(self)
        if counts is None:
            return
        if self.config.episode.switches_pairs and counts.max() > MAX_TRACKED_PAIRS:
            raise ValueError(
                f"pair switching tracks at most {MAX_TRACKED_PAIRS} pairs a task, but a task has {counts.max()}; "
                "switch it off or leave the task out"
            )
        if self.pair_index is not None and not isinstance(self.pair_index, Tracer):
            _check_pair(int(self.pair_index), counts, self.weights)

    @property
    def num_tasks(self) -> int:
        """T, those that a reset draws from."""
        return self.tasks.num_tasks

    @property
    def num_slots(self) -> int:
        """Demonstrations that an observation has room for: ``max_demonstrations``, or those of the task with most."""
        return self.config.observation.max_demonstrations or self.tasks.num_slots

    def __repr__(self) -> str:
        """``EnvParams(400 tasks on 30x30, bbox actions, train mode, 100 steps)``; an array layout adds its shape."""
        count = self.tasks.num_tasks
        rules = self.config
        shape = f"{rules.grid_shape[0]}x{rules.grid_shape[1]}"
        tasks = f"{count} {'task' if count == 1 else 'tasks'} on {shape}"
        actions = f"{rules.action.selection_format} actions, {rules.episode.mode} mode"
        space = observation_space(rules, self.num_slots)
        shown = f", observations {space.shape}" if rules.observation.layout != "dict" and isinstance(space, Box) else ""
        return f"EnvParams({tasks}, {actions}, {rules.environment.max_episode_steps} steps{shown})"

    def replace(self, **changes: Any) -> Self:
        """Return params with fields changed by name: those of the params, and those of the config in any group.

        ``params.replace(weights=new)`` needs no compilation; ``params.replace(max_episode_steps=50)`` needs one.

        Raises:
            ConfigValidationError: there is no such field, or a rule is broken.
            ValueError: tasks, weights, pair and config do not fit one another.
        """
        ours = {name: changes.pop(name) for name in ("tasks", "weights", "config", "pair_index") if name in changes}
        config = ours.pop("config", self.config)
        return dataclasses.replace(self, config=config.with_fields(**changes), **ours)

    def without_augmentation(self) -> Self:
        """Return params whose episodes start from the input of an unchanged task."""
        return self.replace(start_grid="input", augmentation=AugmentationConfig())

    def only(self, task_index: int | None = None, pair_index: int | None = None) -> Self:
        """Return params that play this task, or this pair of every task, again and again.

        Only arrays change, so another task needs no compilation, nor does another pair after the first one.

        Args:
            task_index: index of the task in ``tasks``; all tasks as before when left out.
            pair_index: index of the pair among those that the mode plays; as before when left out.

        Raises:
            IndexError: there is no such task or pair.
        """
        self.require_index(task_index, pair_index)
        weights = self.weights
        pair = self.pair_index
        if task_index is not None:
            # One task is a draw with one weight above 0: of 0 0 1 0 every draw gives task 2. No shape changes, nor does
            # a program.
            weights = jnp.zeros_like(weights).at[task_index].set(1)
        if pair_index is not None:
            pair = device_array(pair_index, jnp.int32)
        return dataclasses.replace(self, weights=weights, pair_index=pair)

    def require_index(self, task_index: Int[Array, ""] | int | None, pair_index: Int[Array, ""] | int | None) -> None:
        """Raise when a task or a pair that is given does not exist; values inside ``jit`` pass.

        Raises:
            IndexError: naming what there is.
            TypeError: an index is not a whole number.
        """
        for name, index in (("task_index", task_index), ("pair_index", pair_index)):
            if index is not None and not isinstance(index, Tracer):
                whole_number(index, name, TypeError)
        task = None if isinstance(task_index, Tracer) else task_index
        if task is not None and not 0 <= int(task) < self.tasks.num_tasks:
            raise IndexError(
                f"task_index must be in [0, {self.tasks.num_tasks - 1}], got {int(task)}; pass a task's index"
            )
        counts = _counts(self)
        if pair_index is None or isinstance(pair_index, Tracer) or counts is None:
            return
        # Without a task the pair must exist in some task; in others the nearest one is played.
        count = int(counts.max()) if task is None else int(counts[int(task)])
        if not 0 <= int(pair_index) < count:
            raise IndexError(
                f"pair_index must be in [0, {count - 1}], got {int(pair_index)}: in {self.config.episode.mode} mode "
                f"{'no task' if task is None else f'task {int(task)}'} has more pairs; pass the index of a pair"
            )


def declared_params(params: EnvParams) -> EnvParams:
    """Return params with the dtypes and shapes that they declare; see :func:`as_declared`.

    Raises:
        TypeError: they are no params, or an array has a dtype whose values may not fit.
        ValueError: an array has another shape.
    """
    require_params(params)
    height, width = params.config.grid_shape
    return as_declared(params, "params", HW=height * width, T=params.tasks.num_tasks)


def require_params(params: EnvParams) -> None:
    """Raise a ``TypeError`` when something else is given."""
    require_own_jax()
    if not isinstance(params, EnvParams):
        raise TypeError(
            f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}; "
            "the guide API, arc_reset and arc_step, takes a config"
        )


def _counts(params: EnvParams) -> np.ndarray | None:
    """How many pairs of each task the mode plays; None inside ``jit``."""
    train, test = params.tasks.count_pairs()
    if isinstance(train, Tracer) or isinstance(test, Tracer):
        return None
    # In NumPy: each of these operations in JAX is a program, which takes a tenth of a second to compile.
    train, test = (np.broadcast_to(np.asarray(count), (params.tasks.num_tasks,)) for count in (train, test))
    return {"train": train, "test": test, "trials": train + test}[params.config.episode.mode]


def _check_weights(weights: np.ndarray) -> None:
    if not jnp.issubdtype(weights.dtype, jnp.floating):
        raise TypeError(f"weights must be floating-point numbers, got dtype {weights.dtype}")
    if not np.all(np.isfinite(weights)) or weights.min() < 0 or weights.max() < SMALLEST_WEIGHT:
        raise ValueError(
            f"weights must be finite and 0 or more, one of them at least {SMALLEST_WEIGHT}; they are in "
            f"[{weights.min()}, {weights.max()}]: multiply all by one number"
        )


def _check_pair(pair_index: int, counts: np.ndarray, weights: Array) -> None:
    """Refuse a pair that a task which can be drawn does not have."""
    drawn = np.ones(len(counts), np.bool_) if isinstance(weights, Tracer) else np.asarray(weights) > 0
    fewest = int(counts[drawn].min())
    if not 0 <= pair_index < fewest:
        raise ValueError(
            f"pair_index must be in [0, {fewest - 1}], got {pair_index}: a task with a positive weight has {fewest} "
            "pairs; take another pair, or give weight to tasks that have it"
        )
