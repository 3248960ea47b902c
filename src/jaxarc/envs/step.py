"""One step of an episode: check the action, edit the canvas, decide ending and reward.

These are the rules, in plain JAX, of one environment; :mod:`jaxarc.envs.executor` runs them for a batch, or calls the
C++ library, which does the same.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc import constants as c
from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.envs.canvas import CheckedAction, count_union, similarity
from jaxarc.envs.operations.execute import KernelStatics, execute
from jaxarc.envs.pairs import PairSource, all_pairs, choose_pair, pairs_in_play
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState, append_record
from jaxarc.envs.structured_actions import StructuredAction, check_action, clip_coordinates
from jaxarc.fusion import compute_once


class StepFacts(NamedTuple):
    """What the reward of a step depends on, besides the similarities, in the order of the bits of step.h."""

    running: Bool[Array, "*B"]  # the episode had not ended before the step
    newly_solved: Bool[Array, "*B"]  # a submit solved a pair that was not solved before
    wrong_submission: Bool[Array, "*B"]
    invalid: Bool[Array, "*B"]  # an invalid or illegal action


class StepOutcome(NamedTuple):
    """A step with its reward."""

    state: ArcEnvState
    reward: Float32[Array, ""]
    invalid_action: Bool[Array, ""]


def step_by_rules(
    state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig
) -> tuple[ArcEnvState, StepFacts]:
    """Return the state after a step, and what its reward depends on; a state that is done stays as it is.

    Args:
        state: of one environment.
        action: what to do; one that the policy ``raise`` refuses was refused before, and changes nothing here.
        source: the pairs of the state's task.
        config: the one that the state was started with.
    """
    # 1. The operation, or -1, which leaves the canvas as it is: for a state that is done, an invalid action, and a
    # change of pair that cannot apply. Where submits are not scored, 40 and 41 must not tell which pairs are solved.
    running = ~state.done
    known_solved = state.solved_pairs if config.scores_submissions else jnp.int32(0)
    checked, invalid = check_action(action, config)
    operation = jnp.where(running, checked.operation, c.NO_OPERATION)
    pair_index, can_switch = choose_pair(operation, state.pair_index, known_solved, source.count)
    operation = jnp.where(can_switch, operation, c.NO_OPERATION)
    checked = CheckedAction(operation, checked.selection, source.row_of(pair_index), source.colors)
    # 2. The edit. Equal cells over cells of the union: a 2x3 grid that matches 4 cells of a 2x2 target scores 4 / 6.
    statics = KernelStatics(config.grid_shape, "xla", config.legal_operations)
    canvas, matches = execute(state.canvas, checked, source.table, statics)
    union = count_union(canvas.sizes[:4])
    score = similarity(matches, union)

    # 3. The submit. It is right if every cell of the union matches, which also makes the sizes equal. Solved pairs are
    # bits: after pairs 0 and 2 of three, 101; the episode is solved at 111. Without pair switching bit 0 stands for
    # all.
    submitted = operation == c.SUBMIT
    submitted, right = compute_once((submitted, submitted & (matches == union)))
    bit = jnp.int32(1) << (pair_index if config.episode.switches_pairs else jnp.int32(0))
    solved = state.solved_pairs | jnp.where(right, bit, 0)
    every_pair = all_pairs(source.count) if config.episode.switches_pairs else jnp.int32(1)
    step_count = state.step_count + running.astype(jnp.int32)
    submission_count = state.submission_count + submitted.astype(jnp.int32)
    # 4. The ending. On a hidden pair an episode that ends at a right submit would tell that it was right, so it may
    # only where the reward reveals it anyway.
    is_known = ~source.hides(pair_index) | config.reward.score_on_submit
    all_solved = right & (solved == every_pair) & is_known
    ending = decide_ending(submitted, all_solved, submission_count, step_count, config.environment)

    # 5. The facts of the reward. The bonus is added once for each pair: a second right submit of it sets no new bit.
    facts = StepFacts(running, right & (solved != state.solved_pairs), submitted & ~right, invalid)
    # 6. The new state. The record shows the pair on which the action was taken, not the one that it led to.
    records = state.action_records
    if records is not None:
        taken = clip_coordinates(action, config.grid_shape) if config.action.invalid_action_policy == "clip" else action
        records = append_record(records, taken, state.step_count, state.pair_index, invalid, running)
    after = dataclasses.replace(
        state,
        canvas=canvas,
        counts=jnp.stack([step_count, submission_count, state.task_index, pair_index, solved]),
        similarity_score=score,
        endings=jnp.where(running, jnp.stack(ending), state.endings),
        action_records=records,
    )
    return after, facts


def outcome_of(
    before: Float32[Array, ""], after: ArcEnvState, facts: StepFacts, source: PairSource, config: JaxArcConfig
) -> StepOutcome:
    """Add the reward, which XLA computes for every executor: its bits depend on how products and sums are rounded.

    Args:
        before: similarity before the step.
        after: the state after it.
        facts: what else the reward depends on.
        source: the pairs of the state's task.
        config: weighs them.
    """
    inputs = RewardInputs(before, after.similarity_score, *facts[1:], source.hides(after.pair_index))
    reward = jnp.where(facts.running, compute_reward(inputs, config), jnp.float32(0))
    return StepOutcome(after, reward, facts.invalid & facts.running)


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
    shaping = _product(rule.gamma, inputs.similarity_after, inputs) - inputs.similarity_before
    reward = jnp.where(inputs.is_hidden, zero, _product(rule.similarity_weight, shaping, inputs))
    reward = reward + jnp.float32(rule.step_penalty)
    # On a hidden pair the terms of a submit would reveal whether the answer is right: they are added only on request.
    is_scored = ~inputs.is_hidden | rule.score_on_submit
    reward = reward + weigh(rule.success_bonus, inputs.newly_solved & is_scored)
    reward = reward + weigh(rule.unsolved_submission_penalty, inputs.wrong_submission & is_scored)
    return reward + weigh(rule.invalid_action_penalty, inputs.invalid)


def _product(factor: float, value: Float32[Array, ""], inputs: RewardInputs) -> Float32[Array, ""]:
    """Multiply, and round before anything is added, in every program.

    A compiler may join ``a * b + c`` into one operation that rounds once, for some shapes of a batch and not for
    others. Between the two stands an integer that is 0, the sign of a similarity, which no compiler can know.
    """
    if factor == 1:
        return value
    bits = jax.lax.bitcast_convert_type(jnp.float32(factor) * value, jnp.int32)
    sign = jax.lax.bitcast_convert_type(inputs.similarity_before, jnp.int32) >> 31
    return jax.lax.bitcast_convert_type(bits + sign, jnp.float32)


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


def pairs_of(state: ArcEnvState, params: EnvParams) -> PairSource:
    """Point at the pairs that a state plays."""
    return pairs_in_play(params.tasks, state.pairs, state.task_index, state.augmentation, params.config.episode.mode)
