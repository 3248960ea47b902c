"""Rules that make tasks, and the generator that plays them: new tasks at every reset, made on the device."""

import abc
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int8, Int32, Key, UInt32

from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.prng import as_typed_key, from_key_data, split_words, to_index
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.types import FlatGrid, PRNGKey

GridShape: TypeAlias = tuple[int, int]
"""Rows and columns ``(H, W)`` of the canvas."""
PairKey: TypeAlias = Key[Array, ""]
"""One typed key."""


class Rule(eqx.Module):
    """Makes endless pairs for endless tasks of one kind; abstract.

    All fields are static and hashable. Both functions are pure, of one task and one pair: they run under ``jit`` and
    ``vmap``, and everything random in them comes from their key. Grids are flat, row by row: rows of 10 cells are too
    short to be fast on a CPU.
    """

    smallest_side: ClassVar[int]  # on which the rule works, 1 .. 30
    min_side: int = eqx.field(static=True, default=3, kw_only=True)  # of grids of random size, smallest_side .. 30
    max_side: int = eqx.field(static=True, default=MAX_GRID_SIZE, kw_only=True)  # the canvas may allow less

    @abc.abstractmethod
    def draw(self, key: PairKey) -> Any:
        """Draw the parameters that the pairs of a task share, a pytree of arrays."""

    @abc.abstractmethod
    def make_pair(self, key: PairKey, drawn: Any, grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Make the input and the output of one pair, colors 0..9 at the top left of the canvas and -1 outside.

        Args:
            key: of this pair.
            drawn: what :meth:`draw` returned for this task.
            grid_shape: rows and columns of the canvas, both at least ``min_side``.
        """


def check_rule(name: str, rule: Rule, grid_shape: GridShape) -> None:
    """Refuse sides on which a rule does not work, or which the canvas does not hold.

    Raises:
        ValueError: names the rule, its sides and what to change.
    """
    if not rule.smallest_side <= rule.min_side <= rule.max_side:
        raise ValueError(
            f"rule {name!r} needs {rule.smallest_side} <= min_side <= max_side, got side=({rule.min_side}, "
            f"{rule.max_side}); change the sides"
        )
    if rule.min_side > min(grid_shape):
        raise ValueError(
            f"rule {name!r} makes grids with sides from {rule.min_side} on, and the canvas is {grid_shape[0]}x"
            f"{grid_shape[1]}; pass a larger grid_shape or a smaller side, from {rule.smallest_side} on"
        )


Pairs = tuple[Int8[Array, "P HW"], Int8[Array, "P HW"]]


class ProceduralTasks(TaskGenerator):
    """Tasks that follow rules; a task and its pairs depend on keys only.

    With a pool, the key of a task's rule is drawn from ``rule_keys``: train on some keys and test on others, and the
    rules differ while their kind is the same. The pairs are new at every draw, with and without a pool.
    """

    registry_index: Int32[Array, " T"]
    rule_keys: UInt32[Array, "R words"] | None  # the pool; None: a fresh rule for every task
    rules: tuple[Rule, ...] = eqx.field(static=True)  # a task index is an index of this tuple
    grid_shape: tuple[int, int] = eqx.field(static=True)
    num_train: int = eqx.field(static=True)
    num_test: int = eqx.field(static=True)

    def __repr__(self) -> str:
        height, width = self.grid_shape
        rules = ", ".join(dict.fromkeys(type(rule).__name__ for rule in self.rules))
        return f"ProceduralTasks({rules}, {self.num_train} train + {self.num_test} test, canvas {height}x{width})"

    def generate(self, key: PRNGKey, task_index: Int32[Array, ""]) -> Pairs:
        """Make the pairs of one task: inputs and outputs, demonstrations first; colors 0..9, -1 padding.

        Under ``vmap`` over task indices every rule works for every task, so a mixture costs the sum of its rules.
        """
        # One key for the rule and one for each pair: with 3 + 1 pairs, words[0] draws what the pairs share (a color
        # map), and words[1..4] each draw one picture to which it applies.
        words = split_words(as_typed_key(key), 1 + self.num_train + self.num_test)
        rule_key = self._rule_key(words[0])
        pair_keys = words[1:]
        if len(self.rules) == 1:
            return self._pairs_of(self.rules[0], rule_key, pair_keys)
        branches = [lambda *words, rule=rule: self._pairs_of(rule, *words) for rule in self.rules]
        return jax.lax.switch(task_index, branches, rule_key, pair_keys)

    def _rule_key(self, words: UInt32[Array, " words"]) -> UInt32[Array, " words"]:
        if self.rule_keys is None:
            return words
        size = self.rule_keys.shape[0]
        return self.rule_keys[to_index(words, jnp.int32(size), size)]

    def _pairs_of(self, rule: Rule, rule_key: UInt32[Array, " words"], pair_keys: UInt32[Array, "P words"]) -> Pairs:
        drawn = rule.draw(from_key_data(rule_key))

        def pair_of(words: UInt32[Array, " words"]) -> tuple[Array, Array]:
            return rule.make_pair(from_key_data(words), drawn, self.grid_shape)

        return jax.vmap(pair_of)(pair_keys)
