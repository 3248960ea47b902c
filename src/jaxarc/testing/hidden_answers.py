"""Change the hidden answers of a test: nothing that an agent receives before its submit may change."""

import dataclasses
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.params import EnvParams
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.testing.random_rollout import RandomRollout
from jaxarc.testing.trees import at, differing_leaves

_NAMES = {
    "actions": "the action space",
    "observations": "the observation of step",
    "rewards": "the reward of step",
    "dones": "done of step",
    "infos": "info of step",
    "shown": "observe(state)",
    "reported": "info(state)",
}


def with_other_answers(params: EnvParams) -> EnvParams:
    """Return params whose test outputs have other colors and another size; all else, demonstrations too, is kept.

    Raises:
        TypeError: the tasks are not a buffer.
    """
    if not isinstance(params.tasks, TaskBuffer):
        raise TypeError(f"only the answers of a TaskBuffer can be changed, got a {type(params.tasks).__name__}")
    buffer = params.tasks
    outputs = np.array(buffer.outputs).reshape(buffer.num_symmetries, buffer.num_pairs, -1)
    changed = np.where(outputs > PADDING, (outputs + 3) % NUM_COLORS, 5).astype(np.int8)
    is_test = np.zeros(buffer.num_pairs, np.bool_)
    for first, num_train, num_test in zip(
        *(np.array(x) for x in (buffer.first_pair, buffer.num_train, buffer.num_test)), strict=True
    ):
        is_test[first + num_train : first + num_train + num_test] = True
    mixed = np.where(is_test[None, :, None], changed, outputs).reshape(buffer.outputs.shape)
    return dataclasses.replace(params, tasks=dataclasses.replace(buffer, outputs=jnp.asarray(mixed)))


def answers_stay_hidden(run: RandomRollout, changed: RandomRollout) -> Iterator[str]:
    """Compare two runs with the same keys and other answers, up to the first submit of each environment."""
    if leaves := differing_leaves(run.first_observations, changed.first_observations):
        yield f"the first observation depends on the hidden answer, in {leaves[:3]}; show the target in train mode only"
    before = before_submits(run) & before_submits(changed)
    for name in ("actions", "observations", "rewards", "dones", "infos", "shown", "reported"):
        ours, theirs = (at(run_._asdict()[name], before) for run_ in (run, changed))
        if leaves := differing_leaves(ours, theirs):
            yield (
                f"{_NAMES[name]} before a submit depends on the hidden answer, in {leaves[:3]}; in test mode compute "
                "it without the target, its size and the similarity"
            )


def before_submits(run: RandomRollout) -> Bool[np.ndarray, "S B"]:
    """Whether an environment has submitted nothing yet, after each step."""
    now = run.infos["submission_count"] > 0 if "submission_count" in run.infos else run.infos["terminated"]
    return ~np.logical_or.accumulate(now, axis=0)
