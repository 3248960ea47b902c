"""Give some environments of a batch a new state: only the rows that need one are computed, however vmaps are nested."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jaxtyping import Array, Bool, PyTree

from jaxarc.envs.batch_rule import Kernel, with_batch_rule
from jaxarc.envs.compilation import choose_executor, update_rows
from jaxarc.envs.environment import RESET_FRACTION, Environment
from jaxarc.envs.params import EnvParams
from jaxarc.types import Info

State = TypeVar("State", bound=PyTree[Array])


def reset_where(
    need: Bool[Array, ""],
    reset: Callable[[State, Any, EnvParams], State],
    state: State,
    facts: PyTree[Array],
    params: EnvParams,
    reset_natively: Callable[[State, Bool[Array, " B"], EnvParams], State | None] = lambda *_: None,
) -> State:
    """Replace a state where needed.

    Args:
        need: whether it is.
        reset: makes the new state of one environment from the old one and the facts.
        state: of one environment, or of a batch under ``vmap``.
        facts: what else ``reset`` needs of each environment.
        params: what all environments share.
        reset_natively: does the same for a batch by one call of the C++ library, or returns None where that cannot.
    """
    executor = choose_executor(params.config.environment.executor)

    def reset_rows(how: str, rows: tuple[Bool[Array, " B"], State, Any], params: EnvParams) -> State:
        if how == "native":
            states = reset_natively(rows[1], rows[0], params)
            if states is not None:
                return states
        # Resets are a family of work like any other: blocks of the rows that need one are gathered, reset and put back.
        # With 4,096 environments a block has 256 rows.
        kernel = lambda states, facts: jax.vmap(lambda state, fact: reset(state, fact, params))(states, facts)
        return update_rows(how, rows[0], kernel, rows[1], rows[2], RESET_FRACTION)

    def reset_apart(_: Kernel, has_axis: Any, rows: tuple[Bool[Array, "A B"], State, Any], params: EnvParams) -> State:
        """Each batch has params of its own: nothing to fold."""
        # Dense: under vmap the loop over blocks would run, in every batch, as long as the batch that needs the most.
        axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
        return jax.vmap(functools.partial(reset_rows, "dense"), (0, axes))(rows, params)

    return with_batch_rule(functools.partial(reset_rows, executor), reset_apart)((need, state, facts), params)


def with_next_mask(env: Environment[Any], info: Info, after: Any, params: EnvParams) -> Info:
    """Put the action mask of the state after a reset, whose observation is returned, in place of the ended one's."""
    if not params.config.action.mask_in_info:
        return info
    return {**info, "action_mask": env.info(after, params)["action_mask"]}
