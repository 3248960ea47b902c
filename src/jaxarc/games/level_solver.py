"""Breadth-first search over the compiled rule: it proves that a level can be solved, and in how few actions."""

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from jaxarc.device_arrays import device_array
from jaxarc.errors import whole_number
from jaxarc.games.engine import GameEnvironment, GameParams, pack, unpack
from jaxarc.games.game import UNDO, GameError

_SUCCESSORS: Final = (1 << 10, 1 << 14)  # of a call: for narrow frontiers, and for wide ones
DEFAULT_MAX_STATES: Final = 1_000_000


class Solution(NamedTuple):
    """What a search found."""

    actions: tuple[int, ...] | None  # the engine's numbers, a shortest list; None: none was found
    num_states: int  # different ones that were reached
    is_complete: bool  # without actions: the level cannot be solved at all, and the search was not cut


def solve(env: GameEnvironment, words: Any, max_states: int = DEFAULT_MAX_STATES) -> Solution:
    """Search the shortest solution of a level.

    States are distinguished by 64 bits of hash. Two of a million coincide with a chance of 3e-8, and then a solution
    may be longer than the shortest one.

    Args:
        env: the game.
        words: uint32[words], the level, a row of ``params.levels``.
        max_states: the search is cut after so many.
    """
    words = np.asarray(words)
    budget = int(words[-1]) or max_states
    actions = [number for number in range(1, env.num_actions) if number not in _undo(env)]
    if env.game.clicks:
        exists = np.asarray(_mask(env, words))
        actions = [number for number in actions if exists[number]]
    numbers = device_array(actions, jnp.int32)
    sizes = [max(1, successors // len(actions)) for successors in _SUCCESSORS]
    factors = np.random.default_rng(0).integers(0, 2**63, len(words), np.uint64) | np.uint64(1)
    seen = {int(_hashes(words[None], factors)[0])}
    frontier, came = words[None], []  # came[depth]: the index in the frontier before, and the action
    for _ in range(budget):
        rows, sources, taken = [], [], []
        size = sizes[len(frontier) > sizes[0]]
        for start in range(0, len(frontier), size):
            chunk = frontier[start : start + size]
            padded = np.concatenate([chunk, np.repeat(chunk[:1], size - len(chunk), 0)])
            after, won, goes_on = (np.asarray(x)[: len(chunk)] for x in _expand(env, padded, numbers))
            if won.any():
                source, column = (int(x[0]) for x in np.nonzero(won))
                return Solution(_trace(came, start + source, actions[column]), len(seen), True)
            hashes = _hashes(after.reshape(-1, len(words)), factors)
            for position in np.nonzero(goes_on.ravel())[0]:
                if (mark := int(hashes[position])) not in seen:
                    seen.add(mark)
                    source, column = divmod(int(position), len(actions))
                    rows.append(after[source, column])
                    sources.append(start + source)
                    taken.append(actions[column])
            if len(seen) > max_states:
                return Solution(None, len(seen), False)
        if not rows:
            return Solution(None, len(seen), True)
        frontier = np.stack(rows)
        came.append((sources, taken))
    return Solution(None, len(seen), True)


def replay(env: GameEnvironment, params: GameParams, level: int, actions: Sequence[int]) -> bool:
    """Whether some actions solve a level: its last one does, and none before.

    Raises:
        GameError: there is no such level, or an action is no whole number.
    """
    num_levels = params.levels.shape[1]
    if not 0 <= (level := whole_number(level, "a level", GameError)) < num_levels:
        raise GameError(f"the params have the levels 0 .. {num_levels - 1}, got {level}")
    words = params.levels[0, level]
    one = GameParams(words[None, None], params.max_steps)
    state, _ = env.reset(jax.random.key(0), one)
    reward = 0.0
    for index, action in enumerate(actions):
        state, _, reward, done, _ = env.step(state, action, one)
        if bool(done) != (index == len(actions) - 1):
            return False
    return float(reward) == 1


def _undo(env: GameEnvironment) -> set[int]:
    simple = env.game.simple_actions
    return {1 + simple.index(UNDO)} if UNDO in simple else set()


def _mask(env: GameEnvironment, words: Any) -> Bool[Array, " num_actions"]:
    state, _ = env.reset(jax.random.key(0), GameParams(device_array(words)[None, None], jnp.int32(1)))
    return env.action_mask(state)


def _hashes(rows: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Mix each row of words into 64 bits: a sum of products, whose upper bits are folded into the lower."""
    mixed = (rows.astype(np.uint64) * factors) ^ (rows.astype(np.uint64) * factors[::-1] >> np.uint64(29))
    return mixed.sum(1, dtype=np.uint64)


@functools.partial(jax.jit, static_argnums=0)
def _expand(
    env: GameEnvironment, rows: UInt32[Array, "B words"], actions: Int32[Array, " K"]
) -> tuple[UInt32[Array, "B K words"], Bool[Array, "B K"], Bool[Array, "B K"]]:
    """Take every action in every state; return what follows, where the level is won, and where it goes on."""

    def one(words: UInt32[Array, " words"], action: Int32[Array, ""]) -> Any:
        board, budget = unpack(words, env.game)
        given, exists = env.decode(action, board.inside)
        after, event = env.game.rule(board, given)
        return pack(after, budget, env.game), exists & event.won, exists & ~jnp.asarray(event.lost)

    return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(rows, actions)


def _trace(came: list[tuple[list[int], list[int]]], index: int, last: int) -> tuple[int, ...]:
    actions = [last]
    for sources, taken in reversed(came):
        actions.append(taken[index])
        index = sources[index]
    return tuple(reversed(actions))
