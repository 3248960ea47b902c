"""One step of an episode: check the action, edit the canvas, decide ending and reward."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc import constants as c
from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.envs.canvas import CheckedAction, count_union, similarity
from jaxarc.envs.compilation import as_declared
from jaxarc.envs.native_batch import (
    ResetBatch,
    StepAndReset,
    StepFacts,
    SteppedAndReset,
    step_and_reset_natively,
    step_natively,
)
from jaxarc.envs.operations.execute import execute, statics_of
from jaxarc.envs.pairs import PairSource, all_pairs, choose_pair, pairs_in_play
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState, append_record, declared_state
from jaxarc.envs.structured_actions import MaskAction, StructuredAction, check_action, clip_coordinates, refuse_invalid
from jaxarc.fusion import compute_once
from jaxarc.primitives import choose_executor
from jaxarc.utils.error_handling import refuse_unstructured


class StepOutcome(NamedTuple):
    state: ArcEnvState
    reward: Float32[Array, ""]
    invalid_action: Bool[Array, ""]


def take_step(state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig) -> StepOutcome:
    """Take one step; a state that is done stays as it is, with reward 0.

    Args:
        state: the state of one environment.
        action: what to do; the config's invalid-action policy treats a wrong one.
        source: the pairs of the state's task.
        config: the one that the state was started with.
    """
    if choose_executor(config.environment.executor) == "native":
        action = refuse_invalid(action, config)
        after, facts = step_natively(state, action, source, config, in_xla=_step_in_xla)
        return _reward_natively(state.similarity_score, after, facts, source, config)
    after, running, inputs = _step(state, action, source, config)
    return _reward(after, running, inputs, config)


def _reward_natively(
    before: Float32[Array, ""], after: ArcEnvState, facts: StepFacts, source: PairSource, config: JaxArcConfig
) -> StepOutcome:
    """Add the reward, which the library leaves out: its bits depend on how XLA rounds products and sums."""
    inputs = RewardInputs(before, after.similarity_score, *facts[1:], is_hidden=source.hides(after.pair_index))
    return _reward(after, facts.running, inputs, config)


def _reward(after: ArcEnvState, running: Bool[Array, ""], inputs: "RewardInputs", config: JaxArcConfig) -> StepOutcome:
    reward = jnp.where(running, compute_reward(inputs, config), jnp.float32(0))
    return StepOutcome(after, reward, inputs.invalid & running)


def step_and_reset(
    state: ArcEnvState, action: StructuredAction, params: EnvParams, reset: ResetBatch
) -> tuple[StepOutcome, ArcEnvState, ArcEnvState]:
    """Take one step, and start the next episode where it ended, by one call of the C++ library.

    Args:
        state: of one environment.
        action: what to do.
        params: those of the state.
        reset: starts the next episodes of a batch that need it, in XLA; in blocks of rows where its first argument says
            so.

    Returns:
        The outcome of the step, in the state of which only counters, similarity, endings and grid are those of the
        step; the state to go on with; and the same with a copy of its grid, which observations show: another array
        than the one that the next step changes in place.
    """
    config = params.config
    action = refuse_invalid(action, config)
    done = step_and_reset_natively(state, action, params, *_step_and_reset_apart(reset))
    with_grid = lambda grid: dataclasses.replace(done.state, canvas=dataclasses.replace(done.state.canvas, grid=grid))
    ended = dataclasses.replace(
        with_grid(done.grid),
        counts=done.counts,
        similarity_score=done.similarity,
        endings=done.endings,
    )
    source = pairs_of(ended, params)
    outcome = _reward_natively(done.similarity_before, ended, done.facts, source, config)
    return outcome, done.state, with_grid(done.next_grid)


@functools.cache
def _step_and_reset_apart(reset: ResetBatch) -> tuple[StepAndReset, StepAndReset]:
    """Return what steps and resets a batch in XLA, and what steps it by the library and resets it in XLA."""

    def step_then_reset(
        step: Callable[..., Any], in_blocks: bool, states: ArcEnvState, actions: StructuredAction, params: EnvParams
    ) -> SteppedAndReset:
        one = lambda state, action: step(state, action, pairs_of(state, params), params.config)
        ended, facts = jax.vmap(one)(states, actions)
        after = reset(in_blocks, ended, ended.done, params)
        of_step = (ended.endings, ended.counts, ended.similarity_score, states.similarity_score)
        return SteppedAndReset(after, facts, *of_step, after.canvas.grid, ended.canvas.grid)

    by_library = functools.partial(step_natively, in_xla=_step_in_xla)
    # By parts is under vmap over params: there blocks of rows would go on as long as in the batch that needs most.
    apart = functools.partial(step_then_reset, by_library, False)
    return functools.partial(step_then_reset, _step_in_xla, True), apart


def pairs_of(state: ArcEnvState, params: EnvParams) -> PairSource:
    """Point at the pairs that a state plays."""
    return pairs_in_play(params.tasks, state.pairs, state.task_index, state.augmentation, params.config.episode.mode)


def _step(
    state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig
) -> tuple[ArcEnvState, Bool[Array, ""], "RewardInputs"]:
    """Return the state after a step, whether it ran before, and what the reward depends on."""
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
    canvas, matches = execute(state.canvas, checked, source.table, statics_of(config, config.legal_operations))
    union = count_union(canvas.sizes[:4])
    score = similarity(matches, union)

    # 3. The submit. It is right if every cell of the union matches, which also makes the sizes equal. Solved pairs are
    # bits: after pairs 0 and 2 of three, 101; the episode is solved at 111. Without pair switching bit 0 stands for
    # all.
    submitted = operation == c.SUBMIT
    submitted, right = compute_once((submitted, submitted & (matches == union)))
    bit = jnp.int32(1) << (pair_index if config.switches_pairs else jnp.int32(0))
    solved = state.solved_pairs | jnp.where(right, bit, 0)
    every_pair = all_pairs(source.count) if config.switches_pairs else jnp.int32(1)
    step_count = state.step_count + running.astype(jnp.int32)
    submission_count = state.submission_count + submitted.astype(jnp.int32)
    # 4. The ending. On a hidden pair an episode that ends at a right submit would tell that it was right, so it may
    # only where the reward reveals it anyway.
    hidden = source.hides(pair_index)
    is_known = ~hidden | config.reward.score_on_submit
    all_solved = right & (solved == every_pair) & is_known
    ending = decide_ending(submitted, all_solved, submission_count, step_count, config.environment)

    # 5. The facts of the reward. The bonus is added once for each pair: a second right submit of it sets no new bit.
    inputs = RewardInputs(
        similarity_before=state.similarity_score,
        similarity_after=score,
        newly_solved=right & (solved != state.solved_pairs),
        wrong_submission=submitted & ~right,
        invalid=invalid,
        is_hidden=hidden,
    )
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
    return after, running, inputs


def _step_in_xla(
    state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig
) -> tuple[ArcEnvState, StepFacts]:
    """Do what the library does, where that cannot be called."""
    # An invalid action was refused before.
    refused = {"invalid_action_policy": "noop"} if config.action.invalid_action_policy == "raise" else {}
    after, running, inputs = _step(state, action, source, config.with_fields(executor="xla", **refused))
    return after, StepFacts(running, inputs.newly_solved, inputs.wrong_submission, inputs.invalid)


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


def as_single(
    state: ArcEnvState, action: StructuredAction, config: JaxArcConfig
) -> tuple[ArcEnvState, StructuredAction]:
    """Return the state and the action of one environment with the dtypes that they declare.

    Raises:
        TypeError: the action is not a structured one, or an array has a dtype whose values may not fit.
        ValueError: state or action is a batch, the state was made with a config of another canvas, selection format or
            history, or an array has another shape.
    """
    refuse_unstructured(action)
    shapes = {"state": np.shape(state.counts)[:-1], "action": np.shape(action.operation)}
    if isinstance(action, MaskAction):
        shapes["mask"] = np.shape(action.selection)[:-2]
    for name, shape in shapes.items():
        if shape != ():
            raise ValueError(
                f"one environment takes one step at a time, but the {name} is a batch of shape {shape}; "
                "use batch_step, or jax.vmap over states and actions"
            )
    _require_matching_config(state, config)
    action.rules(config)  # raises for another format, and for a mask of another canvas
    return declared_state(state, ()), as_declared(action, "action", ())


def _require_matching_config(state: ArcEnvState, config: JaxArcConfig) -> None:
    capacity = config.history_capacity if config.history.history_enabled else None
    records = None if state.action_records is None else state.action_records.shape[-2]
    facts = {
        "canvas": (state.grid_shape, config.grid_shape),
        "selection_format": (state.selection_format, config.action.selection_format),
        "history capacity": (records, capacity),
    }
    for name, (made, wanted) in facts.items():
        if made != wanted:
            raise ValueError(
                f"the state was made with {name} {made}, but the config says {wanted}; reset with it first"
            )
