"""Which actions can do something in a state, as masks for an agent that chooses.

Two words, as in ``docs/operations.md``. An operation is *legal* when config and mode allow it; a step refuses any
other. A legal operation that *cannot apply*, such as a paste with nothing copied, is a lost step. The masks keep what
is legal and can apply. They look at the size of the working grid and at the clipboard, never at the target.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.action_numbers import FlatActionCodec
from jaxarc.envs.canvas import CLIPBOARD_HEIGHT
from jaxarc.envs.state import ArcEnvState

_FLOODS = np.isin(np.arange(c.NUM_OPERATIONS), np.arange(c.FLOOD_FILL, c.FLOOD_FILL + c.NUM_COLORS))
_NEEDS_CELLS = np.isin(  # lost on a selection without a cell of the active area
    np.arange(c.NUM_OPERATIONS), [*range(c.FLOOD_FILL + c.NUM_COLORS), c.COPY, c.PASTE, c.CUT]
)


def legal_operation_mask(state: ArcEnvState, config: JaxArcConfig) -> Bool[Array, "*B 42"]:
    """Tell which operations are legal and can apply, on some selection.

    Of the legal ones only a paste ever drops out, while the clipboard is empty: no running episode has all its pairs
    known to be solved. If nothing else is legal, the legal ones stay, so some entry is always true. In a state that is
    done no action does anything, and the mask is what it would be otherwise.
    """
    legal = np.isin(np.arange(c.NUM_OPERATIONS), config.legal_operations)
    holds_content = state.canvas.sizes[..., CLIPBOARD_HEIGHT, None] > 0
    is_paste = np.arange(c.NUM_OPERATIONS) == c.PASTE
    if not (legal & ~is_paste).any():
        return jnp.broadcast_to(legal, (*holds_content.shape[:-1], c.NUM_OPERATIONS))
    lead = (1,) * (holds_content.ndim - 1)
    return jnp.asarray(legal).reshape(*lead, -1) & (holds_content | ~jnp.asarray(is_paste).reshape(*lead, -1))


def flat_action_mask(state: ArcEnvState, config: JaxArcConfig) -> Bool[Array, "*B actions"]:
    """Tell which numbers of :class:`~jaxarc.envs.action_numbers.FlatActionCodec` name an action that can apply.

    If every one would be a lost step, as in an episode that may only paste, those of legal operations stay.

    Raises:
        ValueError: the config's actions have no numbers.
    """
    numbers = FlatActionCodec.of(config)
    ids = np.asarray(numbers.operations)
    batch = state.canvas.sizes.shape[:-1]
    boxes = numbers.selections.reshape(*(1,) * len(batch), -1, 4)
    height, width = (size[..., None] for size in _active_size(state))
    top, left, bottom, right = (jnp.asarray(boxes[..., i]) for i in range(4))
    touches = (top < height) & (left < width)
    is_single = (jnp.minimum(bottom, height - 1) == top) & (jnp.minimum(right, width - 1) == left)
    fits = [
        is_single if _FLOODS[i] else (touches if _NEEDS_CELLS[i] else jnp.ones_like(touches))
        for i in numbers.operations
    ]
    operations = legal_operation_mask(state, config)[..., ids]
    return (operations[..., None] & jnp.stack(fits, axis=-2)).reshape(*batch, -1)


def _active_size(state: ArcEnvState) -> tuple[Int32[Array, "*B"], Int32[Array, "*B"]]:
    size = state.grid_size.astype(jnp.int32)
    return size[..., 0], size[..., 1]
