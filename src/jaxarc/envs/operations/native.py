"""The native executor: a batch of canvases is edited by one call of the C++ library; see :mod:`jaxarc.native`."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from jaxarc.constants import NUM_COLORS
from jaxarc.envs.canvas import Canvas, CheckedAction, GridShape
from jaxarc.envs.compilation import vary_like
from jaxarc.envs.pairs import PairTable

_IN_PLACE = {i: i for i in range(5)}  # argument i is a part of the canvas, and result i takes its place


def edit_natively(
    canvas: Canvas, action: CheckedAction, pairs: PairTable, shape: GridShape
) -> tuple[Canvas, Int32[Array, " B"]]:
    """Apply one action to each canvas of a batch, and count the matches; see :func:`execute_batch`.

    The library knows no vmap and has no state: the batch rule of :func:`execute` folds all axes into the one of the
    batch, and everything is in the arrays.
    """
    from jaxarc.native.library import native_library  # as in choose_executor

    library = native_library()
    assert library is not None, "choose_executor has loaded it"
    rows = (canvas.grid, canvas.clipboard, canvas.target, canvas.selection, canvas.sizes)
    arguments = (*rows, action.operation, action.selection, action.row)
    colors = jnp.zeros((0, NUM_COLORS), jnp.int8) if action.colors is None else action.colors  # none: they stay
    tables = (colors, pairs.inputs, pairs.outputs)
    # Under shard_map the arguments of one call vary over the same devices, and so do its results, which are described
    # by arguments of their shape.
    if jax.sharding.get_abstract_mesh().manual_axes:
        of_each = [x.reshape(-1)[0].astype(jnp.uint32) for x in (*arguments, *tables) if x.size]
        arguments, tables = vary_like((arguments, tables), jnp.stack(of_each))
    results = [jax.typeof(x) for x in arguments[: len(rows) + 1]]
    call = jax.ffi.ffi_call(library.edit, results, input_output_aliases=_IN_PLACE)
    *edited, matches = call(*arguments, *tables, height=shape[0], width=shape[1])
    return Canvas(*edited), matches
