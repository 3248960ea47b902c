"""Measures JaxARC 1.0.3 on request, in an environment of its own; see worker_protocol.py.

The current folder holds the tasks as JaxARC's parser wants them; the parsed buffers are kept there, since parsing takes
more than a minute. The loop is the one of upstream's own benchmark: reset where the last step ended an episode, sample,
step. ``mode`` says how environments are put side by side: ``vmap``, ``map`` (``jax.lax.map`` of one step) or
``episodes`` (``jax.lax.map`` of the whole scan: one environment after the other, so no policy could act on a batch).
"""

import pickle  # noqa: I001  the jaxarc below is another one
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from loguru import logger
from worker_protocol import Request, serve

from jaxarc.configs import DatasetConfig, GridInitializationConfig, JaxArcConfig
from jaxarc.envs import BboxActionWrapper, Environment, PointActionWrapper
from jaxarc.envs.actions import create_action
from jaxarc.parsers import ArcAgiParser
from jaxarc.registration import make
from jaxarc.utils.buffer import stack_task_list

SUBMIT, NUM_OPERATIONS, FULL_SIDE, EPISODE_STEPS = 34, 35, 30, 100
TERMINATED = 2  # step types from here on end an episode
WORK_A_CALL = {"vmap": 2**13, "map": 2**15, "episodes": 2**16}  # steps of all environments: a second or so
WRAPPERS = {"point": PointActionWrapper, "bbox": BboxActionWrapper, "mask": lambda env: env}

_samplers: dict[tuple, Callable[[float], float]] = {}


def measure(request: Request) -> float:
    kind, mode, selection, side, batch = (request[name] for name in ("kind", "mode", "selection", "side", "batch"))
    key = (kind, mode, selection, side, batch)
    if key not in _samplers:
        env, params = make_env(selection, side)
        sample = action_sampler(selection, side)
        if kind == "loop":
            _samplers[key] = python_loop(env, params, sample, compiled_outside=mode == "jit")
        else:
            length = max(2, min(request["longest_scan"], WORK_A_CALL[mode] // batch))
            scan = scan_resets if kind == "resets" else scan_steps
            _samplers[key] = scan(env, params, sample, mode, batch, length)
    return _samplers[key](request["seconds"])


def make_env(selection: str, side: int) -> tuple[Any, Any]:
    """Make the environment on the same tasks, with episodes that start from a demonstration's input, as ours do."""
    start = GridInitializationConfig(demo_weight=1.0, permutation_weight=0.0, empty_weight=0.0, random_weight=0.0)
    dataset = DatasetConfig(max_grid_height=side, max_grid_width=side)
    buffer = jax.tree.map(jnp.asarray, parsed_buffer(side))
    env = Environment(JaxArcConfig(dataset=dataset, grid_initialization=start), buffer)
    assert env.params.max_episode_steps == EPISODE_STEPS
    return WRAPPERS[selection](env), env.params


def parsed_buffer(side: int) -> Any:
    """Read the parsed tasks, or parse them and keep them."""
    kept = Path(f"buffer-{side}.pickle")
    if not kept.is_file():
        start = time.perf_counter()
        if side == FULL_SIDE:
            buffer = make("AGI1-train")[1].buffer
            Path("make-seconds.txt").write_text(f"{time.perf_counter() - start:.1f}\n", encoding="utf-8")
        else:
            small = DatasetConfig(
                dataset_path=f"data/side-{side}",
                max_grid_height=side,
                max_grid_width=side,
                min_grid_height=1,
                min_grid_width=1,
            )
            parser = ArcAgiParser(small)
            buffer = stack_task_list([parser.get_task_by_id(name) for name in sorted(parser.get_available_task_ids())])
        partial = kept.with_suffix(".part")
        partial.write_bytes(pickle.dumps(jax.tree.map(np.asarray, buffer)))
        partial.replace(kept)
    return pickle.loads(kept.read_bytes())


def action_sampler(selection: str, side: int) -> Callable[[Any], Any]:
    """Draw operation and selection uniformly with one call of the generator; its own spaces take one for each part."""
    if selection == "mask":

        def sample_mask(key: Any) -> Any:
            key_operation, key_cells = jax.random.split(key)
            operation = jax.random.randint(key_operation, (), 0, NUM_OPERATIONS)
            return create_action(operation, jax.random.bernoulli(key_cells, 0.5, (side, side)))

        return sample_mask
    names = ("row", "col") if selection == "point" else ("r1", "c1", "r2", "c2")
    limits = jnp.array([NUM_OPERATIONS] + [side] * len(names))
    draw = lambda key: jax.random.randint(key, limits.shape, 0, limits)
    return lambda key: dict(zip(("operation", *names), draw(key), strict=True))


def scan_steps(env: Any, params: Any, sample: Callable, mode: str, batch: int, length: int) -> Callable[[float], float]:
    """Compile a scan; the carry holds state, timestep with observation, sum of rewards and number of episodes.

    Params are constants of the program, as in upstream's benchmark.
    """

    def step(carry: Any, key: Any) -> Any:
        state, timestep, total, episodes = carry
        key_reset, key_action = jax.random.split(key)
        restart = lambda _: env.reset(key_reset, env_params=params)
        state, timestep = jax.lax.cond(timestep.last(), restart, lambda kept: kept, (state, timestep))
        state, timestep = env.step(state, sample(key_action), env_params=params)
        return state, timestep, total + timestep.reward, episodes + timestep.last().astype(jnp.int32)

    def play(carry: Any, key: Any) -> Any:
        if mode == "episodes":
            alone = lambda carry, keys: jax.lax.scan(lambda c, k: (step(c, k), None), carry, keys)[0]
            keys = jax.vmap(lambda k: jax.random.split(k, length))(jax.random.split(key, batch))
            return jax.lax.map(lambda x: alone(*x), (carry, keys))

        def together(carry: Any, key: Any) -> tuple[Any, None]:
            keys = jax.random.split(key, batch)
            return (
                jax.vmap(step)(carry, keys) if mode == "vmap" else jax.lax.map(lambda x: step(*x), (carry, keys))
            ), None

        return jax.lax.scan(together, carry, jax.random.split(key, length))[0]

    states, timesteps = jax.jit(_reset_all(env, params, batch))(jax.random.PRNGKey(0))
    carry = (states, timesteps, jnp.zeros(batch), jnp.zeros(batch, jnp.int32))
    return _sampler(play, carry, batch * length)


def scan_resets(env: Any, params: Any, _: Callable, mode: str, batch: int, length: int) -> Callable[[float], float]:
    reset_all = _reset_all(env, params, batch)

    def restart(carry: Any, key: Any) -> Any:
        return jax.lax.scan(lambda _, k: (reset_all(k), None), carry, jax.random.split(key, length))[0]

    return _sampler(restart, jax.jit(reset_all)(jax.random.PRNGKey(0)), batch * length)


def _reset_all(env: Any, params: Any, batch: int) -> Callable[[Any], Any]:
    reset = lambda key: env.reset(key, env_params=params)
    return lambda key: jax.vmap(reset)(jax.random.split(key, batch))


def _sampler(scan: Callable, carry: Any, work: int) -> Callable[[float], float]:
    compiled = jax.jit(scan).lower(carry, jax.random.PRNGKey(0)).compile()
    kept = {"carry": jax.block_until_ready(compiled(carry, jax.random.PRNGKey(1))), "calls": 1}

    def sample(min_seconds: float) -> float:
        calls, start = 0, time.perf_counter()
        while True:
            kept["calls"] += 1
            kept["carry"] = jax.block_until_ready(compiled(kept["carry"], jax.random.PRNGKey(kept["calls"])))
            calls, seconds = calls + 1, time.perf_counter() - start
            if seconds >= min_seconds:
                return calls * work / seconds

    return sample


def python_loop(env: Any, params: Any, sample: Callable, compiled_outside: bool) -> Callable[[float], float]:
    """Step one environment from Python, reading the end of the episode; actions are drawn before, without submits."""
    shipped = lambda state, action: env.step(state, action, env_params=params)
    step = jax.jit(shipped) if compiled_outside else shipped
    drawn = jax.vmap(sample)(jax.random.split(jax.random.PRNGKey(0), EPISODE_STEPS))
    drawn["operation"] = drawn["operation"] % SUBMIT
    one = lambda i: jax.tree.map(lambda x: x[i], drawn)
    actions = [one(i) for i in range(EPISODE_STEPS)]

    def play_episode(seed: int) -> float:
        state, _ = jax.block_until_ready(env.reset(jax.random.PRNGKey(seed), env_params=params))
        start = time.perf_counter()
        for action in actions:
            state, timestep = step(state, action)
            if int(timestep.step_type) >= TERMINATED:  # timestep.last() would run one more operation of JAX
                break
        return (time.perf_counter() - start) / EPISODE_STEPS

    play_episode(0)

    def sample_rate(min_seconds: float) -> float:
        costs, start = [], time.perf_counter()
        while not costs or time.perf_counter() - start < min_seconds:
            costs.append(play_episode(len(costs)))
        return len(costs) / sum(costs)

    return sample_rate


def describe() -> dict[str, str]:
    return {"package": "JaxARC", **{name: metadata.version(name) for name in ("jaxarc", "jax", "numpy", "stoa-env")}}


if __name__ == "__main__":
    logger.remove()
    serve(describe, measure, _samplers.clear)
