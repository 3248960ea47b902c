"""Record the greedy painter: many episodes at once on the device, each slot refilled when its episode ends.

Episodes have different lengths, so a batch that waits for its longest would idle. With two slots and episodes of 9, 3
and 4 steps of pairs p0, p1, p2, looked at after every 4 steps:

    slot 0   p0 p0 p0 p0 | p0 p0 p0 p0 | p0
    slot 1   p1 p1 p1 -  | p2 p2 p2 p2 |
"""

from collections.abc import Iterator, Sequence
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.expert import Action, ActionFormat, BatchExpert, Pair, WrongFormatError
from jaxarc.experts.greedy_painter import GreedyPainter
from jaxarc.experts.traces.replay import pair_params
from jaxarc.types import Observation
from jaxarc.unroll import unroll

_SIDES: Final = (15, 30)  # of canvases; pairs that fit the small one get the same actions on it, faster
_SLOTS: Final = 64  # episodes side by side
_STEPS: Final = 8  # between two looks at which episodes have ended
_ALLOWED: Final = (*range(c.FILL, c.FILL + c.NUM_COLORS), c.RESIZE, c.SUBMIT)


class GreedyExpert(BatchExpert):
    """A :class:`jaxarc.experts.GreedyPainter` as an expert: boxes only."""

    name = "greedy"
    version = 1

    def solve_all(self, pairs: Sequence[Pair], action_format: ActionFormat) -> Iterator[tuple[int, Sequence[Action]]]:
        """Paint all pairs; see :meth:`BatchExpert.solve_all`."""
        if action_format != "bbox":
            raise WrongFormatError(f"the greedy painter fills boxes: the format must be 'bbox', got {action_format!r}")
        # Batches of one size run one compiled program for each canvas; _paint repeats the last pair of a batch that is
        # short.
        for side, indices in _by_side(pairs).items():
            for start in range(0, len(indices), self.batch_size):
                chosen = indices[start : start + self.batch_size]
                for index, actions in _paint([pairs[i] for i in chosen], self.batch_size, side):
                    yield chosen[index], actions


def _by_side(pairs: Sequence[Pair]) -> dict[int, list[int]]:
    """Group the indices of pairs by the smallest canvas that holds them; large outputs, which take long, first."""
    found: dict[int, list[int]] = {}
    for index in sorted(range(len(pairs)), key=lambda index: -pairs[index].output.size):
        largest = max(*pairs[index].input.shape, *pairs[index].output.shape)
        found.setdefault(next(side for side in _SIDES if largest <= side), []).append(index)
    return found


def _paint(pairs: Sequence[Pair], count: int, side: int) -> Iterator[tuple[int, list[Action]]]:
    """Play an episode of each pair; yields the index of a pair and its actions when its episode has ended."""
    params = pair_params(pairs, count, "bbox", side, reveal_target=True, allowed_operations=_ALLOWED)
    waiting = iter(range(len(pairs)))
    painted: dict[int, list[Action]] = {}  # by slot
    index_of: dict[int, int] = {}  # slot -> index of its pair
    states = _start(params, jnp.zeros(_SLOTS, jnp.int32))
    while True:
        # Free slots take the next waiting pairs. Slots 1 and 3 free and pairs 7 8 9 waiting: fresh is {1: 7, 3: 8}. The
        # range of slots is the first of the two, so that zip takes no pair for which there is no slot.
        free = [slot for slot in range(_SLOTS) if slot not in index_of]
        fresh = dict(zip(free, waiting, strict=False))
        index_of |= fresh
        painted |= {slot: [] for slot in fresh}
        if not index_of:
            return
        if fresh:
            states = _refill(params, states, *_changes(fresh))
        states, actions, ended = _advance(params, states)
        # From [S, B, 5] to [B, S, 5]: the actions of each slot one after the other.
        listed = np.asarray(actions).transpose(1, 0, 2).tolist()  # by slot
        stops = np.asarray(ended)
        for slot in list(index_of):
            # An episode that is over stays over: 0 0 1 1 has its last action at step 2, so three actions count.
            steps = int(stops[:, slot].argmax()) + 1 if stops[:, slot].any() else _STEPS
            painted[slot] += [tuple(action) for action in listed[slot][:steps]]
            if stops[:, slot].any():
                yield index_of.pop(slot), painted.pop(slot)


def _changes(fresh: dict[int, int]) -> tuple[Bool[Array, " B"], Int32[Array, " B"]]:
    is_fresh = np.zeros(_SLOTS, np.bool_)
    indices = np.zeros(_SLOTS, np.int32)
    is_fresh[list(fresh)] = True
    indices[list(fresh)] = list(fresh.values())
    return jnp.asarray(is_fresh), jnp.asarray(indices)


@eqx.filter_jit
def _start(params: EnvParams, indices: Int32[Array, " B"]) -> ArcEnvState:
    return jax.vmap(lambda index: ArcEnvironment().reset(jax.random.key(0), params, index, 0)[0])(indices)


@eqx.filter_jit
def _refill(
    params: EnvParams, states: ArcEnvState, is_fresh: Bool[Array, " B"], indices: Int32[Array, " B"]
) -> ArcEnvState:
    # All slots are started anew and the fresh ones are kept: one program, whichever slots are free.
    choose = lambda new, old: jnp.where(is_fresh.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    return jax.tree.map(choose, _start(params, indices), states)


@eqx.filter_jit
def _advance(params: EnvParams, states: ArcEnvState) -> tuple[ArcEnvState, Int32[Array, "S B 5"], Bool[Array, "S B"]]:
    """Take some steps in every slot; returns the actions, and whether the episode had ended after each."""

    def paint(_: object, observation: Observation, states: ArcEnvState) -> tuple[BboxAction, Int32[Array, "B 5"]]:
        action = GreedyPainter().act(observation)
        return action, jnp.stack([action.operation, action.r1, action.c1, action.r2, action.c2], axis=1)

    no_keys = jnp.arange(_STEPS, dtype=jnp.int32)  # the painter draws no random numbers
    record = lambda transition: (transition.extras, transition.next_states.done)
    states, (actions, ended) = unroll(ArcEnvironment(), params, paint, states, no_keys, record)
    return states, actions, ended
