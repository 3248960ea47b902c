"""Rules by name, and the generator of their tasks."""

import dataclasses
from collections.abc import Sequence
from typing import Final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, UInt32

from jaxarc.constants import MAX_TRACKED_PAIRS
from jaxarc.tasks.procedural import names
from jaxarc.tasks.procedural.motion import Gravity, MoveObject
from jaxarc.tasks.procedural.names import ALL, PREFIX, UNRELATED, refuse_rule
from jaxarc.tasks.procedural.rule import ProceduralTasks, Rule, check_rule
from jaxarc.tasks.procedural.shapes import CountCells, CropFrame, FillEnclosed, StampPattern
from jaxarc.tasks.procedural.whole_pictures import SYMMETRIES, CompleteSymmetry, MapColors, RandomGrids, TurnPicture
from jaxarc.tasks.raw_task import check_canvas
from jaxarc.tasks.registry import register_task

BUILT_IN_RULES: Final[dict[str, Rule]] = {
    "random": RandomGrids(),
    "rotate": TurnPicture(("rotate-90", "rotate-180", "rotate-270")),
    "flip-left-right": TurnPicture(("flip-left-right",)),
    "flip-up-down": TurnPicture(("flip-up-down",)),
    "transpose": TurnPicture(("transpose",)),
    "geometric": TurnPicture(tuple(SYMMETRIES)),
    "color-map": MapColors(),
    "move-object": MoveObject(),
    "move-to-wall": MoveObject(to_wall=True),
    "gravity": Gravity(),
    "fill-enclosed": FillEnclosed(),
    "copy-pattern": StampPattern(),
    "crop": CropFrame(),
    "count": CountCells(),
    "complete-symmetry": CompleteSymmetry(),
}


def register_rule(name: str, rule: Rule) -> None:
    """Make a rule known by name to :func:`procedural_tasks`, and part of ``procedural/all``.

    Args:
        name: with or without ``procedural/`` before it.
        rule: its class need not be in this package.

    Raises:
        ValueError: the name is empty or taken by another rule.
        TypeError: the rule is none.
    """
    if not isinstance(rule, Rule):
        raise TypeError(f"a rule is of a class that extends Rule, got {rule!r:.60}; see jaxarc.tasks.procedural.Rule")
    short = name.removeprefix(PREFIX)
    if not short or short == ALL or _rules().get(short, rule) != rule:
        raise ValueError(f"the name {name!r} is empty or taken; choose another, taken are {', '.join(_rules())}, {ALL}")
    if short not in BUILT_IN_RULES:
        names.registered[short] = rule


def procedural_tasks(
    name: str | Sequence[str],
    grid_shape: tuple[int, int] = (10, 10),
    num_train: int = 3,
    num_test: int = 1,
    side: tuple[int, int] | None = None,
    rule_keys: Key[Array, " R"] | UInt32[Array, "R words"] | None = None,
) -> ProceduralTasks:
    """Find a generator of tasks by name.

    Args:
        name: one of :func:`procedural_names`, with or without ``procedural/`` before it, or several for a mixture.
        grid_shape: rows and columns of the canvas.
        num_train: demonstrations of each task.
        num_test: tests of each task.
        side: the smallest and the largest side of the grids whose size is random; by default the rule's own.
        rule_keys: draw the rules of the tasks from this pool of keys; by default every task has a new one.

    Raises:
        UnknownRuleError: a ``KeyError``; there is no such name. Names the nearest ones.
        ValueError: a number is out of range, or a rule cannot work with these sides on this canvas.
    """
    wanted = _rule_names([name] if isinstance(name, str) else name)
    canvas = check_canvas(grid_shape)
    _check_counts(num_train, num_test)
    sides = {} if side is None else {"min_side": int(side[0]), "max_side": int(side[1])}
    rules = tuple(dataclasses.replace(_rules()[name], **sides) for name in wanted)
    for name, rule in zip(wanted, rules, strict=True):
        check_rule(name, rule, canvas)
    return ProceduralTasks(
        registry_index=jnp.array([register_task(PREFIX + name) for name in wanted], jnp.int32),
        rule_keys=None if rule_keys is None else _key_words(rule_keys),
        rules=rules,
        grid_shape=canvas,
        num_train=num_train,
        num_test=num_test,
    )


def _rules() -> dict[str, Rule]:
    return {**BUILT_IN_RULES, **names.registered}


def _rule_names(wanted: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in wanted:
        # A dictionary keeps the order of the names and drops those that come again, as "all" may bring them.
        short = name.removeprefix(PREFIX)
        found.update(dict.fromkeys([rule for rule in _rules() if rule not in UNRELATED] if short == ALL else [short]))
    if not found:
        raise ValueError("a mixture of rules needs at least one name, got none; pass 'all' for every rule")
    for name in found:
        if name not in _rules():
            refuse_rule(name)
    return list(found)


def _check_counts(num_train: int, num_test: int) -> None:
    for name, count in (("num_train", num_train), ("num_test", num_test)):
        if not 1 <= count <= MAX_TRACKED_PAIRS:
            raise ValueError(f"{name} must be in 1..{MAX_TRACKED_PAIRS}, got {count}; change it")


def _key_words(keys: Key[Array, " R"] | UInt32[Array, "R words"]) -> UInt32[Array, "R words"]:
    words = jax.random.key_data(keys) if jnp.issubdtype(keys.dtype, jax.dtypes.prng_key) else jnp.asarray(keys)
    if words.ndim != 2 or words.shape[0] == 0:
        raise ValueError(
            f"rule_keys is a one-dimensional array of at least one key, got {keys.dtype}{keys.shape}; "
            "write jax.random.split(key, 512)"
        )
    return words
