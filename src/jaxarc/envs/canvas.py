"""What operations edit: the canvas, the command that edits it, and the pairs it can load."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int8, Int32, UInt32

from jaxarc.tasks.buffer import RowSplit

HEIGHT, WIDTH, TARGET_HEIGHT, TARGET_WIDTH, CLIPBOARD_HEIGHT, CLIPBOARD_WIDTH = range(6)


class Canvas(eqx.Module):
    """The editable part of a state."""

    grid: Int8[Array, "*B HW"]  # colors 0..9, -1 outside the active area
    clipboard: Int8[Array, "*B HW"]  # content at the origin, -1 where nothing is held
    target: Int8[Array, "*B HW"]  # the grid that a submit is compared with
    selection: Int8[Array, "*B 4"] | UInt32[Array, "*B W"]  # last used: a box's bounds, or columns of bits
    sizes: Int8[Array, "*B 6"]  # height and width of the active area, of the target and of the clipboard's content


class Command(eqx.Module):
    """A checked action: nothing in it is out of range, and it may be applied."""

    operation: Int32[Array, "*B"]  # 0 .. 41, or -1: leave the canvas as it is
    selection: Int32[Array, "*B 4"] | Bool[Array, "*B HW"]  # a box with ordered corners, or cells; raw
    row: Int32[Array, "*B"]  # row of the pair table that operations 32 and 35..41 load
    colors: Int8[Array, "*B 10"] | None = None  # what the colors of loaded grids become; None: they stay


class PairTable(eqx.Module):
    """Inputs and outputs of pairs, one row each."""

    inputs: Int8[Array, "*B N HW"]
    outputs: Int8[Array, "*B N HW"]
    split: RowSplit | None = eqx.field(static=True, default=None)  # None: all rows are here

    def input_rows(self, row: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load inputs from the table that all share, or one from each table; a row past the last one is the last."""
        return _take_rows(self.inputs, row, self.split)

    def output_rows(self, row: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load outputs as :meth:`input_rows` does inputs."""
        return _take_rows(self.outputs, row, self.split)


def _take_rows(grids: Int8[Array, "*B N HW"], row: Int32[Array, "*B"], split: RowSplit | None) -> Int8[Array, "*B HW"]:
    if grids.ndim > 2:
        return jnp.take_along_axis(grids, row[..., None, None], axis=-2, mode="clip")[..., 0, :]
    if split is None:
        return jnp.take(grids, row, axis=0, mode="clip")
    # Each device adds the rows that it holds of those that all devices ask for, and zeros: in any order the same.
    asked = lax.all_gather(jnp.clip(row, 0, split.num_rows - 1), split.axis)
    place = asked - lax.axis_index(split.axis) * grids.shape[0]
    is_here = (place >= 0) & (place < grids.shape[0])
    held = jnp.where(is_here[..., None], jnp.take(grids, place, axis=0, mode="clip"), jnp.int8(0))
    return lax.psum_scatter(held, split.axis, scatter_dimension=0)
