"""What operations edit: the canvas, the command that edits it, and the pairs it can load."""

import equinox as eqx
from jaxtyping import Array, Bool, Int8, Int32, UInt32

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
