"""Score a step: similarity of grid and target, the reward, and the end of the episode."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.constants import PADDING
from jaxarc.envs.operations.compaction import Stage, call

SLICES = (4, 9)  # cells are added up in int8, in slices: at most 36 a lane, far from overflow
LONG_ROW = 64  # cells from which on that pays


def count_matches(
    grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"], stage: Stage = call
) -> Int32[Array, "..."]:
    """Number of active cells where grid and target have the same color.

    Args:
        grid: colors, -1 as padding.
        target: the same of the target.
        stage: how to call a kernel; see :func:`jaxarc.envs.operations.compaction.staged`.
    """
    if grid.shape[-1] < LONG_ROW:
        return jnp.sum(_alike(grid, target), axis=-1, dtype=jnp.int32)
    first, *others = SLICES
    counts = stage(lambda *grids: _add_slices(_alike(*grids), first), grid, target)
    for slices in others:  # XLA's CPU backend is many times slower to add up a long row in one go
        counts = stage(functools.partial(_add_slices, slices=slices), counts)
    return jnp.sum(counts, axis=-1, dtype=jnp.int32)


def count_union(sizes: Int8[Array, "... 4"]) -> Int32[Array, "..."]:
    """Cells in the union of two top-left anchored areas, whose (height, width, height, width) are given."""
    height, width, target_height, target_width = (sizes[..., i].astype(jnp.int32) for i in range(4))
    return jnp.maximum(height, target_height) * jnp.maximum(width, target_width)


def similarity(matches: Int32[Array, "..."], union: Int32[Array, "..."]) -> Float32[Array, "..."]:
    """Matching cells over cells of the union, in [0, 1]; 1 exactly when grid and target are equal, size included."""
    return matches.astype(jnp.float32) / union.astype(jnp.float32)


def _alike(grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"]) -> Int8[Array, "... HW"]:
    return ((grid == target) & (target > PADDING)).astype(jnp.int8)


def _add_slices(counts: Int8[Array, "... N"], slices: int) -> Int8[Array, "... M"]:
    """Add so many slices of equal length, and keep what is left over."""
    length = counts.shape[-1] // slices
    total, *rest = (counts[..., i * length : (i + 1) * length] for i in range(slices))
    for part in rest:
        total = total + part
    left = counts[..., slices * length :]
    return jnp.concatenate([total, left], axis=-1) if left.shape[-1] else total


class RewardInputs(NamedTuple):
    """What happened in a step, as far as rewards depend on it."""

    similarity_before: Float32[Array, ""]
    similarity_after: Float32[Array, ""]
    newly_solved: Bool[Array, ""]  # a submit solved a pair that was not solved before
    wrong_submission: Bool[Array, ""]
    invalid: Bool[Array, ""]  # an invalid or illegal action
    is_hidden: Bool[Array, ""] | None = None  # the pair hides its output; None: the mode says it of all pairs


def compute_reward(outcome: RewardInputs, config: JaxArcConfig) -> Float32[Array, ""]:
    """Pay a step. On a hidden target only the submit depends, and only with ``reward.score_on_submit``."""
    rule, zero, hidden = config.reward, jnp.float32(0), outcome.is_hidden
    weigh = lambda value, happened: jnp.where(happened, jnp.float32(value), zero)
    reward = zero
    if config.episode.mode != "test":
        shaping = jnp.float32(rule.gamma) * outcome.similarity_after - outcome.similarity_before
        reward = jnp.float32(rule.similarity_weight) * shaping
        reward = reward if hidden is None else jnp.where(hidden, zero, reward)
    reward = reward + jnp.float32(rule.step_penalty)
    if config.scores_submissions or hidden is not None:
        is_told = True if hidden is None else ~hidden | rule.score_on_submit
        reward = reward + weigh(rule.success_bonus, outcome.newly_solved & is_told)
        reward = reward + weigh(rule.unsolved_submission_penalty, outcome.wrong_submission & is_told)
    return reward + weigh(rule.invalid_action_penalty, outcome.invalid)


class Ending(NamedTuple):
    terminated: Bool[Array, "*B"]
    truncated: Bool[Array, "*B"]


def decide_ending(
    submitted: Bool[Array, ""],
    all_solved: Bool[Array, ""],
    submission_count: Int32[Array, ""],
    step_count: Int32[Array, ""],
    config: EnvironmentConfig,
) -> Ending:
    """Decide after a step: the last submit or a submit that solves the last pair terminates, the step limit truncates.

    Args:
        submitted: this step handed in the grid.
        all_solved: this step's submit left no pair unsolved, and the agent may know it.
        submission_count: submits so far, this one included.
        step_count: steps so far, this one included.
        config: the limits.
    """
    terminated = submitted & (all_solved | (submission_count >= config.max_submissions))
    return Ending(terminated, ~terminated & (step_count >= config.max_episode_steps))


def discount(terminated: Bool[Array, "*B"]) -> Float32[Array, "*B"]:
    """0 where the episode terminated, 1 elsewhere, truncation included."""
    return jnp.where(terminated, jnp.float32(0), jnp.float32(1))
