"""One step of an episode: check the action, edit the canvas, decide ending and reward."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import Canvas, Command
from jaxarc.envs.command import check_action
from jaxarc.envs.ending import decide_ending
from jaxarc.envs.history import append_record
from jaxarc.envs.legality import legal_operations, switches_pairs
from jaxarc.envs.operations.execute import Plan, execute
from jaxarc.envs.pairs import PairSource, all_pairs, choose_pair
from jaxarc.envs.rewards import Outcome, compute_reward
from jaxarc.envs.similarity import count_union, similarity
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction


class Transition(NamedTuple):
    state: ArcEnvState
    reward: Float32[Array, ""]
    invalid_action: Bool[Array, ""]


def take_step(state: ArcEnvState, action: StructuredAction, source: PairSource, config: JaxArcConfig) -> Transition:
    """Take one step; a state that is done stays as it is and pays nothing.

    Args:
        state: the state of one environment.
        action: what to do; the config's invalid-action policy says what becomes of a wrong one.
        source: the pairs of the state's task.
        config: the one that the state was started with.
    """
    running = ~state.done
    checked = check_action(action, config)
    operation = jnp.where(running, checked.operation, c.NO_OPERATION)
    pair_index, can_switch = choose_pair(operation, state.pair_index, state.solved_pairs, source.count)
    operation = jnp.where(can_switch, operation, c.NO_OPERATION)
    command = Command(operation, checked.selection, source.first_row + pair_index)
    plan = Plan(config.grid_shape, choose_executor(config.environment.executor), legal_operations(config))
    canvas, matches = execute(state.canvas, command, source.table, plan)
    score = _score(canvas, matches)

    submitted = operation == c.SUBMIT
    right = submitted & (matches == count_union(canvas.sizes[:4]))
    bit = jnp.int32(1) << (pair_index if switches_pairs(config) else jnp.int32(0))
    solved = state.solved_pairs | jnp.where(right, bit, 0)
    goal = all_pairs(source.count) if switches_pairs(config) else jnp.int32(1)
    step_count = state.step_count + running.astype(jnp.int32)
    submission_count = state.submission_count + submitted.astype(jnp.int32)
    ending = decide_ending(submitted, right & (solved == goal), submission_count, step_count, config.environment)

    outcome = Outcome(
        similarity_before=state.similarity_score,
        similarity_after=score,
        pair_changed=operation > c.SUBMIT,
        newly_solved=right & (solved != state.solved_pairs),
        wrong_submission=submitted & ~right,
        invalid=checked.invalid,
    )
    reward = jnp.where(running, compute_reward(outcome, config), jnp.float32(0))
    records = state.action_records
    if records is not None:
        records = append_record(records, action, state.step_count, state.pair_index, checked.invalid, running)
    after = ArcEnvState(
        canvas=canvas,
        counts=jnp.stack([step_count, submission_count, state.task_index, pair_index, solved]),
        similarity_score=score,
        endings=jnp.where(running, jnp.stack(ending), state.endings),
        key=state.key,
        action_records=records,
        task_data=state.task_data,
        grid_shape=state.grid_shape,
        selection_format=state.selection_format,
    )
    return Transition(after, reward, checked.invalid & running)


def choose_executor(wanted: str) -> str:
    """Resolve ``"auto"``: compact on a CPU, dense on accelerators."""
    if wanted != "auto":
        return wanted
    return "compact" if jax.default_backend() == "cpu" else "dense"


def _score(canvas: Canvas, matches: Int32[Array, ""]) -> Float32[Array, ""]:
    return similarity(matches, count_union(canvas.sizes[:4]))
