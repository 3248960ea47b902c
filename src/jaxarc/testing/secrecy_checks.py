"""Checks that nothing depends on a hidden answer before a scored submit tells whether it was right."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int8, UInt32

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.testing.random_rollout import RandomRollout, RolloutFunction, at, differing_leaves, to_device
from jaxarc.testing.rollout_checks import resets_itself
from jaxarc.types import PRNGKey

_RECORDS: Final = {
    "actions": "the action space",
    "observations": "the observation of step",
    "rewards": "the reward of step",
    "dones": "done of step",
    "infos": "info of step",
    "shown": "observe(state)",
    "reported": "info(state)",
}
_ROLLOUTS: Final = 16  # played at most, to find episodes that begin with a submit
_NEXT_EPISODES: Final = 3  # started with reset_next


def with_other_answers(params: EnvParams) -> list[EnvParams]:
    """Return params in which only the hidden outputs are others: larger, of a single cell, and equal to the inputs.

    Where an episode starts from the input, a submit is right at once under the last ones.

    Raises:
        TypeError: the tasks are not a buffer.
    """
    if not isinstance(params.tasks, TaskBuffer):
        raise TypeError(f"only the answers of a TaskBuffer can be changed, got a {type(params.tasks).__name__}")
    buffer = params.tasks
    outputs = np.array(buffer.outputs)
    # Colors move on by three, and padding becomes color 5: another answer, as large as the canvas. One that fills the
    # canvas already gets another size as a single cell.
    larger = np.where(outputs > PADDING, (outputs + 3) % NUM_COLORS, 5)
    single = np.full_like(outputs, PADDING)
    single[..., 0] = larger[..., 0]
    others = (larger, single, np.array(buffer.inputs))
    return [dataclasses.replace(params, tasks=_with_tests(buffer, other)) for other in others]


def _with_tests(buffer: TaskBuffer, others: Int8[np.ndarray, "N HW"]) -> TaskBuffer:
    is_test = np.zeros(buffer.num_pairs, np.bool_)
    for first, num_train, num_test in zip(
        *(np.array(x) for x in (buffer.first_pair, buffer.num_train, buffer.num_test)), strict=True
    ):
        is_test[first + num_train : first + num_train + num_test] = True
    # Tests follow the demonstrations of their task; with symmetries all rows come again, block after block.
    rows = np.tile(is_test, buffer.num_symmetries)[:, None]
    return dataclasses.replace(buffer, outputs=jnp.asarray(np.where(rows, others, buffer.outputs).astype(np.int8)))


def keys_that_submit_first(
    play: RolloutFunction, params: EnvParams, num_envs: int, key: PRNGKey
) -> UInt32[np.ndarray, "B words"] | None:
    """Find keys of episodes whose first random action is a submit; None where there are hardly any."""
    for batch in jax.random.split(key, _ROLLOUTS):
        keys = jax.random.key_data(jax.random.split(batch, num_envs))
        first = _submitted(play(params, keys))[0]
        if first.any():
            found = np.asarray(keys)[first]
            return np.resize(found, keys.shape)  # repeated until the batch is full
    return None


def answers_stay_hidden(run: RandomRollout, changed: RandomRollout, params: EnvParams) -> Iterator[str]:
    """Compare two runs with the same keys and other answers."""
    hint = "compute it without the target, its size and the similarity"
    if leaves := _other_shapes(run, changed):
        yield f"the shape of what an episode shows depends on the hidden answer, in {leaves[:3]}; {hint}"
        return
    if leaves := differing_leaves(run.first_observations, changed.first_observations):
        yield f"the first observation depends on the hidden answer, in {leaves[:3]}; show the target in train mode only"
    is_revealed = _feedback_so_far(run, changed) if params.config.scores_submissions else np.zeros_like(run.dones)
    for when in _PHASES:
        faults = []
        for name, words in _RECORDS.items():
            compared = _phases(run, name)[when] & ~is_revealed
            ours, theirs = (at(run_._asdict()[name], compared) for run_ in (run, changed))
            if leaves := differing_leaves(ours, theirs):
                faults.append(f"{words} {when} depends on the hidden answer, in {leaves[:3]}; in test mode {hint}")
        yield from faults
        if faults:
            return  # what comes later mostly repeats them


_PHASES: Final = ("before a submit", "at or after a submit", "in the next episode")


def _phases(run: RandomRollout, record: str) -> dict[str, Bool[np.ndarray, "S B"]]:
    # Episodes that have ended: of the dones 0 1 0 0 1 it is 0 1 1 1 2. What an auto-reset shows in the step that ends
    # an episode is of the next one, which has the number 1 there already; its reward is of the episode number 0.
    ended = np.cumsum(run.dones, axis=0)
    is_of_next = resets_itself(run) and record in ("observations", "shown", "reported")
    is_first = (ended if is_of_next else ended - run.dones) == 0
    submitted = np.logical_or.accumulate(_submitted(run), axis=0)
    return dict(zip(_PHASES, (is_first & ~submitted, is_first & submitted, ~is_first), strict=True))


Side = tuple[Environment[Any], EnvParams, RandomRollout]  # one of two that differ in their answers


def next_episodes_tell_nothing(ours: Side, theirs: Side) -> Iterator[str]:
    """Start the next episode of some environments with reset_next, after two runs with other answers."""
    is_revealed = _feedback_so_far(ours[2], theirs[2])[-1] & ours[1].config.scores_submissions
    for number in np.flatnonzero(~is_revealed)[:_NEXT_EPISODES].tolist():
        shown = []
        for env, params, run in (ours, theirs):
            state, observation = env.reset_next(to_device(at(run.states, -1, number)), params)
            shown.append({"observation": observation, "info": env.info(state, params)})
        if leaves := differing_leaves(*shown):
            yield (
                f"the first observation or info of the next episode depends on the hidden answer, in {leaves[:3]}; let "
                "reset_next keep nothing of the last one but its key"
            )
            return


def _submitted(run: RandomRollout) -> Bool[np.ndarray, "S B"]:
    """Whether a submit was made in the episode, up to each step."""
    return run.infos["submission_count"] > 0 if "submission_count" in run.infos else run.infos["terminated"]


def _feedback_so_far(run: RandomRollout, changed: RandomRollout) -> Bool[np.ndarray, "S B"]:
    """Whether reward, done or info of a submit has differed between the two answers, in each step or before."""
    differs = np.zeros_like(run.dones)
    for ours, theirs in zip(*(jax.tree.leaves((r.rewards, r.dones, r.infos)) for r in (run, changed)), strict=True):
        differs |= (ours != theirs).reshape(*differs.shape, -1).any(axis=-1)
    return np.logical_or.accumulate(differs & _submitted(run) & _submitted(changed), axis=0)


def _other_shapes(run: RandomRollout, changed: RandomRollout) -> list[str]:
    """Name the leaves whose shape or dtype differs between two runs."""
    ours, theirs = (
        {
            jax.tree_util.keystr(path): (leaf.shape, leaf.dtype)
            for path, leaf in jax.tree_util.tree_leaves_with_path(run_._replace(states=None, first_states=None))
        }
        for run_ in (run, changed)
    )
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
