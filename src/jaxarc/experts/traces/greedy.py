"""Traces of the greedy painter, rolled out over many pairs at once on the device."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.experts.expert import Action, ActionFormat, ExpertError, Pair
from jaxarc.experts.greedy_painter import GreedyPainter
from jaxarc.experts.traces.batch_expert import BatchExpert
from jaxarc.experts.traces.pair_environment import pair_params
from jaxarc.types import Observation

_SIDES: Final = (15, 30)  # canvases; what fits a small one is painted faster there, and painted alike
_SLOTS: Final = 64  # episodes side by side
_STEPS: Final = 8  # between two looks at which episodes have ended
_ALLOWED: Final = (*range(c.FILL, c.FILL + c.NUM_COLORS), c.RESIZE, c.SUBMIT)

_Episodes: TypeAlias = tuple[ArcEnvState, Observation]


class GreedyExpert(BatchExpert):
    """A :class:`jaxarc.experts.GreedyPainter` as an expert: boxes only."""

    name = "greedy"
    version = 1

    def solve_all(self, pairs: Sequence[Pair], action_format: ActionFormat) -> Iterator[tuple[int, Sequence[Action]]]:
        """Paint all pairs; see :meth:`BatchExpert.solve_all`."""
        if action_format != "bbox":
            raise ExpertError(f"the greedy painter fills boxes, so action_format must be 'bbox', got {action_format!r}")
        for side, places in _by_side(pairs).items():
            for start in range(0, len(places), self.batch_size):
                chosen = places[start : start + self.batch_size]
                for place, actions in _paint([pairs[i] for i in chosen], self.batch_size, side):
                    yield chosen[place], actions


def _by_side(pairs: Sequence[Pair]) -> dict[int, list[int]]:
    """Put the places of pairs under the smallest canvas that holds them; large outputs, which take long, first."""
    found: dict[int, list[int]] = {}
    for place in sorted(range(len(pairs)), key=lambda place: -pairs[place].output.size):
        largest = max(*pairs[place].input.shape, *pairs[place].output.shape)
        found.setdefault(next(side for side in _SIDES if largest <= side), []).append(place)
    return found


def _paint(pairs: Sequence[Pair], count: int, side: int) -> Iterator[tuple[int, list[Action]]]:
    """Keep all slots busy: a slot whose episode has ended gets the next pair."""
    params = pair_params(pairs, count, "bbox", side, reveal_target=True, allowed_operations=_ALLOWED)
    waiting = iter(range(len(pairs)))
    painted: dict[int, list[Action]] = {}  # by slot
    place_of: dict[int, int] = {}
    episodes = _start(params, jnp.zeros(_SLOTS, jnp.int32))
    while True:
        fresh = {slot: place for slot in range(_SLOTS) if slot not in place_of and (place := next(waiting, -1)) >= 0}
        place_of |= fresh
        painted |= {slot: [] for slot in fresh}
        if not place_of:
            return
        if fresh:
            episodes = _refill(params, episodes, *_changes(fresh))
        episodes, actions, ended = _advance(params, episodes)
        listed, stops = np.asarray(actions).transpose(1, 0, 2).tolist(), np.asarray(ended)
        for slot in list(place_of):
            steps = int(stops[:, slot].argmax()) + 1 if stops[:, slot].any() else _STEPS
            painted[slot] += [tuple(action) for action in listed[slot][:steps]]
            if stops[:, slot].any():
                yield place_of.pop(slot), painted.pop(slot)


def _changes(fresh: dict[int, int]) -> tuple[Bool[Array, " B"], Int32[Array, " B"]]:
    is_fresh, places = np.zeros(_SLOTS, np.bool_), np.zeros(_SLOTS, np.int32)
    is_fresh[list(fresh)], places[list(fresh)] = True, list(fresh.values())
    return jnp.asarray(is_fresh), jnp.asarray(places)


@eqx.filter_jit
def _start(params: EnvParams, places: Int32[Array, " B"]) -> _Episodes:
    return jax.vmap(lambda place: ArcEnvironment().reset(jax.random.key(0), params, place, 0))(places)


@eqx.filter_jit
def _refill(
    params: EnvParams, episodes: _Episodes, is_fresh: Bool[Array, " B"], places: Int32[Array, " B"]
) -> _Episodes:
    choose = lambda new, old: jnp.where(is_fresh.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    return jax.tree.map(choose, _start(params, places), episodes)


@eqx.filter_jit
def _advance(params: EnvParams, episodes: _Episodes) -> tuple[_Episodes, Int32[Array, "S B 5"], Bool[Array, "S B"]]:
    """Take some steps in every slot; returns the actions, and whether the episode had ended after each."""
    step = jax.vmap(lambda state, action: ArcEnvironment().step(state, action, params)[:2])

    def advance(episodes: _Episodes, _: None) -> tuple[_Episodes, tuple[Array, Array]]:
        states, observation = episodes
        action = GreedyPainter().act(observation)
        numbers = jnp.stack([action.operation, action.r1, action.c1, action.r2, action.c2], axis=1)
        states, observation = step(states, action)
        return (states, observation), (numbers, states.done)

    episodes, (actions, ended) = jax.lax.scan(advance, episodes, None, length=_STEPS)
    return episodes, actions, ended
