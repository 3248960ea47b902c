"""Good habits and common mistakes, each one run and its effect shown.

    python examples/advanced/jax_best_practices_demo.py --runs 200

Every number is measured when this runs.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import console, nbytes, print_table, say, section, warm_seconds

from jaxarc.envs import ConfigValidationError, JaxArcConfig, arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.spaces import action_space
from jaxarc.envs.structured_actions import MaskAction, PointAction
from jaxarc.tasks import create_task
from jaxarc.testing import create_mock_task, create_test_config
from jaxarc.types import JaxArcTask
from jaxarc.utils.error_handling import JAXErrorHandler


def proper_jit_usage(config: JaxArcConfig, task: JaxArcTask, runs: int) -> None:
    section("1. Compile once, at the outermost call")
    traces = {"step": 0}

    @eqx.filter_jit
    def step(state, action, config):
        traces["step"] += 1  # Python runs only while JAX traces the function
        return arc_step(state, action, config)

    state, _ = arc_reset(jax.random.key(0), config, task)
    rows = []

    def note(what: str, state, action, config) -> None:
        before = traces["step"]
        jax.block_until_ready(step(state, action, config))
        rows.append((what, traces["step"] - before))

    note("first call", state, PointAction(0, 1, 1), config)
    state, *_ = step(state, PointAction(0, 1, 1), config)
    note("the state after a step", state, PointAction(0, 1, 1), config)
    note("another operation and cell", state, PointAction(23, 2, 0), config)
    note("arrays in place of numbers", state, PointAction(jnp.array(5), jnp.array(1), jnp.array(2)), config)
    equal = create_test_config(grid_shape=config.grid_shape)
    note("an equal config, made again", state, PointAction(0, 1, 1), equal)
    other = config.with_fields(step_penalty=-0.5)
    note("another config", state, PointAction(0, 1, 1), other)
    print_table("traces of one compiled function", ["call", "new traces"], rows)
    say(f"configs are hashable: hash(config) == hash(equal) is {hash(config) == hash(equal)}")

    keys = jax.random.split(jax.random.key(1), 100)
    sample = action_space(config).sample

    @eqx.filter_jit
    def scanned(state, keys):
        return jax.lax.scan(lambda s, key: (arc_step(s, sample(key), config)[0], None), state, keys)[0]

    def looped():
        now = state
        for key in keys:
            now = arc_step(now, sample(key), config)[0]
        return now

    in_scan, in_python = warm_seconds(lambda: scanned(state, keys), runs), warm_seconds(looped, 1)
    say(f"100 random steps: {1000 * in_python:.1f} ms in a Python loop, {1000 * in_scan:.1f} ms inside lax.scan")


def error_handling(config: JaxArcConfig, task: JaxArcTask) -> None:
    section("2. Errors name the value, the rule and the fix")
    state, _ = arc_reset(jax.random.key(0), config, task)
    side = config.grid_shape[0]

    @eqx.filter_jit
    def validate_and_step(state, action, config):
        return arc_step(state, JAXErrorHandler.validate_action(action, config), config)

    attempts = {
        "an operation id out of range": lambda: validate_and_step(state, PointAction(42, 1, 1), config),
        "a row outside the canvas": lambda: validate_and_step(state, PointAction(0, side, 1), config),
        "an action of another format": lambda: arc_step(state, MaskAction(0, jnp.ones((side, side), bool)), config),
        "a misspelt config field": lambda: config.with_fields(max_episod_steps=7),
        "a value that breaks a rule": lambda: config.with_fields(max_episode_steps=0),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except (RuntimeError, TypeError, ConfigValidationError) as error:
            say(f"- {what}: {message_of(error)}")

    lenient = config.with_fields(invalid_action_policy="noop")
    _, _, reward, _, info = arc_step(arc_reset(jax.random.key(0), lenient, task)[0], PointAction(42, 1, 1), lenient)
    say(f"- policy noop: invalid_action is {bool(info['invalid_action'])}, reward {float(reward):.2f}")


def message_of(error: Exception) -> str:
    """The line of an error that matters: Equinox puts the stack of the compiled function before it."""
    lines = str(error).strip().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("equinox.")), lines[0])


def debugging(config: JaxArcConfig, task: JaxArcTask) -> None:
    section("3. Debugging")
    state, _ = arc_reset(jax.random.key(0), config, task)

    @eqx.filter_jit
    def talkative(state, action):
        state, _, reward, _, info = arc_step(state, action, config)
        jax.debug.print(
            "  inside a compiled function: reward {r:.3f}, similarity {s:.3f}", r=reward, s=info["similarity"]
        )
        return state

    jax.block_until_ready(talkative(state, PointAction(1, 0, 0)))
    checked = JAXErrorHandler.validate_state_consistency(state)
    say(f"validate_state_consistency returns the state: step_count {int(checked.step_count)}")
    say(f"error mode: {JAXErrorHandler.get_error_mode()!r}; set_error_mode takes effect at once")
    say("EQX_ON_ERROR=breakpoint opens a debugger at the failing check; set it before Python starts.")
    say("A step without compilation (jax.disable_jit) takes seconds: debug on a small canvas.")


def memory_best_practices(side: int) -> None:
    section("4. Memory")
    rows = []
    for name, fields in {
        "mask, 1000 steps": {"selection_format": "mask", "max_episode_steps": 1000},
        "point, 1000 steps": {"selection_format": "point", "max_episode_steps": 1000},
        "point, 50 steps": {"selection_format": "point", "max_episode_steps": 50},
        "point, no history": {"selection_format": "point", "history_enabled": False},
    }.items():
        config = create_test_config(grid_shape=(side, side), **fields)
        state, _ = arc_reset(jax.random.key(0), config, create_mock_task(side, side))
        rows.append((name, f"{nbytes(eqx.tree_at(lambda s: s.task_data, state, None)):,}"))
    print_table(f"bytes of a state without its task, canvas {side}x{side}", ["config", "bytes"], rows)


def common_pitfalls(config: JaxArcConfig, task: JaxArcTask, runs: int) -> None:
    section("5. Common mistakes")
    size = 64
    keys = jax.random.split(jax.random.key(0), size)
    states, _ = batch_reset(keys, config, task)
    index = jnp.arange(size)
    actions = PointAction(index % 34, index % 5, index % 4)
    jax.block_until_ready(batch_step(states, actions, config))

    lenient = config.with_fields(invalid_action_policy="noop")

    @jax.jit
    def many(states):
        return jax.lax.scan(lambda s, _: (batch_step(s, actions, lenient)[0], None), states, length=200)[0]

    jax.block_until_ready(many(states))
    start = time.perf_counter()
    result = many(states)
    dispatched = time.perf_counter() - start
    jax.block_until_ready(result)
    finished = time.perf_counter() - start
    say(f"- clock without waiting: {1000 * dispatched:.2f} ms; with block_until_ready: {1000 * finished:.2f} ms")

    @eqx.filter_jit
    def fresh(states, actions):
        return batch_step(states, actions, config)

    start = time.perf_counter()
    jax.block_until_ready(fresh(states, actions))
    first = time.perf_counter() - start
    warm = warm_seconds(lambda: fresh(states, actions), runs)
    say(f"- first call, which compiles: {first:.2f} s; warm call: {warm:.5f} s. Time the warm one, report the other.")

    repeated = jnp.stack([keys[0]] * size)
    drawn = [len(set(batch_reset(k, config, task)[0].pair_index.tolist())) for k in (keys, repeated)]
    say(f"- pairs drawn by {size} different keys: {drawn[0]}; by one key repeated: {drawn[1]}")

    def branch(action):
        if action.operation > 3:  # a Python if on a traced value
            return action
        return PointAction(0, 0, 0)

    try:
        jax.vmap(branch)(actions)
    except jax.errors.TracerBoolConversionError as error:
        say(f"- Python if on an array: {type(error).__name__}; use jnp.where")

    traces = []

    @eqx.filter_jit
    def reset(key, task):
        traces.append(1)
        return arc_reset(key, config, task)

    pair = (jnp.zeros((2, 2), jnp.int8), jnp.ones((2, 2), jnp.int8))
    for count in (1, 2, 3):
        reset(keys[0], create_task([pair] * count, [pair], config.grid_shape))
    say(f"- tasks of 1, 2 and 3 demonstrations, each in its own shape: {len(traces)} traces")
    say("  a jaxarc.make buffer, or tasks padded to one number of slots, take one.")


def key_takeaways() -> None:
    section("6. To take away")
    for line in (
        "Let jit stand outermost, and scan over steps inside it.",
        "Keep shapes and configs the same from call to call; count traces when in doubt.",
        "Warm up, then wait with block_until_ready before reading the clock.",
        "Split keys; one per environment.",
        "Policy raise while developing, noop in hot loops.",
        "Point or bbox selections, short histories, tasks in params.",
    ):
        say(f"- {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--runs", type=int, default=20, help="repeats of a timed call")
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    config = create_test_config(grid_shape=(args.canvas, args.canvas))
    task = create_mock_task(args.canvas, args.canvas)
    proper_jit_usage(config, task, args.runs)
    error_handling(config, task)
    debugging(config, task)
    memory_best_practices(args.canvas)
    common_pitfalls(config, task, args.runs)
    key_takeaways()


if __name__ == "__main__":
    main()
