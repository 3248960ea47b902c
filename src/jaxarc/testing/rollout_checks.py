"""Checks of a rollout: spaces, finite numbers, endings, purity, determinism."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.prng import from_key_data
from jaxarc.testing.random_rollout import (
    RandomRollout,
    RolloutFunction,
    at,
    differing_leaves,
    not_finite_leaves,
    to_host,
)

FINAL = "final_observation"  # the entry of info by which an environment shows that it resets itself


def resets_itself(run: RandomRollout) -> bool:
    """Whether the environment starts a new episode in the step that ends one."""
    return FINAL in run.infos


def episodes_ended(run: RandomRollout, how: str) -> Bool[np.ndarray, "S B"]:
    """Return the steps that end an episode; ``how`` is ``"terminated"`` or ``"truncated"``."""
    # Without auto-reset a state stays done: only the first of the steps done 0 1 1 1 ends the episode.
    was_done = np.concatenate([np.zeros_like(run.dones[:1]), run.dones[:-1]])
    return run.infos[how] & (run.dones if resets_itself(run) else run.dones & ~was_done)


def spaces_contain_what_is_seen(run: RandomRollout) -> Iterator[str]:
    """Check that the spaces contain all observations and actions."""
    if not run.first_in_space.all():
        yield (
            f"the observation of reset lies outside observation_space in environment {where(~run.first_in_space)}; "
            "declare its structure, shape, dtype and range, or fix the observation"
        )
    if not run.observation_in_space.all():
        yield (
            f"the observation of step lies outside observation_space at {where(~run.observation_in_space)}; declare "
            "its structure, shape, dtype and range, or fix the observation"
        )
    if not run.action_in_space.all():
        yield (
            f"action_space does not contain an action that it drew, at {where(~run.action_in_space)}; make sample and "
            "contains agree on dtype and range"
        )


def numbers_are_finite(run: RandomRollout) -> Iterator[str]:
    """Check states, observations, rewards and infos for NaN and infinities."""
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
    """Check that ``observe(state)`` is the observation that ``step`` returned with the state."""
    if leaves := differing_leaves(run.shown, run.observations):
        yield (
            f"observe(state) shows something else than the step that made the state, in {some(leaves)}; return from "
            "step what observe returns for the new state"
        )


def endings_agree(run: RandomRollout) -> Iterator[str]:
    """Check that done, terminated, truncated and discount agree."""
    terminated = run.infos["terminated"]
    truncated = run.infos["truncated"]
    wrong = run.dones != (terminated | truncated)
    if wrong.any():
        yield f"done is not terminated | truncated at {where(wrong)}; compute it from the two"
    both = terminated & truncated
    if both.any():
        yield f"an episode both terminated and was truncated at {where(both)}; truncate only what did not terminate"
    off = run.infos["discount"] != 1 - terminated.astype(np.float32)
    if off.any():
        yield f"discount is not 1 - terminated at {where(off)}; a truncated episode keeps the discount 1"


def ended_states_are_inert(run: RandomRollout) -> Iterator[str]:
    """Check that a step in a done state changes nothing and has reward 0."""
    if resets_itself(run):
        return
    before = run.dones[:-1]
    after = run.dones[1:]
    hint = f"; step must return a done state as it is (one that resets itself puts {FINAL!r} into info)"
    revived = before & ~after
    if revived.any():
        yield f"a state that was done no longer is, after {where(revived)}{hint}"
    paid = before & (run.rewards[1:] != 0)
    if paid.any():
        yield f"a step in a state that is done has a reward, after {where(paid)}; return 0 there"
    # All states after steps that began done, beside the states before them: both are [N, ...] after the mask.
    leaves = differing_leaves(at(at(run.states, slice(1, None)), before), at(at(run.states, slice(-1)), before))
    if leaves:
        yield f"a step in a state that is done changes {some(leaves)}{hint}"


def where(wrong: np.ndarray) -> str:
    """Name the first true entry of a mask over steps and environments, or over environments."""
    index = [int(i) for i in np.argwhere(wrong)[0]]
    return f"step {index[0]} of environment {index[1]}" if len(index) == 2 else str(index[0])


def some(leaves: list[str]) -> str:
    return ", ".join(leaves[:3]) + (f" and {len(leaves) - 3} more" if len(leaves) > 3 else "")


_STEPS = 20  # calls from Python; longer runs show nothing new
_INPUTS_COMPARED = 3  # steps whose inputs are copied and compared


def calls_equal_the_batch(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Compare calls from Python, one environment at a time, with the compiled batch."""
    state, observation = env.reset(from_key_data(run.keys[0]), params)
    expected = (at(run.first_states, 0), at(run.first_observations, 0))
    if leaves := differing_leaves((state, observation), expected, exact=False):
        yield f"reset called by itself gives another result than under vmap and jit, in {leaves[:3]}; {_HINT}"
        return
    for step in range(min(_STEPS, run.num_steps)):
        result = env.step(state, run.action(step, 0), params)
        parts = (run.states, run.observations, run.rewards, run.dones, run.infos)
        if leaves := differing_leaves(result, tuple(at(part, step, 0) for part in parts), exact=False):
            yield f"step {step} called by itself gives another result than in a batch, in {leaves[:3]}; {_HINT}"
            return
        state = result[0]


_HINT = "use only the arguments and pure functions of them, and nothing that depends on how the call is compiled"


def calls_repeat_and_leave_their_arguments(
    env: Environment[Any], params: EnvParams, run: RandomRollout
) -> Iterator[str]:
    """Check that equal calls give equal results and leave their arguments as they are."""
    key = from_key_data(run.keys[0])
    for step in range(min(_INPUTS_COMPARED, run.num_steps)):
        state = run.state_before(step, 0)
        action = run.action(step, 0)
        calls = {
            "reset": lambda: env.reset(key, params),
            "step": lambda state=state, action=action: env.step(state, action, params),
            "reset_next": lambda state=state: env.reset_next(state, params),
        }
        for method, call in calls.items():
            before = to_host((state, action, params))
            structure = jax.tree.structure((state, action, params))
            once = to_host(call())
            twice = to_host(call())
            if jax.tree.structure((state, action, params)) != structure or differing_leaves(
                (state, action, params), before
            ):
                yield f"{method} changes its arguments; return new values and leave those that are given"
                return
            if leaves := differing_leaves(once, twice):
                yield f"{method} called twice with the same arguments differs in {leaves[:3]}; keep no hidden state"
                return


def same_keys_give_the_same_bits(play: RolloutFunction, params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Repeat the rollout with the same keys and compare all bits."""
    if leaves := differing_leaves(play(params, run.keys), run):
        yield f"the same keys give other results the second time, in {leaves[:3]}; draw only from the key that is given"


def environments_do_not_see_one_another(play: RolloutFunction, params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Reverse the keys: environment ``i`` must then do exactly what environment ``B - 1 - i`` did."""
    # With the keys turned around, everything must come out turned around; records
    # [S, B] have the batch as their second axis.
    turned = play(params, run.keys[::-1])
    by_env = [name for name in RandomRollout._fields if name.startswith("first_") or name == "keys"]
    for name in RandomRollout._fields:
        ours = getattr(run, name)
        theirs = getattr(turned, name)
        theirs = at(theirs, slice(None, None, -1)) if name in by_env else at(theirs, slice(None), slice(None, None, -1))
        if differing_leaves(ours, theirs):
            yield (
                f"{name} of an environment change with its index in the batch; let it depend on its own key and state "
                "alone, not on neighbors or on a batch index"
            )
            return


def loops_trace_once(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Trace steps in a loop: the second step is not traced again if its state has the types of the first."""
    traces: dict[str, int] = {"step": 0, "reset_next": 0}

    def counted(method: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            traces[method] += 1
            return function(*args)

        return jax.jit(call)

    step = counted("step", env.step)
    reset_next = counted("reset_next", env.reset_next)
    action = run.action(0, 0)
    state, _ = jax.eval_shape(env.reset, from_key_data(run.keys[0]), params)
    # ``eval_shape`` of a jitted function traces only where it has not seen the types: three rounds, one trace each.
    for _ in range(3):
        state = step.eval_shape(state, action, params)[0]
        state, _ = reset_next.eval_shape(state, params)
    for method, count in traces.items():
        if count > 1:
            yield (
                f"{method} is traced {count} times in a loop of 3; its state changes type or static fields on the way: "
                "keep counters in arrays and dtypes fixed"
            )
