"""New tasks at every reset, made on the device by rules."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int8, Int32, UInt32

from jaxarc.prng import as_typed_key, from_key_data, split_words, to_randint
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.tasks.procedural.rule import Rule
from jaxarc.types import PRNGKey

Pairs = tuple[Int8[Array, "P HW"], Int8[Array, "P HW"]]


class ProceduralTasks(TaskGenerator):
    """Tasks that follow rules; what a task and its pairs are depends on keys only.

    With a pool, a task's rule is drawn from ``rule_keys``: train on some keys and test on others, and the rules differ
    while their kind is the same. The pairs are new at every draw, with and without a pool.
    """

    registry_index: Int32[Array, " T"]
    rule_keys: UInt32[Array, "R words"] | None  # the pool; None: a fresh rule for every task
    rules: tuple[Rule, ...] = eqx.field(static=True)  # a task index is a place in here
    grid_shape: tuple[int, int] = eqx.field(static=True)
    num_train: int = eqx.field(static=True)
    num_test: int = eqx.field(static=True)

    def generate(self, key: PRNGKey, task_index: Int32[Array, ""]) -> Pairs:
        """Make the pairs of one task: inputs and outputs, demonstrations first; colors 0..9, -1 padding.

        Under ``vmap`` over task indices every rule works for every task, so a mixture costs the sum of its rules.
        """
        words = split_words(as_typed_key(key), 1 + self.num_train + self.num_test)
        rule_key, pair_keys = self._rule_key(words[0]), words[1:]
        if len(self.rules) == 1:
            return self._pairs_of(self.rules[0], rule_key, pair_keys)
        branches = [lambda *words, rule=rule: self._pairs_of(rule, *words) for rule in self.rules]
        return jax.lax.switch(task_index, branches, rule_key, pair_keys)

    def _rule_key(self, words: UInt32[Array, " words"]) -> UInt32[Array, " words"]:
        if self.rule_keys is None:
            return words
        return self.rule_keys[to_randint(words[0], jnp.int32(self.rule_keys.shape[0]))]

    def _pairs_of(self, rule: Rule, rule_key: UInt32[Array, " words"], pair_keys: UInt32[Array, "P words"]) -> Pairs:
        drawn = rule.draw(from_key_data(rule_key))

        def pair_of(words: UInt32[Array, " words"]) -> tuple[Array, Array]:
            return rule.make_pair(from_key_data(words), drawn, self.grid_shape)

        return jax.vmap(pair_of)(pair_keys)
