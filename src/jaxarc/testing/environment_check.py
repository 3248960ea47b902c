"""``check_environment``: does an environment keep the contract that agents, wrappers and rollouts rely on?"""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, UInt32

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.errors import JaxarcError
from jaxarc.prng import as_typed_key
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.testing import reset_checks, rollout_checks, secrecy_checks, trace_checks
from jaxarc.testing.random_rollout import RandomRollout, RolloutFunction, compile_rollout
from jaxarc.types import PRNGKey
from jaxarc.wrappers.auto_reset import AutoReset

_LONGEST = 1000  # steps, when the number is left open
_REFUSALS = (TypeError, ValueError, LookupError, AttributeError, NotImplementedError, AssertionError, RuntimeError)


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """The checks that :func:`check_environment` made, and the number of episodes."""

    passed: tuple[str, ...]  # names of the checks
    skipped: dict[str, str]  # name of a check -> the reason why it was not made
    warned: dict[str, str]  # name of a check -> what it found, which is no breach of the contract by itself
    num_steps: int
    num_envs: int
    episodes_terminated: int
    episodes_truncated: int


class EnvironmentCheckWarning(UserWarning):
    """An environment keeps its contract, but does what is hardly meant."""


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
    env: Environment[Any],
    params: EnvParams,
    key: PRNGKey | None = None,
    num_envs: int = 8,
    num_steps: int | None = None,
    make_env: Callable[[EnvParams], Environment[Any]] | None = None,
) -> CheckReport:
    """Check that an environment keeps its contract: types, spaces, purity, determinism, endings, resets, secrecy.

    It plays random actions of the environment's own action space, in a batch and alone. Most of the time is
    compilation: a small canvas, few operations and short episodes make it fast.

    Args:
        env: any environment or wrapper of this package's type.
        params: tasks and config. In test mode the hidden answers are changed, to see whether anything depends on them.
        key: random key; None for a fixed one.
        num_envs: B, environments of the batch, 2 or more.
        num_steps: S; None for as many as a truncated episode takes, 1000 at most.
        make_env: makes the environment from params, for one that keeps something of its tasks, such as the size of an
            array; it is made again for other hidden answers. None: the environment knows of tasks what params hold.

    Returns:
        The checks that passed, and those that were skipped.

    Raises:
        EnvironmentCheckError: it names each check that failed, where, and how to fix it.
        ValueError: ``num_envs`` or ``num_steps`` is too small.

    Warns:
        EnvironmentCheckWarning: a random key never advances, or is used twice.
    """
    if not isinstance(params, EnvParams):
        raise TypeError(f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}")
    if num_envs < 2 or (num_steps is not None and num_steps < 2):
        raise ValueError(f"a check needs 2 environments and 2 steps or more, got {num_envs} and {num_steps}")
    # Three steps beyond the limit, so that endings by time happen and a step after the end is seen.
    steps = min(params.config.environment.max_episode_steps + 3, _LONGEST) if num_steps is None else num_steps
    key = as_typed_key(jax.random.key(0) if key is None else key)
    log = CheckLog()
    _check_types(log, env, params, key)
    play = compile_rollout(env, steps)
    # One run of random actions is recorded; nearly all checks that follow read it, or compare another run with it.
    run = _first_run(log, play, params, jax.random.key_data(jax.random.split(key, num_envs)))
    _check_episodes(log, env, params, run, play)
    _check_resets(log, env, params, run, play, jax.random.fold_in(key, 1))
    _check_secrecy(log, env, params, run, play, jax.random.fold_in(key, 2), make_env)
    log.close_if_failed()
    for name, sentence in log.warned.items():
        warnings.warn(f"{name}: {sentence}", EnvironmentCheckWarning, stacklevel=2)
    ended = [int(rollout_checks.episodes_ended(run, how).sum()) for how in ("terminated", "truncated")]
    return CheckReport(tuple(log.passed), log.skipped, log.warned, steps, num_envs, *ended)


class CheckLog:
    """The checks that passed, failed and were skipped."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.skipped: dict[str, str] = {}
        self.warned: dict[str, str] = {}
        self.failures: list[tuple[str, str]] = []

    def note(self, check: str, faults: Iterator[str]) -> None:
        """Run a check and record its faults."""
        found = [(check, fault) for fault in faults]
        self.failures += found
        if not found:
            self.passed.append(check)

    def warn(self, check: str, faults: Iterator[str]) -> None:
        """Run a check whose faults are worth a warning only."""
        found = list(faults)
        if found:
            self.warned[check] = "; ".join(found)
        else:
            self.passed.append(check)

    def close_if_failed(self) -> None:
        if self.failures:
            raise EnvironmentCheckError(self.failures)


def _first_run(
    log: CheckLog, play: RolloutFunction, params: EnvParams, keys: UInt32[Array, "B words"]
) -> RandomRollout:
    try:
        return play(params, keys)
    except _REFUSALS as error:
        fault = f"jit, vmap and scan refuse a loop of steps: {_one_line(error)}; make each work alone"
        raise EnvironmentCheckError([*log.failures, ("playable", fault)]) from error


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _check_types(log: CheckLog, env: Environment[Any], params: EnvParams, key: PRNGKey) -> None:
    try:
        traced = trace_checks.trace(env, params, key)
    except _REFUSALS as error:
        fault = f"a method cannot be traced: {_one_line(error)}; use jax.numpy and jax.lax on traced values"
        raise EnvironmentCheckError([("traceable", fault)]) from error
    log.passed.append("traceable")
    log.note("stable types", trace_checks.states_keep_their_shape(traced))
    log.note("report types", trace_checks.reports_have_the_agreed_types(traced))
    log.close_if_failed()  # without stable types a scan over steps fails
    log.note("no leaked tracers", trace_checks.nothing_leaks_out_of_a_trace(env, params, key))
    log.note("no host callback", trace_checks.no_method_calls_the_host(env, params, traced))


def _check_episodes(
    log: CheckLog, env: Environment[Any], params: EnvParams, run: RandomRollout, play: RolloutFunction
) -> None:
    log.note("spaces", rollout_checks.spaces_contain_what_is_seen(run))
    log.note("finite numbers", rollout_checks.numbers_are_finite(run))
    log.note("views", rollout_checks.views_show_the_state(run))
    log.note("endings", rollout_checks.endings_agree(run))
    log.note("no retrace", rollout_checks.loops_trace_once(env, params, run))
    log.note("same alone and in a batch", rollout_checks.calls_equal_the_batch(env, params, run))
    log.note("pure", rollout_checks.calls_repeat_and_leave_their_arguments(env, params, run))
    log.note("deterministic", rollout_checks.same_keys_give_the_same_bits(play, params, run))
    log.note("independent of neighbors", rollout_checks.environments_do_not_see_one_another(play, params, run))
    if not rollout_checks.resets_itself(run):
        log.note("inert when done", rollout_checks.ended_states_are_inert(run))
    else:
        log.skipped["inert when done"] = "the environment resets itself"


def _check_resets(
    log: CheckLog,
    env: Environment[Any],
    params: EnvParams,
    run: RandomRollout,
    play: RolloutFunction,
    key: Key[Array, ""],
) -> None:
    log.warn("keys are used once", reset_checks.keys_are_used_once(env, params, key))
    log.warn("keys advance", reset_checks.keys_advance(env, params, run))
    if rollout_checks.resets_itself(run) and not isinstance(env, AutoReset):
        log.skipped["step and reset"] = "the environment resets itself"
    else:
        try:
            log.note("step and reset", reset_checks.step_and_reset_is_both(env, params, run))
        except _REFUSALS as error:
            fault = f"step_and_reset cannot be traced: {_one_line(error)}; leave it as it is in the base class"
            log.note("step and reset", iter([fault]))
    if not rollout_checks.resets_itself(run):
        log.skipped["auto-reset"] = "the environment does not reset itself"
        return
    log.note("auto-reset", reset_checks.auto_resets_keep_the_contract(env, params, run))
    last = params.tasks.num_tasks - 1
    if last == 0 or "task_index" not in run.reported:
        for name in ("auto-reset keeps params", "auto-reset changes the task"):
            log.skipped[name] = "it takes two tasks, and task_index in info"
        return
    log.note("auto-reset keeps params", _drawn_by_params(play, params, run, last))
    stuck = reset_checks.auto_resets_change_the_task(play, params, run, key)
    if stuck is None:
        log.skipped["auto-reset changes the task"] = "too few episodes end to tell; allow more steps or even weights"
    else:
        log.note("auto-reset changes the task", stuck)


def _drawn_by_params(play: RolloutFunction, params: EnvParams, run: RandomRollout, task_index: int) -> Iterator[str]:
    yield from reset_checks.auto_resets_draw_by_the_params(play(params.only(task_index), run.keys), task_index)


def _check_secrecy(
    log: CheckLog,
    env: Environment[Any],
    params: EnvParams,
    run: RandomRollout,
    play: RolloutFunction,
    key: Key[Array, ""],
    make_env: Callable[[EnvParams], Environment[Any]] | None,
) -> None:
    name = "answers stay hidden"
    if params.config.episode.mode == "train":
        log.skipped[name] = "in train mode targets may be seen; pass params with mode='test'"
    elif not isinstance(params.tasks, TaskBuffer):
        log.skipped[name] = "a generator makes its answers itself; pass tasks in a buffer"
    else:
        # One sentence for each fault, whichever of the other answers showed it.
        faults = dict.fromkeys(_leaks(env, params, run, play, key, make_env))
        log.note(name, iter(faults))


def _leaks(
    env: Environment[Any],
    params: EnvParams,
    run: RandomRollout,
    play: RolloutFunction,
    key: Key[Array, ""],
    make_env: Callable[[EnvParams], Environment[Any]] | None,
) -> Iterator[str]:
    runs = [run]
    if not params.config.scores_submissions:
        # Here a right submit must look like a wrong one, and one at once is right where the answer is the input.
        keys = secrecy_checks.keys_that_submit_first(play, params, run.num_envs, key)
        runs += [] if keys is None else [play(params, jnp.asarray(keys))]
    for other in secrecy_checks.with_other_answers(params):
        other_env = env if make_env is None else make_env(other)
        other_play = play if make_env is None else compile_rollout(other_env, run.num_steps)
        for known in runs:
            changed = other_play(other, known.keys)
            faults = list(secrecy_checks.answers_stay_hidden(known, changed, params))
            yield from faults
            if not faults and not rollout_checks.resets_itself(run):
                sides = ((env, params, known), (other_env, other, changed))
                yield from secrecy_checks.next_episodes_tell_nothing(*sides)
