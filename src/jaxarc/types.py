"""Array aliases with named axes, and the type of a task.

Axes, in this order where they meet: ``D`` devices, ``B`` environments, ``S`` steps in time, ``P`` pairs, ``H`` rows and
``W`` columns of the padded canvas, ``C`` channels. ``T`` tasks, ``N`` pairs of a whole buffer, ``K`` operations. A flat
grid has one axis ``HW`` of ``H * W`` cells, row by row.
"""

from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Int8, Int32, Key, PyTree, UInt32

from jaxarc.constants import NUM_COLORS, PADDING
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

__all__ = ["Done", "FlatGrid", "Grid", "Info", "JaxArcTask", "Mask", "Observation", "PRNGKey", "Reward"]


def _colors(grids: Int[Array, "P H W"] | np.ndarray) -> Int8[Array, "P H W"]:
    """Cast grids of any integer dtype to int8, refusing values that are neither a color nor padding."""
    if isinstance(grids, Tracer):
        return jnp.asarray(grids).astype(jnp.int8)
    values = np.asarray(grids)
    if not np.issubdtype(values.dtype, np.integer):
        raise TypeError(f"task grids must hold integers, got dtype {values.dtype}; cast them to int8 first")
    wrong = (values < PADDING) | (values >= NUM_COLORS)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"task grids hold colors 0..{NUM_COLORS - 1} and {PADDING} for padding, got {int(values[where])} at "
            f"(pair, row, column) {where}; recolor or crop the grid"
        )
    return jnp.asarray(values, jnp.int8)


def _mask(mask: Bool[Array, "P H W"] | np.ndarray) -> Bool[Array, "P H W"]:
    return jnp.asarray(mask, jnp.bool_)


def _int32(value: Int[Array, ""] | int) -> Int32[Array, ""]:
    return jnp.asarray(value, jnp.int32)


class JaxArcTask(eqx.Module):
    """One ARC task: demonstration pairs and test pairs, padded to one shape.

    Grids are stored as int8 with -1 as padding, whatever integer dtype they come in; masks are true in the active area,
    which starts at the top-left corner. The number of slots ``P`` may exceed the number of pairs that exist.

    Raises:
        TypeError: a grid does not hold integers.
        ValueError: a cell is neither a color nor padding, shapes disagree, or a mask is not its grid's active area.
    """

    input_grids_examples: Int8[Array, "P H W"] = eqx.field(converter=_colors)
    input_masks_examples: Bool[Array, "P H W"] = eqx.field(converter=_mask)
    output_grids_examples: Int8[Array, "P H W"] = eqx.field(converter=_colors)
    output_masks_examples: Bool[Array, "P H W"] = eqx.field(converter=_mask)
    num_train_pairs: Int32[Array, ""] = eqx.field(converter=_int32)  # 1 .. P
    test_input_grids: Int8[Array, "Q H W"] = eqx.field(converter=_colors)
    test_input_masks: Bool[Array, "Q H W"] = eqx.field(converter=_mask)
    true_test_output_grids: Int8[Array, "Q H W"] = eqx.field(converter=_colors)
    true_test_output_masks: Bool[Array, "Q H W"] = eqx.field(converter=_mask)
    num_test_pairs: Int32[Array, ""] = eqx.field(converter=_int32)  # 1 .. Q
    task_index: Int32[Array, ""] = eqx.field(converter=_int32)  # index in the registry of task ids

    def __check_init__(self) -> None:
        grids = {
            "input_grids_examples": (self.input_grids_examples, self.input_masks_examples),
            "output_grids_examples": (self.output_grids_examples, self.output_masks_examples),
            "test_input_grids": (self.test_input_grids, self.test_input_masks),
            "true_test_output_grids": (self.true_test_output_grids, self.true_test_output_masks),
        }
        canvas = self.input_grids_examples.shape[-2:]
        for name, (grid, mask) in grids.items():
            if grid.ndim != 3 or grid.shape[-2:] != canvas or grid.shape != mask.shape:
                raise ValueError(
                    f"{name} has shape {grid.shape} and its mask {mask.shape}; every grid and mask of a task must be "
                    f"(pairs, H, W) with the same H and W, here {canvas}"
                )
            if isinstance(grid, Tracer) or isinstance(mask, Tracer):
                continue
            if np.any((np.asarray(grid) >= 0) != np.asarray(mask)):
                raise ValueError(f"{name}: the mask must be true exactly where the grid is not padding ({PADDING})")
        if self.input_grids_examples.shape != self.output_grids_examples.shape:
            raise ValueError("demonstrations need as many outputs as inputs")
        if self.test_input_grids.shape != self.true_test_output_grids.shape:
            raise ValueError("tests need as many outputs as inputs")

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
