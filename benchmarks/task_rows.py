"""Measure what a reset costs, by the source of its task and the augmentation."""

import functools
from typing import Final

from jaxarc.benchmarks.measure import Row
from jaxarc.benchmarks.suite import EnvSpec, Suite
from jaxarc.config import AugmentationConfig
from jaxarc.tasks.procedural import procedural_names

_NUM_ENVS: Final = 1024
_SIDE: Final = 10  # of the canvas that generated tasks are made for
_AUGMENTATIONS: Final = {
    "recolor": AugmentationConfig(recolor="all"),
    "flips": AugmentationConfig(symmetries="flips"),
    "symmetries": AugmentationConfig(symmetries="all"),
    "shuffle": AugmentationConfig(shuffle_demos=True),
    "augmented": AugmentationConfig(symmetries="all", recolor="all", shuffle_demos=True),
}
_WHOLE: Final = "augmented"  # all at once, which the target is for


def task_rows() -> tuple[Row, ...]:
    """List a row for resets as they are, for each kind of augmentation, and for each procedural task."""
    given = f"30x30, ARC-AGI-1 training tasks, {_NUM_ENVS:,} environments"
    changed = [
        _row(
            f"reset-{name}",
            f"{given}, {_spell(change)}",
            EnvSpec(_NUM_ENVS, augmentation=change),
            1.0 if name == _WHOLE else None,
        )
        for name, change in _AUGMENTATIONS.items()
    ]
    made = [
        _row(
            f"reset-{name.replace('/', '-')}",
            f"{_SIDE}x{_SIDE}, {name}, 3 demonstrations and a test, {_NUM_ENVS:,} environments",
            EnvSpec(_NUM_ENVS, side=_SIDE, dataset=name),
            None if name == "procedural/all" else 5.0,
        )
        for name in procedural_names()
    ]
    return (*_LOADS, _row("reset-plain", given, EnvSpec(_NUM_ENVS), None), *changed, *made)


_LOADS: Final = tuple(
    Row(
        f"tasks-{count}-read",
        f"{what} on the device, from the published file, in a fresh process",
        "s",
        lambda suite, name=f"tasks-{count}-read": suite.fresh(name),
        ceiling,
        less_is_better=True,
        fresh_part="tasks",
    )
    for count, what, ceiling in ((400, "ARC-AGI-1, 400 tasks,", 0.3), (1120, "ARC-AGI-2, 1,120 tasks,", 0.6))
)


def _row(row_id: str, what: str, spec: EnvSpec, target: float | None) -> Row:
    measure = functools.partial(Suite.microseconds_per_reset, spec=spec)
    return Row(row_id, what, "us/reset", measure, target, less_is_better=True)


def _spell(change: AugmentationConfig) -> str:
    fields = {"symmetries": change.symmetries, "recolor": change.recolor}
    named = [f"{name}={value}" for name, value in fields.items() if value != "none"]
    return ", ".join([*named, *(["shuffle_demos"] if change.shuffle_demos else [])])
