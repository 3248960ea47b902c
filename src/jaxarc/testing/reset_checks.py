"""Checks of resets: auto-reset, the tasks of the next episodes, and random keys."""

from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from jaxarc.envs.conditional_reset import with_next_mask
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.prng import from_key_data
from jaxarc.testing.random_rollout import RandomRollout, RolloutFunction, at, differing_leaves, to_device, to_host
from jaxarc.testing.rollout_checks import FINAL, resets_itself, some, where
from jaxarc.types import PRNGKey
from jaxarc.wrappers.auto_reset import AutoReset
from jaxarc.wrappers.wrapper import Wrapper

_CHANCE: Final = 1e-6  # of a fault that is reported where there is none
_ROLLOUTS: Final = 16  # played at most, to see enough episodes end
_RUNNING_STEPS: Final = 3  # in which a state's key is exchanged
_STEPS_OF_A_KIND: Final = 4  # steps that end an episode, and others, that are taken again


def step_and_reset_is_both(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Compare ``step_and_reset``, of which auto-reset is made, with a step and a reset_next."""
    inner = env.env if isinstance(env, AutoReset) else env

    def by_parts(state: PyTree, action: PyTree) -> PyTree:
        ended, last, reward, done, info = inner.step(state, action, params)
        first, _ = inner.reset_next(ended, params)
        after = jax.tree.map(lambda new, old: jnp.where(done, new, old), first, ended)
        info = with_next_mask(inner.info, {**info, FINAL: last}, after, params)
        return after, inner.observe(after, params), reward, done, info

    fused = lambda state, action: inner.step_and_reset(state, action, params)
    places = [np.argwhere(ends)[:_STEPS_OF_A_KIND] for ends in (run.dones, ~run.dones)]
    steps = [(run.state_before(*place), run.action(*place)) for place in np.concatenate(places).tolist()]
    stacked = to_device(jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps))
    try:
        ours, wanted = (to_host(jax.jit(jax.vmap(way))(*stacked)) for way in (fused, by_parts))
    except ValueError:  # two states of different structure, which the check of stable types names
        return
    if leaves := differing_leaves(ours, wanted, exact=False):
        yield (
            f"step_and_reset returns something else than step, and reset_next where the episode ended, in "
            f"{some(leaves)}; leave it as it is in the base class, or change it with them"
        )


def auto_resets_keep_the_contract(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Check the final observation and the first state of the next episode."""
    if not resets_itself(run):
        return
    finals = run.infos[FINAL]
    if jax.tree.structure(finals) != jax.tree.structure(run.observations):
        yield f"info[{FINAL!r}] has another structure than an observation; put the observation before the reset there"
        return
    # Where nothing ends, the final observation is the observation itself; at an end, the observation is that of the
    # next episode already.
    running = ~run.dones
    if leaves := differing_leaves(at(finals, running), at(run.observations, running)):
        yield f"info[{FINAL!r}] is not the observation in a step that ends nothing, in {some(leaves)}; fill it always"
    ended = run.dones & (run.reported["terminated"] | run.reported["truncated"])
    if ended.any():
        yield f"the state after an episode's end is done itself at {where(ended)}; return the next one's first state"
    yield from _reset_is_the_next_reset_of_the_inner_one(env, params, run)


def auto_resets_draw_by_the_params(restricted: RandomRollout, task_index: int) -> Iterator[str]:
    """Check a run under params that play one task only."""
    if not resets_itself(restricted):
        return
    drawn = restricted.reported["task_index"]
    if (drawn != task_index).any():
        yield (
            f"params play task {task_index} only, but an auto-reset drew task {int(drawn[drawn != task_index][0])} at "
            f"{where(drawn != task_index)}; reset with the params that step was given, not with others"
        )


def _reset_is_the_next_reset_of_the_inner_one(
    env: Environment[Any], params: EnvParams, run: RandomRollout
) -> Iterator[str]:
    """Compare an outermost auto-reset with a step and a reset_next of the environment inside."""
    if not isinstance(env, Wrapper) or not run.dones.any():
        return
    # The first end in the run is played again by the environment inside, and what
    # comes out must be what the wrapper showed.
    step, number = (int(index) for index in np.argwhere(run.dones)[0])
    state = run.state_before(step, number)
    action = run.action(step, number)
    if not _has_same_state(env, params, state) or FINAL in env.env.info(state, params):
        return
    ended, last, *_ = env.env.step(state, action, params)
    if leaves := differing_leaves(at(run.infos[FINAL], step, number), last, exact=False):
        yield (
            f"info[{FINAL!r}] is not the last observation of the episode that ended at step {step}, in "
            f"{some(leaves)}; take it before the reset"
        )
    first, _ = env.env.reset_next(ended, params)
    if leaves := differing_leaves(at(run.states, step, number), first, exact=False):
        yield (
            f"the state after the end at step {step} is not reset_next(ended state, params), in {some(leaves)}; start "
            "the next episode with reset_next of the environment inside, and with the params of the step"
        )


def _has_same_state(env: Wrapper[Any], params: EnvParams, state: PyTree) -> bool:
    inner, _ = jax.eval_shape(env.env.reset, jax.random.key(0), params)
    return jax.tree.structure(inner) == jax.tree.structure(state)


def auto_resets_change_the_task(
    play: RolloutFunction, params: EnvParams, run: RandomRollout, key: PRNGKey
) -> Iterator[str] | None:
    """Check that episodes go on to other tasks; None where too few end to tell."""
    # With weights p a fair draw is the task before with chance sum(p * p), and one certain task with chance max(p).
    # Two tasks of equal weight are the same one in all of 20 draws once in a million times.
    weights = np.asarray(params.weights, np.float64)
    share = weights / weights.sum()
    chance = max(float((share**2).sum()), float(share.max()))
    before, after = _tasks_around_resets(run)
    for batch in jax.random.split(key, _ROLLOUTS):
        if chance ** len(after) < _CHANCE:
            return _stuck_tasks(before, after)
        more = play(params, jax.random.key_data(jax.random.split(batch, run.num_envs)))
        before, after = (np.concatenate(both) for both in zip((before, after), _tasks_around_resets(more), strict=True))
    return _stuck_tasks(before, after) if chance ** len(after) < _CHANCE else None


def _tasks_around_resets(run: RandomRollout) -> tuple[np.ndarray, np.ndarray]:
    """Return the task of each episode that ended, and that of the episode after it."""
    played = np.concatenate([run.first_reported["task_index"][None], run.reported["task_index"]])
    return played[:-1][run.dones], played[1:][run.dones]


def _stuck_tasks(before: np.ndarray, after: np.ndarray) -> Iterator[str]:
    hint = "draw the task of the next episode by params.weights, with a key that the last episode has not used"
    if (before == after).all():
        yield f"all {len(after)} auto-resets kept the task of the episode that ended; {hint}"
    elif (after == after[0]).all():
        yield f"all {len(after)} auto-resets started task {after[0]}; {hint}"


def keys_are_used_once(env: Environment[Any], params: EnvParams, key: PRNGKey) -> Iterator[str]:
    """Let JAX look for typed keys that reset or reset_next draws from twice, or draws from and keeps."""

    def three_episodes(key: PRNGKey) -> PyTree:
        first, _ = env.reset(key, params)
        second, _ = env.reset_next(first, params)
        return env.reset_next(second, params)

    # JAX finds a key that is used twice while it traces, so nothing runs. Three episodes: a key that is kept is used
    # for the first time by the second, and again by the third.
    with jax.debug_key_reuse(True):
        try:
            jax.eval_shape(three_episodes, jax.random.clone(key))
        except jax.errors.KeyReuseError as error:
            yield (
                f"reset or reset_next uses a random key twice ({' '.join(str(error).split())[:120]}); split the key "
                "once, give each draw its own part and keep one that was not used"
            )


def keys_advance(env: Environment[Any], params: EnvParams, run: RandomRollout) -> Iterator[str]:
    """Check that keys of the state change from episode to episode, and in a step that draws from them."""
    state, _ = env.reset(from_key_data(run.keys[0]), params)
    once, _ = env.reset_next(state, params)
    again, _ = env.reset_next(once, params)
    names = _key_leaves(once)
    if names and not set(names) & set(differing_leaves(once, again)):
        yield f"reset_next leaves {some(names)} as it was, so all episodes are the same; keep a new key in the state"
    if names and _draws_alike_in_each_step(env, params, run, names):
        yield f"step draws from {some(names)} and leaves it as it was, so each step draws the same; keep a new key"


def _draws_alike_in_each_step(env: Environment[Any], params: EnvParams, run: RandomRollout, names: list[str]) -> bool:
    # With another key the same step must come out the same; or else it draws, and has to change the key.
    running = np.argwhere(~run.dones)[:: max(1, (~run.dones).sum() // _RUNNING_STEPS)][:_RUNNING_STEPS]
    for step, number in running.tolist():
        state = run.state_before(step, number)
        action = run.action(step, number)
        plain = env.step(state, action, params)
        drawn = env.step(jax.tree_util.tree_map_with_path(_with_other_key, state), action, params)
        moved = set(names) & set(differing_leaves(plain[0], state))
        if moved or not set(differing_leaves((plain[0], *plain[1:]), drawn)) - {f"[0]{name}" for name in names}:
            return False
    return len(running) > 0


def _key_leaves(state: PyTree) -> list[str]:
    paths = jax.tree_util.tree_leaves_with_path(state)
    return [jax.tree_util.keystr(path) for path, leaf in paths if _is_key(path, leaf)]


def _is_key(path: Any, leaf: Array) -> bool:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return True
    name = jax.tree_util.keystr(path).lower()
    return leaf.dtype == jnp.uint32 and leaf.shape[-1:] in ((2,), (4,)) and ("key" in name or "rng" in name)


def _with_other_key(path: Any, leaf: Array) -> Array:
    if not _is_key(path, leaf):
        return leaf
    if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf ^ jnp.uint32(1)
    return jax.random.wrap_key_data(jax.random.key_data(leaf) ^ jnp.uint32(1), impl=jax.random.key_impl(leaf))
