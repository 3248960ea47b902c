"""Array aliases with named axes, and the type of a task.

Axes, in this order where they meet: ``D`` devices, ``B`` environments, ``S`` steps in time, ``P`` pairs, ``H`` rows and
``W`` columns of the padded canvas, ``C`` channels. ``T`` tasks, ``N`` pairs of a whole buffer, ``K`` operations. A flat
grid has one axis ``HW`` of ``H * W`` cells, row by row.
"""

import functools
from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Int8, Int32, Key, PyTree, UInt32

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.device_arrays import device_array
from jaxarc.host_arrays import to_numpy
from jaxarc.notebooks import notebook_picture

PRNGKey: TypeAlias = Key[Array, ""] | UInt32[Array, "words"]
"""One random key, typed (``jax.random.key``) or raw (``jax.random.PRNGKey``)."""
Grid: TypeAlias = Int8[Array, "H W"]
"""Colors 0..9 in the top-left active area, -1 outside it."""
FlatGrid: TypeAlias = Int8[Array, " HW"]
Mask: TypeAlias = Bool[Array, "H W"]
Observation: TypeAlias = PyTree[Array]
Info: TypeAlias = dict[str, Array]
Reward: TypeAlias = Float[Array, ""]
Done: TypeAlias = Bool[Array, ""]

__all__ = [
    "Done",
    "FlatGrid",
    "Grid",
    "Info",
    "JaxArcTask",
    "Mask",
    "Observation",
    "PRNGKey",
    "Reward",
    "cell_columns",
    "cell_rows",
    "round_up",
]


@functools.cache
def cell_rows(shape: tuple[int, int]) -> Int8[np.ndarray, " HW"]:
    """Row of each cell of a flat grid, a constant; for 2x3: 0 0 0 1 1 1."""
    return np.repeat(np.arange(shape[0]), shape[1]).astype(np.int8)


@functools.cache
def cell_columns(shape: tuple[int, int]) -> Int8[np.ndarray, " HW"]:
    """Column of each cell of a flat grid, a constant; for 2x3: 0 1 2 0 1 2."""
    return np.tile(np.arange(shape[1]), shape[0]).astype(np.int8)


def round_up(size: int, multiple: int) -> int:
    """Return the first multiple that is not below a size: 10 rows on 4 devices are 12."""
    return -(-size // multiple) * multiple


def _colors(grids: Int[Array, "P H W"] | np.ndarray) -> Int8[Array, "P H W"]:
    """Cast grids of any integer dtype to int8, refusing values that are neither a color nor padding."""
    if isinstance(grids, Tracer):
        return jnp.asarray(grids).astype(jnp.int8)
    values = to_numpy(grids)
    if not np.issubdtype(values.dtype, np.integer):
        raise TypeError(f"task grids must hold integers, got dtype {values.dtype}; cast them to int8 first")
    wrong = (values < PADDING) | (values >= NUM_COLORS)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"task grids hold colors 0..{NUM_COLORS - 1} and {PADDING} for padding, got {int(values[where])} at "
            f"(pair, row, column) {where}; recolor or crop the grid"
        )
    return device_array(values, jnp.int8)


def _int32(value: Int[Array, ""] | int) -> Int32[Array, ""]:
    return device_array(value, jnp.int32)


class JaxArcTask(eqx.Module):
    """One ARC task: demonstration pairs and test pairs, padded to one shape.

    Grids are stored as int8, whatever integer dtype they come in: the active area at the top left, and -1 outside it.
    The number of slots ``P`` may exceed the number of pairs that exist.

    Raises:
        TypeError: a grid does not hold integers.
        ValueError: a cell is neither a color nor padding, or shapes disagree.
    """

    input_grids_examples: Int8[Array, "P H W"] = eqx.field(converter=_colors)
    output_grids_examples: Int8[Array, "P H W"] = eqx.field(converter=_colors)
    num_train_pairs: Int32[Array, ""] = eqx.field(converter=_int32)  # 1 .. P
    test_input_grids: Int8[Array, "Q H W"] = eqx.field(converter=_colors)
    true_test_output_grids: Int8[Array, "Q H W"] = eqx.field(converter=_colors)
    num_test_pairs: Int32[Array, ""] = eqx.field(converter=_int32)  # 1 .. Q
    task_index: Int32[Array, ""] = eqx.field(converter=_int32)  # index in the registry of task ids

    def __check_init__(self) -> None:
        canvas = self.input_grids_examples.shape[-2:]
        for name in ("input_grids_examples", "output_grids_examples", "test_input_grids", "true_test_output_grids"):
            shape = getattr(self, name).shape
            if len(shape) != 3 or shape[-2:] != canvas:
                raise ValueError(
                    f"{name} has shape {shape}; every grid of a task must be (pairs, H, W) with the same H and W, here "
                    f"{canvas}"
                )
        if self.input_grids_examples.shape != self.output_grids_examples.shape:
            raise ValueError("demonstrations need as many outputs as inputs")
        if self.test_input_grids.shape != self.true_test_output_grids.shape:
            raise ValueError("tests need as many outputs as inputs")

    @property
    def input_masks_examples(self) -> Bool[Array, "P H W"]:
        """True in the active areas of the inputs of demonstrations; the next three are for the other grids."""
        return self.input_grids_examples > PADDING

    @property
    def output_masks_examples(self) -> Bool[Array, "P H W"]:
        return self.output_grids_examples > PADDING

    @property
    def test_input_masks(self) -> Bool[Array, "Q H W"]:
        return self.test_input_grids > PADDING

    @property
    def true_test_output_masks(self) -> Bool[Array, "Q H W"]:
        return self.true_test_output_grids > PADDING

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the padded canvas, ``(H, W)``."""
        height, width = self.input_grids_examples.shape[-2:]
        return height, width

    def __repr__(self) -> str:
        if isinstance(self.num_train_pairs, Tracer) or self.num_train_pairs.ndim:  # inside jit, or a batch of tasks
            return f"JaxArcTask(grids int8{list(self.input_grids_examples.shape)})"
        height, width = self.grid_shape
        return f"JaxArcTask({self.num_train_pairs} train + {self.num_test_pairs} test, canvas {height}x{width})"

    def _repr_svg_(self) -> str | None:
        return notebook_picture(self)
