"""Look one action ahead: score each of many candidate actions by the grid that it leaves."""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.params import EnvParams
from jaxarc.envs.scoring import similarity
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BaseAction, StructuredAction
from jaxarc.experts.candidates import candidates_of_canvas, require_count
from jaxarc.experts.canvas_state import CanvasState, canvas_of_observation, canvas_of_state, check_edits, plan_of
from jaxarc.experts.outcomes import count_outcomes
from jaxarc.prng import as_typed_key
from jaxarc.types import Observation, PRNGKey

RIGHT_SUBMIT: Final = 2.0  # worth more than any edit
WRONG_SUBMIT: Final = -1.0  # worth less than any


class CandidateScores(NamedTuple):
    """What k candidate actions lead to."""

    similarity: Float32[Array, "*B k"]  # of grid and target afterwards, 0 .. 1; of an invalid action, as it is now
    score: Float32[Array, "*B k"]  # the similarity; 2 for a right submit, -1 for a wrong one
    is_valid: Bool[Array, "*B k"]  # legal, inside the canvas, and no change of the pair


def look_ahead(state: ArcEnvState, actions: StructuredAction, params: EnvParams) -> CandidateScores:
    """Tell what each of k actions would lead to, without taking any; jit and vmap over states belong to the caller.

    It looks at the target, which an agent in test mode must not: this is a teacher.

    Args:
        state: of one environment, made by ``env.reset`` or ``env.step``.
        actions: with a leading axis of k.
        params: what the environment plays.

    Raises:
        TypeError: the actions have another format than the config says.
        ValueError: the state is a batch, or the actions have no leading axis.
    """
    if isinstance(actions, BaseAction) and actions.operation.ndim != 1:
        raise ValueError(
            f"k actions have one leading axis, got shape {actions.operation.shape}; stack them, or vmap over more"
        )
    return score_candidates(canvas_of_state(state, params), actions, params.config)


def score_candidates(canvas_state: CanvasState, actions: StructuredAction, config: JaxArcConfig) -> CandidateScores:
    """Do what :func:`look_ahead` does, from a canvas state."""
    commands = check_edits(actions, config)
    matches, union = count_outcomes(canvas_state, commands, plan_of(config))
    similarities = similarity(matches, union)
    submits = commands.operation == c.SUBMIT
    score_of_submit = jnp.where(matches == union, jnp.float32(RIGHT_SUBMIT), jnp.float32(WRONG_SUBMIT))
    return CandidateScores(similarities, jnp.where(submits, score_of_submit, similarities), commands.is_valid)


def soft_choice(
    scores: Float32[Array, "*B k"], is_allowed: Bool[Array, "*B k"], temperature: float
) -> Float32[Array, "*B k"]:
    """Turn scores into probabilities, ``softmax(scores / temperature)`` over the candidates that are allowed.

    Equal scores get equal probabilities, a candidate that is not allowed gets 0. Where none is allowed, all get the
    same: the result is finite and sums to 1 whatever comes in.

    Args:
        scores: of each candidate.
        is_allowed: false for duplicates, padding and invalid actions.
        temperature: above 0; the difference of scores that makes a candidate 2.7 times as likely. A cell of a
            10x10 grid counts 0.01.

    Raises:
        ValueError: the temperature is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}; for the best candidate take the argmax")
    usable = is_allowed | ~is_allowed.any(axis=-1, keepdims=True)
    wanted = jnp.where(is_allowed, scores / jnp.float32(temperature), jnp.float32(0))
    return jax.nn.softmax(jnp.where(usable, wanted, -jnp.inf), axis=-1)


class LookaheadAgent(eqx.Module):
    """Draws candidates, looks one action ahead and takes the best, or one drawn by :func:`soft_choice`.

    A :class:`jaxarc.parallel.Policy` for observations that show target and input (``observation.reveal_target``,
    ``include_input``) as planes; :func:`missing_for_lookahead` tells what a config lacks. Of equals it takes the first.
    With fills of all colors and a resize among the operations it solves every pair: some candidate always mends a cell.

    Raises:
        ValueError: too few candidates, or a temperature that is not above 0.
    """

    config: JaxArcConfig = eqx.field(static=True)
    num_candidates: int = eqx.field(static=True, default=64)
    temperature: float | None = eqx.field(static=True, default=None)  # None: take the best

    def __check_init__(self) -> None:
        if not isinstance(self.config, JaxArcConfig):
            raise TypeError(f"config must be a JaxArcConfig, got {type(self.config).__name__}; pass params.config")
        require_count(self.num_candidates, self.config)
        if self.temperature is not None and not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}; None takes the best candidate")

    def __call__(self, key: PRNGKey, observation: Observation) -> StructuredAction:
        """Choose the action of one environment."""
        key_candidates, key_choice = jax.random.split(as_typed_key(key))
        canvas_state = canvas_of_observation(observation, self.config)
        candidates = candidates_of_canvas(key_candidates, canvas_state, self.num_candidates, self.config)
        scores = score_candidates(canvas_state, candidates.actions, self.config)
        is_allowed = scores.is_valid & candidates.is_distinct
        if self.temperature is None:
            place = jnp.argmax(jnp.where(is_allowed, scores.score, -jnp.inf))
        else:
            shares = soft_choice(scores.score, is_allowed, self.temperature)
            place = jax.random.categorical(key_choice, jnp.log(shares))
        return jax.tree.map(lambda leaf: leaf[place], candidates.actions)


def missing_for_lookahead(config: JaxArcConfig) -> list[str]:
    """List what observations lack for a :class:`LookaheadAgent`, a sentence each; empty when all is there."""
    shown = config.observation
    wanted = (
        ("reveal_target", shown.reveal_target, True),
        ("include_input", shown.include_input, True),
        ("grid_format", shown.grid_format, "planes"),
    )
    return [
        f"looking ahead needs observation.{name}={value!r}, got {given!r}"
        for name, given, value in wanted
        if given != value
    ]
