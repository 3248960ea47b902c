"""Give some environments of a batch a new state: only the rows that need one are computed, however vmaps are nested."""

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from jaxarc.envs.batch_rule import Kernel, with_batch_rule
from jaxarc.envs.compilation import choose_executor, update_rows
from jaxarc.envs.params import EnvParams
from jaxarc.types import Info

# Of a batch, in a block of the compact executor: an episode of 35 random operations lasts about 20 steps.
RESET_FRACTION: Final = 1 / 16

State = TypeVar("State", bound=PyTree[Array])
ResetRows = Callable[[State, Bool[Array, " B"], EnvParams], State | None]


def reset_where(
    need: Bool[Array, ""],
    reset: Callable[[State, Any, EnvParams], State],
    state: State,
    facts: PyTree[Array],
    params: EnvParams,
    reset_rows: ResetRows[State] = lambda *_: None,
) -> State:
    """Replace a state where needed.

    Args:
        need: whether it is.
        reset: makes the new state of one environment from the old one and the facts.
        state: of one environment, or of a batch under ``vmap``.
        facts: what else ``reset`` needs of each environment.
        params: what all environments share.
        reset_rows: does the same for a batch in one call of the C++ library, or returns None where that cannot.
    """
    executor = choose_executor(params.config.environment.executor)

    def update(how: str, rows: tuple[Bool[Array, " B"], State, Any], params: EnvParams) -> State:
        if how == "native":
            states = reset_rows(rows[1], rows[0], params)
            if states is not None:
                return states
        # Resets are a family of work like any other: blocks of the rows that need one are gathered, reset and put back.
        # With 4,096 environments a block has 256 rows.
        one = lambda words, fact: _to_words(reset(_to_keys(words, state), fact, params))
        kernel = lambda states, facts: jax.vmap(one)(states, facts)
        return update_rows(how, rows[0], kernel, rows[1], rows[2], RESET_FRACTION)

    def reset_apart(_: Kernel, has_axis: Any, rows: tuple[Bool[Array, "A B"], State, Any], params: EnvParams) -> State:
        """Each batch has params of its own: nothing to fold."""
        # Dense: under vmap the loop over blocks would run, in every batch, as long as the batch that needs the most.
        axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
        return jax.vmap(functools.partial(update, "dense"), (0, axes))(rows, params)

    rows = (need, _to_words(state), facts)
    return _to_keys(with_batch_rule(functools.partial(update, executor), reset_apart)(rows, params), state)


def _to_words(state: PyTree[Array]) -> PyTree[Array]:
    """Return a state with the words of its typed keys, as an environment of a user may have them: words have bits."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, state)


def _to_keys(words: State, like: State) -> State:
    """Return the state whose words these are; keys are where ``like`` has them."""
    to_key = lambda leaf, key: jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(key)) if _is_key(key) else leaf
    return jax.tree.map(to_key, words, like)


def _is_key(leaf: Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def with_next_mask(show_info: Callable[[Any, EnvParams], Info], info: Info, after: Any, params: EnvParams) -> Info:
    """Put the action mask of the state after a reset, whose observation is returned, in place of the ended one's."""
    if not params.config.action.mask_in_info:
        return info
    return {**info, "action_mask": show_info(after, params)["action_mask"]}


def step_then_reset(env: Any, state: State, action: Any, params: EnvParams, *reset_rows: ResetRows[State]) -> Any:
    """Do what :meth:`jaxarc.envs.environment.Environment.step_and_reset` says, by the other methods of an environment.

    Args:
        env: the environment.
        state: of one environment.
        action: what its step takes.
        params: tasks and rules.
        *reset_rows: at most one; see :func:`reset_where`.
    """
    # The state of an ended episode is replaced where `done`; what is returned about the step is still that of the old
    # one.
    ended, observation, reward, done, info = env.step(state, action, params)
    reset = lambda state, _, params: env.reset_next(state, params)[0]
    after = reset_where(done, reset, ended, (), params, *reset_rows)
    info = with_next_mask(env.info, {**info, "final_observation": observation}, after, params)
    return after, env.observe(after, params), reward, done, info
