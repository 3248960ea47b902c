"""Good habits and common mistakes, each one run and its effect shown.

    python examples/advanced/jax_best_practices_demo.py --runs 200

Every number is measured when this runs.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import console, print_table, say, seconds_of, section, warm_seconds

from jaxarc.envs import ConfigValidationError, JaxArcConfig, arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.structured_actions import MaskAction, PointAction
from jaxarc.tasks import create_task
from jaxarc.testing import create_mock_task, create_test_config
from jaxarc.types import JaxArcTask
from jaxarc.utils.error_handling import JAXErrorHandler


def proper_jit_usage(config: JaxArcConfig, task: JaxArcTask) -> None:
    section("1. Compile once, at the outermost call")
    traces = 0

    @eqx.filter_jit
    def step(state, action, config):
        nonlocal traces
        traces += 1  # Python runs only while JAX traces the function
        return arc_step(state, action, config)

    state, _ = arc_reset(jax.random.key(0), config, task)
    after, *_ = arc_step(state, PointAction(0, 1, 1), config)
    equal = create_test_config(grid_shape=config.grid_shape)
    rows = []
    for what, *arguments in (
        ("first call", state, PointAction(0, 1, 1), config),
        ("the state after a step", after, PointAction(0, 1, 1), config),
        ("another operation and cell", after, PointAction(23, 2, 0), config),
        ("arrays in place of numbers", after, PointAction(jnp.array(5), jnp.array(1), jnp.array(2)), config),
        ("an equal config, made again", after, PointAction(0, 1, 1), equal),
        ("another config", after, PointAction(0, 1, 1), config.with_fields(step_penalty=-0.5)),
    ):
        before = traces
        jax.block_until_ready(step(*arguments))
        rows.append((what, traces - before))
    print_table("traces of one compiled function", ["call", "new traces"], rows)
    say(f"configs are hashable: hash(config) == hash(equal) is {hash(config) == hash(equal)}")


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
        state, _, reward, _, _ = arc_step(state, action, config)
        jax.debug.print("  inside a compiled function: reward {r:.3f}", r=reward)
        return state

    jax.block_until_ready(talkative(state, PointAction(1, 0, 0)))
    checked = JAXErrorHandler.validate_state_consistency(state)
    say(f"validate_state_consistency returns the state: step_count {int(checked.step_count)}")
    say(f"error mode: {JAXErrorHandler.get_error_mode()!r}; set_error_mode takes effect at once")
    say("EQX_ON_ERROR=breakpoint opens a debugger at the failing check; set it before Python starts.")
    say("A step without compilation (jax.disable_jit) is hundreds of times slower: debug on a small canvas.")


def common_pitfalls(config: JaxArcConfig, task: JaxArcTask, runs: int) -> None:
    section("4. Common mistakes")
    size = 64
    keys = jax.random.split(jax.random.key(0), size)
    states, _ = batch_reset(keys, config, task)
    index = jnp.arange(size)
    actions = PointAction(index % 34, index % 5, index % 4)

    @eqx.filter_jit
    def step(states, actions):
        return batch_step(states, actions, config)

    first, warm = seconds_of(lambda: step(states, actions)), warm_seconds(lambda: step(states, actions), runs)
    start = time.perf_counter()
    result = step(states, actions)
    dispatched = time.perf_counter() - start
    jax.block_until_ready(result)
    say(f"- first call, which compiles: {first:.2f} s; warm call: {warm:.5f} s. Time the warm one, report the other.")
    say(f"- clock without block_until_ready: {dispatched:.5f} s, which is no time of a step.")

    drawn = [len(set(batch_reset(k, config, task)[0].pair_index.tolist())) for k in (keys, jnp.stack([keys[0]] * size))]
    say(f"- pairs drawn by {size} different keys: {drawn[0]}; by one key repeated: {drawn[1]}")

    try:  # a Python if on a traced value
        jax.vmap(lambda action: action if action.operation > 3 else PointAction(0, 0, 0))(actions)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=30, help="side of the canvas, 5..30")
    parser.add_argument("--runs", type=int, default=20, help="repeats of a timed call")
    args = parser.parse_args()

    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind} ({jax.default_backend()})")
    config = create_test_config(grid_shape=(args.canvas, args.canvas))
    task = create_mock_task(args.canvas, args.canvas)
    proper_jit_usage(config, task)
    error_handling(config, task)
    debugging(config, task)
    common_pitfalls(config, task, args.runs)
    section("5. To take away")
    say("- Let jit stand outermost, and scan over steps inside it.")
    say("- Keep shapes and configs the same from call to call; count traces when in doubt.")
    say("- Warm up, then wait with block_until_ready before reading the clock.")
    say("- Split keys; one per environment.")
    say("- Policy raise while developing, noop in hot loops.")


if __name__ == "__main__":
    main()
