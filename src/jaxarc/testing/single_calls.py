"""One environment, called from Python as a user does, against what it did in the batch."""

from collections.abc import Iterator
from typing import Any

import jax

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.prng import from_key_data
from jaxarc.testing.random_rollout import RandomRollout, RolloutFunction
from jaxarc.testing.trees import at, differing_leaves, to_host

_STEPS = 20  # calls from Python; longer runs show nothing new
_INPUTS_COMPARED = 3  # steps whose inputs are copied and compared


def calls_equal_the_batch(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
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
            once, twice = to_host(call()), to_host(call())
            if jax.tree.structure((state, action, params)) != structure or differing_leaves(
                (state, action, params), before
            ):
                yield f"{method} changes its arguments; return new values and leave those that are given"
                return
            if leaves := differing_leaves(once, twice):
                yield f"{method} called twice with the same arguments differs in {leaves[:3]}; keep no hidden state"
                return


def same_keys_give_the_same_bits(play: RolloutFunction, params: EnvParams, run: RandomRollout) -> Iterator[str]:
    if leaves := differing_leaves(play(params, run.keys), run):
        yield f"the same keys give other results the second time, in {leaves[:3]}; draw only from the key that is given"


def environments_do_not_see_one_another(play: RolloutFunction, params: EnvParams, run: RandomRollout) -> Iterator[str]:
    turned = play(params, run.keys[::-1])
    by_env = [name for name in RandomRollout._fields if name.startswith("first_") or name == "keys"]
    for name in RandomRollout._fields:
        ours, theirs = getattr(run, name), getattr(turned, name)
        theirs = at(theirs, slice(None, None, -1)) if name in by_env else at(theirs, slice(None), slice(None, None, -1))
        if differing_leaves(ours, theirs):
            yield (
                f"{name} of an environment change with its place in the batch; let it depend on its own key and state "
                "alone, not on neighbors or on a batch index"
            )
            return


def loops_trace_once(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Trace a step for every state of a loop; nothing is compiled, and equal types are traced once."""
    traces: dict[str, int] = {"step": 0, "reset_next": 0}

    def counted(method: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            traces[method] += 1
            return function(*args)

        return jax.jit(call)

    step, reset_next = counted("step", env.step), counted("reset_next", env.reset_next)
    action = run.action(0, 0)
    state, _ = jax.eval_shape(env.reset, from_key_data(run.keys[0]), params)
    for _ in range(3):
        state = step.eval_shape(state, action, params)[0]
        state, _ = reset_next.eval_shape(state, params)
    for method, count in traces.items():
        if count > 1:
            yield (
                f"{method} is traced {count} times in a loop of 3; its state changes type or static fields on the way: "
                "keep counters in arrays and dtypes fixed"
            )
