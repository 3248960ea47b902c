"""The rows of ``jaxarc benchmark core``, and their targets on one core."""

import functools
from collections.abc import Sequence
from typing import Final

from jaxarc.benchmarks.measure import Row
from jaxarc.benchmarks.speed import EPISODE_STEPS, MINI_SIDE
from jaxarc.benchmarks.suite import EnvSpec, Suite
from jaxarc.constants import OPERATION_FAMILIES

DEFAULT_SIZES: Final = (256, 1024, 4096, 16384, 65536)

_STEPS_TARGETS: Final = {1024: 9e6, 16384: 5e6, 65536: 4e6}
_ROLLOUT_FROM: Final = 4096  # environments from which on a rollout plays one part of them after the other


def core_rows(sizes: Sequence[int] = DEFAULT_SIZES) -> tuple[Row, ...]:
    """List the rows, with one of steps per second of box actions for each of the batch sizes."""
    bbox = [
        Row(
            f"steps-bbox-{size}",
            f"30x30, box actions, {size:,} environments",
            "steps/s",
            lambda suite, size=size: suite.steps_per_second(EnvSpec(size)),
            target=_STEPS_TARGETS.get(size),
        )
        for size in sizes
    ]
    rollouts = [
        Row(
            f"rollout-bbox-{size}",
            f"jaxarc.parallel.rollout, 30x30, box actions, {size:,} environments",
            "steps/s",
            lambda suite, size=size: suite.rollout_steps_per_second(EnvSpec(size)),
        )
        for size in sizes
        if size >= _ROLLOUT_FROM
    ]
    return (*bbox, *rollouts, *_OTHER_THROUGHPUTS, *_XLA, *_operation_rows(), *_SINGLE, *_SIZES, *_STARTS)


def _operation_rows() -> tuple[Row, ...]:
    """List a row for each family of operations: what a step costs when nothing else is drawn."""
    return tuple(
        Row(
            f"operations-{name}",
            f"{operations[0]}..{operations[-1]}, {selection_format} actions, 1,024 environments",
            "ns/step",
            functools.partial(Suite.nanoseconds_per_step, spec=spec),
            less_is_better=True,
        )
        for name, operations in OPERATION_FAMILIES.items()
        for selection_format in ["point" if name == "flood" else "bbox"]  # with which it does its work
        for spec in [EnvSpec(1024, selection_format, operations=tuple(operations))]
    )


_OTHER_THROUGHPUTS: Final = (
    Row(
        "cost-65536",
        "time per step of a rollout of 65,536 environments over that of 1,024",
        "ratio",
        lambda suite: suite.cost_ratio(EnvSpec(65536), EnvSpec(1024)),
        target=1.15,
        less_is_better=True,
    ),
    Row(
        "steps-point-1024",
        "30x30, point actions, 1,024 environments",
        "steps/s",
        lambda suite: suite.steps_per_second(EnvSpec(1024, "point")),
        target=9e6,
    ),
    Row(
        "steps-mask-1024",
        "30x30, mask actions, 1,024 environments",
        "steps/s",
        lambda suite: suite.steps_per_second(EnvSpec(1024, "mask")),
        target=6e6,
    ),
    Row(
        "steps-history-1024",
        f"30x30, box actions, 1,024 environments, a history of {EPISODE_STEPS} actions",
        "steps/s",
        lambda suite: suite.steps_per_second(EnvSpec(1024, history=True)),
    ),
    Row(
        "steps-5x5-2048",
        "5x5, box actions, 2,048 environments",
        "steps/s",
        lambda suite: suite.steps_per_second(EnvSpec(2048, side=MINI_SIDE)),
        target=15e6,
    ),
    Row(
        "resets-1024",
        "30x30, resets of 1,024 environments",
        "resets/s",
        lambda suite: suite.resets_per_second(EnvSpec(1024)),
        target=2e6,
    ),
)

_XLA: Final = tuple(  # beside the rows of the same names, which play natively where a CPU can
    Row(
        f"xla-{name}",
        f"the same as steps-{name} without the library of C++ kernels",
        "steps/s",
        functools.partial(Suite.steps_per_second, spec=spec),
    )
    for name, spec in (
        ("bbox-1024", EnvSpec(1024, executor="xla")),
        ("point-1024", EnvSpec(1024, "point", executor="xla")),
        ("mask-1024", EnvSpec(1024, "mask", executor="xla")),
        ("5x5-2048", EnvSpec(2048, side=MINI_SIDE, executor="xla")),
    )
)

_SINGLE: Final = (
    Row(
        "scan-step",
        "a step of one environment in a compiled loop, 30x30, box actions",
        "us",
        lambda suite: suite.microseconds_per_step(EnvSpec(1)),
        target=1,
        less_is_better=True,
    ),
    Row(
        "env-step",
        "env.step in a Python loop that reads done, one environment",
        "us",
        lambda suite: suite.step_microseconds(compiled_outside=False),
        target=40,
        less_is_better=True,
    ),
    Row(
        "env-step-jit",
        "the same with jax.jit(env.step)",
        "us",
        lambda suite: suite.step_microseconds(compiled_outside=True),
        less_is_better=True,
    ),
    Row(
        "env-step-uncompiled",
        "the same with env.step under jax.disable_jit(), operation after operation",
        "us",
        lambda suite: suite.uncompiled_step_microseconds(),
        less_is_better=True,
    ),
)

_SIZES: Final = tuple(
    Row(row_id, title, "bytes", measure, target=target, less_is_better=True, is_exact=True)
    for row_id, title, target, measure in (
        (
            "state-bytes",
            "state of one environment, box actions, no history",
            2_800,
            lambda suite: suite.state_bytes(EnvSpec(1)),
        ),
        (
            "state-bytes-history",
            f"state of one environment, point actions, a history of {EPISODE_STEPS}",
            4_200,
            lambda suite: suite.state_bytes(EnvSpec(1, "point", history=True)),
        ),
        ("buffer-bytes", "all 400 tasks, shared by all environments", 4e6, lambda suite: suite.buffer_bytes()),
        (
            "temp-bytes-1024",
            "working memory of XLA per environment, 1,024 environments",
            None,
            lambda suite: suite.temp_bytes(EnvSpec(1024)),
        ),
        (
            "temp-bytes-16384",
            "the same with 16,384 environments",
            None,
            lambda suite: suite.temp_bytes(EnvSpec(16384)),
        ),
    )
)

_STARTS: Final = tuple(
    Row(
        row_id,
        title,
        "s",
        functools.partial(Suite.fresh, name=row_id),
        target=target,
        less_is_better=True,
        fresh_part=part,
    )
    for row_id, title, target, part in (
        ("import", "import of jaxarc.make and jaxarc.wrappers, after import jax", 0.5, "import"),
        ("make-cold", "make of 400 tasks in a fresh process", 2.0, "make"),
        ("make-warm", "the same once more", 0.3, "make"),
        ("compile", "trace, lower and compile a rollout of 1,024 environments in a fresh process", 1.5, "compile"),
    )
)
