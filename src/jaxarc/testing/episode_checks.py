"""What must hold of episodes that were played: spaces, numbers, endings, and what follows an ending."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, PyTree

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.testing.random_rollout import RandomRollout
from jaxarc.testing.trees import at, differing_leaves, not_finite_leaves
from jaxarc.wrappers.wrapper import Wrapper

FINAL = "final_observation"  # the entry of info by which an environment tells that it resets itself


def resets_itself(run: RandomRollout) -> bool:
    """Whether the environment starts a new episode in the step that ends one."""
    return FINAL in run.infos


def episodes_ended(run: RandomRollout, how: str) -> Bool[np.ndarray, "S B"]:
    """Steps that end an episode, ``how`` is ``"terminated"`` or ``"truncated"``."""
    was_done = np.concatenate([np.zeros_like(run.dones[:1]), run.dones[:-1]])
    return run.infos[how] & (run.dones if resets_itself(run) else run.dones & ~was_done)


def spaces_contain_what_is_seen(run: RandomRollout) -> Iterator[str]:
    if not run.first_in_space.all():
        yield (
            f"the observation of reset lies outside observation_space in environment {_where(~run.first_in_space)}; "
            "declare its structure, shape, dtype and range, or mend the observation"
        )
    if not run.observation_in_space.all():
        yield (
            f"the observation of step lies outside observation_space at {_where(~run.observation_in_space)}; declare "
            "its structure, shape, dtype and range, or mend the observation"
        )
    if not run.action_in_space.all():
        yield (
            f"action_space does not contain an action that it drew, at {_where(~run.action_in_space)}; make sample and "
            "contains agree on dtype and range"
        )


def numbers_are_finite(run: RandomRollout) -> Iterator[str]:
    parts = (
        ("the first state", run.first_states),
        ("the first observation", run.first_observations),
        ("info of the first state", run.first_reported),
        ("the state after a step", run.states),
        ("the observation of step", run.observations),
        ("the reward of step", run.rewards),
        ("info of step", run.infos),
    )
    for name, tree in parts:
        for leaf in not_finite_leaves(tree):
            yield f"{name} holds NaN or an infinity in {leaf}; find the division, logarithm or overflow behind it"


def views_show_the_state(run: RandomRollout) -> Iterator[str]:
    if leaves := differing_leaves(run.shown, run.observations):
        yield (
            f"observe(state) shows something else than the step that made the state, in {_some(leaves)}; return from "
            "step what observe returns for the new state"
        )


def endings_agree(run: RandomRollout) -> Iterator[str]:
    terminated, truncated = run.infos["terminated"], run.infos["truncated"]
    wrong = run.dones != (terminated | truncated)
    if wrong.any():
        yield f"done is not terminated | truncated at {_where(wrong)}; compute it from the two"
    both = terminated & truncated
    if both.any():
        yield f"an episode both terminated and was truncated at {_where(both)}; truncate only what did not terminate"
    off = run.infos["discount"] != 1 - terminated.astype(np.float32)
    if off.any():
        yield f"discount is not 1 - terminated at {_where(off)}; a truncated episode keeps the discount 1"


def ended_states_are_inert(run: RandomRollout) -> Iterator[str]:
    if resets_itself(run):
        return
    before, after = run.dones[:-1], run.dones[1:]
    hint = f"; step must return a done state as it is (one that resets itself puts {FINAL!r} into info)"
    revived = before & ~after
    if revived.any():
        yield f"a state that was done no longer is, after {_where(revived)}{hint}"
    paid = before & (run.rewards[1:] != 0)
    if paid.any():
        yield f"a step in a state that is done pays a reward, after {_where(paid)}; pay 0 there"
    leaves = differing_leaves(at(at(run.states, slice(1, None)), before), at(at(run.states, slice(-1)), before))
    if leaves:
        yield f"a step in a state that is done changes {_some(leaves)}{hint}"


def auto_resets_keep_the_contract(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    if not resets_itself(run):
        return
    finals = run.infos[FINAL]
    if jax.tree.structure(finals) != jax.tree.structure(run.observations):
        yield f"info[{FINAL!r}] has another structure than an observation; put the observation before the reset there"
        return
    running = ~run.dones
    if leaves := differing_leaves(at(finals, running), at(run.observations, running)):
        yield f"info[{FINAL!r}] is not the observation in a step that ends nothing, in {_some(leaves)}; fill it always"
    ended = run.dones & (run.reported["terminated"] | run.reported["truncated"])
    if ended.any():
        yield f"the state after an episode's end is done itself at {_where(ended)}; return the next one's first state"
    yield from _reset_is_the_next_reset_of_the_inner_one(env, params, run)


def auto_resets_draw_by_the_params(restricted: RandomRollout, task_index: int) -> Iterator[str]:
    """Check a run under params that play one task only."""
    if not resets_itself(restricted):
        return
    drawn = restricted.reported["task_index"]
    if (drawn != task_index).any():
        yield (
            f"params play task {task_index} only, but an auto-reset drew task {int(drawn[drawn != task_index][0])} at "
            f"{_where(drawn != task_index)}; reset with the params that step was given, not with others"
        )


def _reset_is_the_next_reset_of_the_inner_one(
    env: Environment[Any], params: EnvParams, run: RandomRollout
) -> Iterator[str]:
    """Compare an outermost auto-reset with a step and a reset_next of the environment inside."""
    if not isinstance(env, Wrapper) or not run.dones.any():
        return
    step, number = (int(place) for place in np.argwhere(run.dones)[0])
    state, action = run.state_before(step, number), run.action(step, number)
    if not _has_same_state(env, params, state) or FINAL in env.env.info(state, params):
        return
    ended, last, *_ = env.env.step(state, action, params)
    if leaves := differing_leaves(at(run.infos[FINAL], step, number), last, exact=False):
        yield (
            f"info[{FINAL!r}] is not the last observation of the episode that ended at step {step}, in "
            f"{_some(leaves)}; take it before the reset"
        )
    first, _ = env.env.reset_next(ended, params)
    if leaves := differing_leaves(at(run.states, step, number), first, exact=False):
        yield (
            f"the state after the end at step {step} is not reset_next(ended state, params), in {_some(leaves)}; start "
            "the next episode with reset_next of the environment inside, and with the params of the step"
        )


def _has_same_state(env: Wrapper[Any], params: EnvParams, state: PyTree) -> bool:
    inner, _ = jax.eval_shape(env.env.reset, jax.random.key(0), params)
    return jax.tree.structure(inner) == jax.tree.structure(state)


def _where(wrong: np.ndarray) -> str:
    """Name the first place of a mask over steps and environments, or over environments."""
    place = [int(i) for i in np.argwhere(wrong)[0]]
    return f"step {place[0]} of environment {place[1]}" if len(place) == 2 else str(place[0])


def _some(leaves: list[str]) -> str:
    return ", ".join(leaves[:3]) + (f" and {len(leaves) - 3} more" if len(leaves) > 3 else "")
