"""Score a step: similarity of grid and target, the reward, and the end of the episode."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.constants import PADDING
from jaxarc.fusion import materialize_call

SLICES = (4, 9)  # cells are added up in int8, in slices: at most 36 a lane, far from overflow
LONG_ROW = 64  # cells from which on that pays


def count_matches(grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"]) -> Int32[Array, "..."]:
    """Count the active cells where grid and target have the same color.

    XLA's CPU backend is many times slower to add up a long row in one go than to add contiguous slices of it. So the
    row is cut into 4 slices that are added, what results into 9, and only the rest is summed. With two slices, of the
    seven matches 1 0 1 1 1 1 1: 1 0 1 + 1 1 1 = 2 1 2, and the last cell is kept: 2 1 2 1, in sum 6.

    Args:
        grid: colors, -1 as padding.
        target: the same of the target.
    """
    if grid.shape[-1] < LONG_ROW:
        return jnp.sum(_matches(grid, target), axis=-1, dtype=jnp.int32)
    # For 900 cells: 4 slices of 225 make 225 counts up to 4, 9 slices of 25 make 25 counts up to 36, and 25 are summed.
    first, *others = SLICES
    counts = materialize_call(lambda *grids: _add_slices(_matches(*grids), first), grid, target)
    for slices in others:
        counts = materialize_call(functools.partial(_add_slices, slices=slices), counts, predicate_of=grid)
    return jnp.sum(counts, axis=-1, dtype=jnp.int32)


def count_union(sizes: Int8[Array, "... 4"]) -> Int32[Array, "..."]:
    """Count the cells in the union of two areas anchored at the top left, of (height, width, height, width).

    For areas that overlap as 2x3 and 3x2 do, this is the box around both, 3x3: what neither covers counts as different.
    """
    height, width, target_height, target_width = (sizes[..., i].astype(jnp.int32) for i in range(4))
    return jnp.maximum(height, target_height) * jnp.maximum(width, target_width)


def similarity(matches: Int32[Array, "..."], union: Int32[Array, "..."]) -> Float32[Array, "..."]:
    """Matching cells over cells of the union, in [0, 1]; 1 exactly when grid and target are equal, size included."""
    return matches.astype(jnp.float32) / union.astype(jnp.float32)


class RewardInputs(NamedTuple):
    """Facts of a step that its reward depends on."""

    similarity_before: Float32[Array, ""]
    similarity_after: Float32[Array, ""]
    newly_solved: Bool[Array, ""]  # a submit solved a pair that was not solved before
    wrong_submission: Bool[Array, ""]
    invalid: Bool[Array, ""]  # an invalid or illegal action
    is_hidden: Bool[Array, ""]  # the pair hides its output from the agent


def compute_reward(inputs: RewardInputs, config: JaxArcConfig) -> Float32[Array, ""]:
    """Compute the reward of a step.

    It is ``similarity_weight * (gamma * similarity_after - similarity_before) + step_penalty``, plus the terms of a
    right first submit, of a wrong submit and of an invalid action. On a hidden target the shaping term is 0, and those
    of a submit are too unless ``reward.score_on_submit``.
    """
    rule = config.reward
    zero = jnp.float32(0)
    weigh = lambda value, happened: jnp.where(happened, jnp.float32(value), zero)
    # A difference of potentials: with gamma 1 the similarities 0.2, 0.5, 0.4 pay 0.3 and -0.1, in sum the 0.2 that the
    # episode has gained. Going back and forth earns nothing.
    shaping = jnp.float32(rule.gamma) * inputs.similarity_after - inputs.similarity_before
    reward = jnp.where(inputs.is_hidden, zero, jnp.float32(rule.similarity_weight) * shaping)
    reward = reward + jnp.float32(rule.step_penalty)
    # On a hidden pair the terms of a submit would tell whether the answer is right, so they are paid on request only.
    is_scored = ~inputs.is_hidden | rule.score_on_submit
    reward = reward + weigh(rule.success_bonus, inputs.newly_solved & is_scored)
    reward = reward + weigh(rule.unsolved_submission_penalty, inputs.wrong_submission & is_scored)
    return reward + weigh(rule.invalid_action_penalty, inputs.invalid)


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
    # An episode has one ending: the last submit at the step limit terminates, and does not truncate.
    terminated = submitted & (all_solved | (submission_count >= config.max_submissions))
    return Ending(terminated, ~terminated & (step_count >= config.max_episode_steps))


def discount(terminated: Bool[Array, "*B"]) -> Float32[Array, "*B"]:
    """0 where the episode terminated, 1 elsewhere, truncation included."""
    return jnp.where(terminated, jnp.float32(0), jnp.float32(1))


def _matches(grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"]) -> Int8[Array, "... HW"]:
    return ((grid == target) & (target > PADDING)).astype(jnp.int8)


def _add_slices(counts: Int8[Array, "... N"], slices: int) -> Int8[Array, "... M"]:
    """Add so many slices of equal length, and keep the remaining entries."""
    # Five entries 1 2 3 4 5 in two slices of 2: 1 2 + 3 4 = 4 6, and the remaining 5 is kept: 4 6 5.
    length = counts.shape[-1] // slices
    total, *rest = (counts[..., i * length : (i + 1) * length] for i in range(slices))
    for part in rest:
        total = total + part
    remaining = counts[..., slices * length :]
    return jnp.concatenate([total, remaining], axis=-1) if remaining.shape[-1] else total
