"""Walks of several steps in the environment, with given operations on random boxes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.canvas_state import canvas_of_state
from jaxarc.surrogate.candidates import describe_boxes
from jaxarc.surrogate.transition_model import TransitionBatch
from jaxarc.training.surrogates.lookahead_examples import describe_canvas
from jaxarc.types import PRNGKey

_ENV = ArcEnvironment()


def walked_operations(config: JaxArcConfig) -> tuple[int, ...]:
    """Return the operations that walks can be of: the legal ones that edit, without the submit, which ends them."""
    return tuple(number for number in config.legal_operations if number < c.SUBMIT)


def draw_walks(key: PRNGKey, operations: Int32[Array, "S B"], params: EnvParams) -> TransitionBatch:
    """Take steps on boxes drawn alike likely from the whole canvas, from the starts of episodes.

    A flood fill gets a single cell: of most larger boxes it would make nothing. Compilation belongs to the caller.

    Args:
        key: random key.
        operations: of :func:`walked_operations`, for S steps of B walks; S is not more than an episode may have.
        params: tasks and rules; actions are boxes.

    Returns:
        What was seen before each step of the real environment, and what came of it: leaves [S, B, ...].

    Raises:
        ValueError: an episode has fewer steps.
    """
    limit, height_width = params.config.environment.max_episode_steps, params.config.grid_shape
    num_steps, num_walks = operations.shape
    if not 1 <= num_steps <= limit:
        raise ValueError(f"a walk has 1 .. {limit} steps, environment.max_episode_steps, got {num_steps}")
    key_start, key_walk = jax.random.split(key)
    states, _ = jax.vmap(_ENV.reset, (0, None))(jax.random.split(key_start, num_walks), params)

    def walk_on(states: ArcEnvState, step: tuple[Array, Array]) -> tuple[ArcEnvState, TransitionBatch]:
        key, operations = step
        key_rows, key_columns = jax.random.split(key)
        rows, columns = (
            jax.random.randint(each, (2, num_walks), 0, side, jnp.int32)
            for each, side in zip((key_rows, key_columns), height_width, strict=True)
        )
        is_flood = (operations >= c.FLOOD_FILL) & (operations < c.FLOOD_FILL + c.NUM_COLORS)
        last_rows, last_columns = (jnp.where(is_flood, ends[0], ends[1]) for ends in (rows, columns))
        actions = BboxAction(operations, rows[0], columns[0], last_rows, last_columns)
        shown = _show(states, params)
        states, _, rewards, _, _ = jax.vmap(_ENV.step, (0, 0, None))(states, actions, params)
        describe = jax.vmap(lambda action: describe_boxes(action, jnp.bool_(True), height_width))
        return states, TransitionBatch(shown, describe(actions), operations, _show(states, params)[..., 0], rewards)

    _, walks = jax.lax.scan(walk_on, states, (jax.random.split(key_walk, num_steps), operations))
    return walks


def _show(states: ArcEnvState, params: EnvParams) -> Array:
    return jax.vmap(lambda state: describe_canvas(canvas_of_state(state, params), params.config.grid_shape))(states)
