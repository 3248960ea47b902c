"""``check_environment``: does an environment keep the contract that agents, wrappers and rollouts rely on?"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, PyTree

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.params import EnvParams
from jaxarc.errors import JaxarcError
from jaxarc.interface import Environment
from jaxarc.prng import as_typed_key, from_key_data
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.testing.random_rollout import (
    RandomRollout,
    RolloutFunction,
    at,
    compile_rollout,
    differences,
    infinite_leaves,
    to_device,
    to_host,
    type_of,
)
from jaxarc.types import PRNGKey
from jaxarc.wrappers.wrapper import AutoReset

_LONGEST = 1000  # steps, when the number is left open
_STEPS_BY_HAND = 10  # more show nothing new
_TOLERANCE = 1e-5  # relative: two compiled programs may round differently
_BATCHES = 8  # played for each other answer; a submit at once is right where the answer is the input
_SCALARS = {"terminated": jnp.bool_, "truncated": jnp.bool_, "discount": jnp.float32}  # what every info has
_FINAL = "final_observation"  # the entry of info by which an environment shows that it resets itself
_REFUSALS = (TypeError, ValueError, LookupError, AttributeError, NotImplementedError, AssertionError, RuntimeError)


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """The checks that :func:`check_environment` made, and the number of episodes."""

    passed: tuple[str, ...]  # names of the checks
    skipped: dict[str, str]  # name of a check -> the reason why it was not made
    episodes_terminated: int
    episodes_truncated: int


class EnvironmentCheckError(JaxarcError, AssertionError):
    """An environment breaks its contract.

    Attributes:
        failures: one ``(check, sentence)`` for each fault that was found.
    """

    def __init__(self, failures: list[tuple[str, str]]):
        self.failures = tuple(failures)
        lines = [f"  {check}: {sentence}" for check, sentence in failures]
        super().__init__("\n".join([f"the environment breaks its contract; faults found: {len(failures)}", *lines]))


def check_environment(
    env: Environment[Any, Any],
    params: Any,
    key: PRNGKey | None = None,
    num_envs: int = 8,
    num_steps: int | None = None,
    make_env: Callable[[EnvParams], Environment[Any, Any]] | None = None,
) -> CheckReport:
    """Check that an environment keeps its contract: types, spaces, endings, purity, resets, secrecy.

    It plays random actions of the environment's own action space, in a batch and alone. A game, whose RESET goes on
    after an end, is checked with an ``AutoReset`` around it. Most of the time is
    compilation: a small canvas, few operations and short episodes make it fast.

    Args:
        env: any environment or wrapper of this package's type.
        params: tasks and config. In test mode the hidden answers are changed, to see whether anything depends on them.
        key: random key; None for a fixed one.
        num_envs: B, environments of the batch, 2 or more.
        num_steps: S; None for as many as a truncated episode of ARC takes, 1000 at most and of others.
        make_env: makes the environment from params, for one that keeps something of its tasks, such as the size of an
            array; it is made again for other hidden answers. None: the environment knows of tasks what params hold.

    Returns:
        The checks that passed, and those that were skipped.

    Raises:
        EnvironmentCheckError: it names each check that failed, where, and how to fix it.
        ValueError: ``num_envs`` or ``num_steps`` is too small.
    """
    if isinstance(env, Environment):  # what is none fails below
        env.require(params)
    if num_envs < 2 or (num_steps is not None and num_steps < 2):
        raise ValueError(f"a check needs 2 environments and 2 steps or more, got {num_envs} and {num_steps}")
    # Three steps beyond the limit, so that endings by time happen and a step after the end is seen.
    limit = params.config.environment.max_episode_steps if isinstance(params, EnvParams) else _LONGEST
    steps = min(limit + 3, _LONGEST) if num_steps is None else num_steps
    key = as_typed_key(jax.random.key(0) if key is None else key)
    log = _Log()
    hint = "a method cannot be traced; use jax.numpy and jax.lax on traced values"
    traced = log.attempt("traceable", hint, lambda: _trace(env, params, key))
    log.note("stable types", _other_types(traced))
    log.note("report types", _wrong_reports(traced))
    log.raise_failures()  # without stable types a scan over steps fails

    play = compile_rollout(env, steps)
    keys = jax.random.key_data(jax.random.split(key, num_envs))
    # One run of random actions is recorded; the checks that follow read it, or compare another run with it.
    hint = "jit, vmap and scan refuse a loop of steps; make each work alone"
    run = log.attempt("playable", hint, lambda: play(params, keys))
    resets_itself = "the environment resets itself" if _FINAL in run.steps.info else None
    log.note("spaces", _outside_of_spaces(run))
    log.note("finite numbers", _infinite_numbers(run))
    log.note("views", _other_views(run))
    log.note("endings", _wrong_endings(run))
    log.note("inert when done", _changes_after_the_end(run), resets_itself)
    log.note("pure", _impure_calls(env, params, run, play))
    inside = env.env if isinstance(env, AutoReset) else env
    log.note("step and reset", _other_step_and_reset(inside, params, run), resets_itself if inside is env else None)
    leaks = _leaks(env, params, run, play, jax.random.fold_in(key, 1), make_env)
    log.note("answers stay hidden", leaks, _why_nothing_is_hidden(params))
    log.raise_failures()
    return CheckReport(
        tuple(log.passed), log.skipped, *(int(_ends(run, how).sum()) for how in ("terminated", "truncated"))
    )


class _Log:
    """The checks that passed, failed and were skipped."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.skipped: dict[str, str] = {}
        self.failures: list[tuple[str, str]] = []

    def note(self, check: str, faults: Iterator[str], why_not: str | None = None) -> None:
        """Run a check and record its faults, or record why it is not made."""
        if why_not is not None:
            self.skipped[check] = why_not
            return
        found = [(check, fault) for fault in faults]
        self.failures += found
        if not found:
            self.passed.append(check)

    def attempt(self, check: str, hint: str, call: Callable[[], Any]) -> Any:
        """Return what a call returns; nothing can be checked where it raises."""
        try:
            result = call()
        except _REFUSALS as error:
            raise EnvironmentCheckError([(check, f"{hint} ({_one_line(error)})")]) from error
        self.passed.append(check)
        return result

    def raise_failures(self) -> None:
        if self.failures:
            raise EnvironmentCheckError(self.failures)


def _trace(env: Environment[Any, Any], params: EnvParams, key: PRNGKey) -> dict[str, Any]:
    """Return shapes and dtypes of what each method returns; nothing is compiled or computed."""
    state, observation = jax.eval_shape(env.reset, key, params)
    action = jax.eval_shape(lambda key: env.action_space(params).sample(key), key)
    return {
        "reset": (state, observation),
        "step": jax.eval_shape(env.step, state, action, params),
        "reset_next": jax.eval_shape(env.reset_next, state, params),
        "observe": jax.eval_shape(env.observe, state, params),
        "info": jax.eval_shape(env.info, state, params),
    }


def _other_types(traced: dict[str, Any]) -> Iterator[str]:
    """A scan carries the state, so whatever returns one must return the same types; reset sets the standard."""
    first, shown = traced["reset"]
    for method in ("step", "reset_next"):
        if found := differences(traced[method][0], first):
            yield (
                f"{method} returns another state than reset, in {_some(found)}; a loop over steps needs states of one "
                "structure, shape and dtype, so cast where it is computed, and use jnp constants of a fixed dtype"
            )
    observations = {"step": traced["step"][1], "reset_next": traced["reset_next"][1], "observe": traced["observe"]}
    for method, observation in observations.items():
        if found := differences(observation, shown):
            yield f"{method} returns another observation than reset, in {_some(found)}; build both in one function"


def _wrong_reports(traced: dict[str, Any]) -> Iterator[str]:
    *_, reward, done, info = traced["step"]
    named = {"a reward": (reward, jnp.float32), "a done": (done, jnp.bool_)}
    named |= {f"an info[{name!r}]": (info.get(name), dtype) for name, dtype in _SCALARS.items()}
    for name, (leaf, dtype) in named.items():
        if leaf is None:
            yield f"step returns no {name.partition(' ')[2]}; add it, a {jnp.dtype(dtype).name} scalar"
        elif (leaf.shape, leaf.dtype) != ((), dtype):
            yield f"step returns {name} of {type_of(leaf)}; make it a {jnp.dtype(dtype).name} scalar"
    if found := differences(traced["info"], info):
        yield f"info(state) has other types than the info of step, in {_some(found)}; give both the same"


def _outside_of_spaces(run: RandomRollout) -> Iterator[str]:
    starts = {"reset": run.first.observation_in_space, "reset_next": run.following.observation_in_space}
    for method, inside in {**starts, "step": run.steps.observation_in_space}.items():
        if not inside.all():
            yield (
                f"the observation of {method} lies outside observation_space at {_where(~inside)}; declare its "
                "structure, shape, dtype and range, or fix the observation"
            )
    if not run.steps.action_in_space.all():
        yield (
            f"action_space does not contain an action that it drew, at {_where(~run.steps.action_in_space)}; make "
            "sample and contains agree on dtype and range"
        )


def _infinite_numbers(run: RandomRollout) -> Iterator[str]:
    for method, part in {"reset": run.first, "step": run.steps, "reset_next": run.following}.items():
        if found := infinite_leaves(part):
            yield f"{method} makes NaN or an infinity in {_some(found)}; find the division, logarithm or overflow"


def _other_views(run: RandomRollout) -> Iterator[str]:
    if found := differences(run.steps.view, run.steps.observation):
        yield (
            f"observe(state) shows something else than the step that made the state, in {_some(found)}; return from "
            "step what observe returns for the new state"
        )


def _wrong_endings(run: RandomRollout) -> Iterator[str]:
    terminated, truncated, discount = (run.steps.info[name] for name in _SCALARS)
    wrong = {
        "done is not terminated | truncated": run.steps.done != (terminated | truncated),
        "an episode both terminated and was truncated; truncate only what did not terminate": terminated & truncated,
        "discount is not 1 - terminated": discount != 1 - terminated.astype(np.float32),
    }
    for rule, steps in wrong.items():
        if steps.any():
            yield f"at {_where(steps)} {rule}"


def _changes_after_the_end(run: RandomRollout) -> Iterator[str]:
    """All steps that begin in a state that is done, beside the states before them: both are [N, ...] by the mask."""
    was_done = run.steps.done[:-1]
    before, after = (at(at(run.steps.state, steps), was_done) for steps in (slice(-1), slice(1, None)))
    if found := differences(after, before):
        yield (
            f"a step in a state that is done changes {_some(found)}; step must return it as it is (an environment "
            f"that resets itself puts {_FINAL!r} into info)"
        )
    rewarded = was_done & (run.steps.reward[1:] != 0)
    if rewarded.any():
        yield f"a step in a state that is done has a reward, after {_where(rewarded)}; return 0 there"


def _impure_calls(
    env: Environment[Any, Any], params: EnvParams, run: RandomRollout, play: RolloutFunction
) -> Iterator[str]:
    """Play the last environment of the batch again by hand, each call twice, and the whole batch once more."""

    def call(name: str, recorded: PyTree, *args: Any) -> tuple[Any, str | None]:
        before = to_host(args)
        once, twice = (to_host(getattr(env, name)(*args)) for _ in range(2))
        if differences(to_host(args), before):
            return once, f"{name} changes its arguments; return new values and leave those that are given"
        if found := differences(once, twice):
            return once, f"{name} called twice differs in {_some(found)}; keep no hidden state"
        if found := differences(once, recorded, _TOLERANCE):
            return once, (
                f"{name} called by hand returns something else than under jit, vmap and scan, in {_some(found)}; let "
                "it depend on its arguments alone, not on how it is compiled, on a batch index or on neighbors"
            )
        return once, None

    (state, _), fault = call("reset", at(run.first[:2], -1), from_key_data(run.keys[-1]), params)
    for step in range(min(_STEPS_BY_HAND, run.steps.done.shape[0])):
        if fault is not None:
            break
        args = to_device((state, at(run.steps.action, step, -1)))
        (state, *_), fault = call("step", at(run.steps[1:6], step, -1), *args, params)
    last = to_device(at(run.steps.state, -1, -1))
    faults = [fault, call("reset_next", at(run.following[:2], -1), last, params)[1]]
    if found := differences(play(params, run.keys), run):
        faults.append(f"the same keys give another rollout, in {_some(found)}; draw only from the key that is given")
    yield from filter(None, faults)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _other_step_and_reset(env: Environment[Any, Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Compare an environment's own ``step_and_reset``, of which auto-reset is made, with that of the base class."""
    playing = ~run.steps.done[:-1] | (_FINAL in run.steps.info)  # states [N, ...] from which an agent goes on
    states, actions = at(run.steps.state, slice(-1)), at(run.steps.action, slice(1, None))
    args = to_device(at((states, actions), playing))
    ways = (env.step_and_reset, lambda *args: Environment.step_and_reset(env, *args))
    try:
        ours, wanted = (to_host(jax.jit(jax.vmap(way, (0, 0, None)))(*args, params)) for way in ways)
    except _REFUSALS as error:
        yield f"step_and_reset cannot be traced ({_one_line(error)}); leave it as it is in the base class"
        return
    if found := differences(ours, wanted, _TOLERANCE):
        yield (
            f"step_and_reset returns something else than step, and reset_next where the episode ended, in "
            f"{_some(found)}; leave it as it is in the base class, or change it with them"
        )


def _why_nothing_is_hidden(params: Any) -> str | None:
    if not isinstance(params, EnvParams):
        return "only tasks of ARC have hidden answers"
    if params.config.episode.mode == "train":
        return "in train mode targets may be seen; pass params with mode='test'"
    if not isinstance(params.tasks, TaskBuffer):
        return "a generator makes its answers itself; pass tasks in a buffer"
    return None


def _leaks(
    env: Environment[Any, Any],
    params: EnvParams,
    run: RandomRollout,
    play: RolloutFunction,
    key: PRNGKey,
    make_env: Callable[[EnvParams], Environment[Any, Any]] | None,
) -> Iterator[str]:
    """Play the same keys with other answers: nothing that is shown may change until a scored submit tells of one."""
    num_envs, num_steps = run.steps.done.shape[::-1]
    others = [
        (other, play if make_env is None else compile_rollout(make_env(other), num_steps))
        for other in _with_other_answers(params)
    ]
    more = [jax.random.key_data(jax.random.split(batch, num_envs)) for batch in jax.random.split(key, _BATCHES)]
    for keys in (run.keys, *more):
        known = play(params, keys)
        found = [leak for other, replay in others for leak in _dependences(known, replay(other, keys), params)]
        if found:  # that other episodes would mostly repeat
            yield from dict.fromkeys(found)
            return


def _with_other_answers(params: EnvParams) -> Iterator[EnvParams]:
    """Yield params in which only the hidden outputs are others: larger, of a single cell, and equal to the inputs.

    Where an episode starts from the input, a submit is right at once under the last ones.
    """
    tasks = params.tasks
    assert isinstance(tasks, TaskBuffer)
    is_test = np.zeros(tasks.num_pairs, np.bool_)
    for first, num_train, num_test in np.stack([tasks.first_pair, tasks.num_train, tasks.num_test], axis=1):
        is_test[first + num_train : first + num_train + num_test] = True
    # Tests follow the demonstrations of their task; with symmetries all rows come again, block after block.
    hidden = np.tile(is_test, tasks.num_symmetries)[:, None]
    outputs = np.array(tasks.outputs)
    # Colors move on by three, and padding becomes color 5: another answer, as large as the canvas. One that fills the
    # canvas already gets another size as a single cell.
    larger = np.where(outputs > PADDING, (outputs + 3) % NUM_COLORS, 5)
    single = np.full_like(outputs, PADDING)
    single[..., 0] = larger[..., 0]
    for answers in (larger, single, np.array(tasks.inputs)):
        changed = jnp.asarray(np.where(hidden, answers, outputs).astype(np.int8))
        yield dataclasses.replace(params, tasks=dataclasses.replace(tasks, outputs=changed))


def _dependences(run: RandomRollout, changed: RandomRollout, params: EnvParams) -> Iterator[str]:
    """Name what differs between two runs with the same keys and other answers."""
    hint = "depends on the hidden answer; in test mode compute it without the target, its size and the similarity"
    ours, theirs = (_shown(run), _shown(changed))
    types = [jax.eval_shape(lambda tree: tree, shown) for shown in (ours, theirs)]
    if found := differences(*types):
        yield f"the shape of what an episode shows {hint}: {_some(found)}"
        return
    revealed = np.zeros_like(run.steps.done)
    if params.config.scores_submissions:
        revealed = np.logical_or.accumulate(_feedback_differs(run, changed), axis=0)
    hidden = {"reset": slice(None), "step": ~revealed, "reset_next": ~revealed[-1]}
    for method, places in hidden.items():
        for leaf in differences(at(ours[method], places), at(theirs[method], places)):
            yield f"{leaf} of {method} {hint}"


def _shown(run: RandomRollout) -> dict[str, Any]:
    """Return by method what an agent may see: all but the states."""
    parts = {"reset": run.first, "step": run.steps, "reset_next": run.following}
    return {method: part._replace(state=None) for method, part in parts.items()}


def _feedback_differs(run: RandomRollout, changed: RandomRollout) -> Bool[np.ndarray, "S B"]:
    """Whether reward, done or info of a step at or after a submit differs between two answers."""
    differs = np.zeros_like(run.steps.done)
    reported = (jax.tree.leaves((steps.reward, steps.done, steps.info)) for steps in (run.steps, changed.steps))
    for ours, theirs in zip(*reported, strict=True):
        differs |= (ours != theirs).reshape(*differs.shape, -1).any(axis=-1)
    return differs & _submitted(run) & _submitted(changed)


def _submitted(run: RandomRollout) -> Bool[np.ndarray, "S B"]:
    """Whether a submit was made in the episode, up to each step."""
    info = run.steps.info
    return info["submission_count"] > 0 if "submission_count" in info else info["terminated"]


def _ends(run: RandomRollout, how: str) -> Bool[np.ndarray, "S B"]:
    """Return the steps that end an episode; ``how`` is ``"terminated"`` or ``"truncated"``."""
    # Without auto-reset a state stays done: only the first of the steps done 0 1 1 1 ends the episode.
    done = run.steps.done
    was_done = np.concatenate([np.zeros_like(done[:1]), done[:-1]])
    return run.steps.info[how] & (done if _FINAL in run.steps.info else done & ~was_done)


def _where(wrong: np.ndarray) -> str:
    """Name the first true entry of a mask over steps and environments, or over environments."""
    *step, number = np.argwhere(wrong)[0].tolist()
    return f"step {step[0]} of environment {number}" if step else f"environment {number}"


def _some(found: list[str]) -> str:
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
