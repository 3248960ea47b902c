"""Examples of the lookahead expert's opinion, in states on the way from input to target.

Episodes start as the rules say, partly solved for example, and go on with what the expert likes or, now and then, with
any candidate. So there are fresh inputs, half painted grids, grids that someone spoiled, and solved ones, where a
submit is best. Candidates are drawn with the target in sight, for expert and surrogate alike.
"""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc.config import LookaheadConfig
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.candidates import candidates_of_canvas
from jaxarc.experts.canvas_state import CanvasState, canvas_of_state
from jaxarc.experts.lookahead import score_candidates, soft_choice
from jaxarc.surrogate.candidates import describe_grids
from jaxarc.types import PRNGKey
from jaxarc.wrappers import AutoReset

_ENV: Final = AutoReset(ArcEnvironment())


class LookaheadExamples(NamedTuple):
    """B states, what can be done in each, and what the expert thinks of it."""

    data: Float32[Array, "B H W 3"]  # working grid, target and input: -1 .. 9
    probs: Float32[Array, "B k"]  # softmax of score / temperature; 0 where not real
    scores: Float32[Array, "B k"]  # similarity after the action; 2 for a right submit, -1 for a wrong one
    actions: BboxAction  # [B, k]
    is_real: Bool[Array, "B k"]  # false for an invalid action and for one that repeats an earlier one


def draw_examples(key: PRNGKey, params: EnvParams, config: LookaheadConfig) -> LookaheadExamples:
    """Make a batch from fresh episodes; it depends on the key alone, and compilation belongs to the caller.

    Args:
        key: random key.
        params: tasks and rules; actions are boxes.
        config: how many examples, and which.
    """
    key_start, key_play = jax.random.split(key)
    num_episodes = config.num_examples // config.episode_steps
    states, _ = jax.vmap(_ENV.reset, (0, None))(jax.random.split(key_start, num_episodes), params)

    def play_on(states: ArcEnvState, key: Array) -> tuple[ArcEnvState, LookaheadExamples]:
        keys = jax.random.split(key, num_episodes)
        examples, chosen = jax.vmap(lambda key, state: _ask(key, state, params, config))(keys, states)
        return jax.vmap(_ENV.step, (0, 0, None))(states, chosen, params)[0], examples

    _, examples = jax.lax.scan(play_on, states, jax.random.split(key_play, config.episode_steps))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), examples)


def describe_canvas(canvas_state: CanvasState, grid_shape: tuple[int, int]) -> Float32[Array, "H W 3"]:
    """Show a canvas state as a model sees it: working grid, target and input."""
    flat = canvas_state.canvas.grid, canvas_state.canvas.target, canvas_state.pair_input
    return describe_grids(*(grid.reshape(grid_shape) for grid in flat))


def _ask(
    key: Array, state: ArcEnvState, params: EnvParams, config: LookaheadConfig
) -> tuple[LookaheadExamples, BboxAction]:
    """Ask the expert in one state, and choose how its episode goes on."""
    key_candidates, key_any, key_choice = jax.random.split(key, 3)
    canvas_state = canvas_of_state(state, params)
    candidates = candidates_of_canvas(key_candidates, canvas_state, config.num_candidates, params.config)
    actions = candidates.actions
    if not isinstance(actions, BboxAction):
        raise TypeError(f"examples are made of boxes; set action.selection_format=bbox, got {type(actions).__name__}")
    scores = score_candidates(canvas_state, actions, params.config)
    is_real = scores.is_valid & candidates.is_distinct
    probs = soft_choice(scores.score, is_real, config.temperature)
    goes_astray = jax.random.bernoulli(key_any, jnp.float32(config.random_share))
    weights = jnp.where(goes_astray, is_real.astype(jnp.float32), probs)
    place = jax.random.categorical(key_choice, jnp.log(weights))
    shown = describe_canvas(canvas_state, params.config.grid_shape)
    examples = LookaheadExamples(shown, probs, scores.score, actions, is_real)
    return examples, jax.tree.map(lambda leaf: leaf[place], actions)
