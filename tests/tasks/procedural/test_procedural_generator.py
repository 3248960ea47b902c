"""What tasks depend on, what their pairs share, and what names and arguments give."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.datasets import sample_task_set
from jaxarc.tasks import task_id_of
from jaxarc.tasks.procedural import names, procedural_names, procedural_tasks, register_rule
from jaxarc.tasks.procedural.whole_pictures import MapColors

FIRST = jnp.int32(0)


@jax.jit
def one_task(generator, key, task_index=FIRST):
    return generator.generate(key, task_index)


@functools.partial(jax.jit, static_argnums=2)
def batch_of_tasks(generator, key, count):
    rules = jnp.arange(count, dtype=jnp.int32) % generator.num_tasks
    return jax.vmap(generator.generate)(jax.random.split(key, count), rules)


@pytest.mark.parametrize("name", ["color-map", "gravity"])
def test_the_same_key_makes_the_same_task_eager_compiled_and_in_a_batch(name):
    generator = procedural_tasks(name, grid_shape=(6, 5))
    batch = jax.tree.map(np.asarray, batch_of_tasks(generator, jax.random.key(5), 3))
    for i, key in enumerate(jax.random.split(jax.random.key(5), 3)):
        for way in (one_task(generator, key), one_task(generator, jax.random.key_data(key))):
            jax.tree.map(lambda a, b, i=i: np.testing.assert_array_equal(a, b[i]), way, batch)
    with jax.disable_jit():
        eager = generator.generate(jax.random.split(jax.random.key(5), 3)[0], FIRST)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[0]), eager, batch)


def test_generation_runs_in_a_scan_of_nested_batches():
    generator = procedural_tasks("copy-pattern", grid_shape=(5, 5))
    keys = jax.random.split(jax.random.key(1), (3, 2, 2))
    nested = jax.vmap(jax.vmap(lambda key: generator.generate(key, FIRST)))
    _, scanned = jax.jit(lambda keys: jax.lax.scan(lambda carry, keys: (carry, nested(keys)), None, keys))(keys)
    flat = jax.jit(jax.vmap(lambda key: generator.generate(key, FIRST)))(keys.reshape(-1))
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a.reshape(b.shape), b), scanned, flat)


def test_pairs_of_one_rule_are_endless():
    pool = jax.random.split(jax.random.key(7), 1)
    generator = procedural_tasks("color-map", grid_shape=(10, 10), num_train=4, num_test=1, rule_keys=pool)
    inputs, outputs = (
        np.asarray(grids).reshape(1000, 100) for grids in batch_of_tasks(generator, jax.random.key(2), 200)
    )
    assert len({grid.tobytes() for grid in inputs}) >= 990
    table = np.full(10, -1)
    for grid, output in zip(inputs, outputs, strict=True):
        shown = grid >= 0
        table[grid[shown]] = output[shown]
    shown = inputs >= 0
    np.testing.assert_array_equal(outputs[shown], table[inputs[shown]])  # one map for all 1000


def _maps(generator, seed):
    inputs, outputs = (np.asarray(grids) for grids in batch_of_tasks(generator, jax.random.key(seed), 200))
    found = set()
    for grid, output in zip(inputs, outputs, strict=True):
        found.add(tuple(int(output[grid == color].max(initial=-1)) for color in range(10)))
    return {colors for colors in found if -1 not in colors}


def test_tasks_follow_the_rules_of_the_pool_and_no_other():
    keys = jax.random.split(jax.random.key(3), 6)
    first, second = (
        _maps(procedural_tasks("color-map", grid_shape=(12, 12), rule_keys=pool), seed=4)
        for pool in (keys[:4], keys[4:])
    )
    assert (len(first), len(second)) == (4, 2)
    assert not first & second
    expected = {tuple(np.asarray(MapColors().draw(key)).tolist()) for key in jax.random.split(jax.random.key(3), 6)[:4]}
    assert first == expected


def test_a_mixture_gives_each_task_index_its_own_rule():
    mixed = ["flip-left-right", "count"]
    mixture = procedural_tasks(mixed, grid_shape=(6, 6))
    assert mixture.num_tasks == 2
    assert [task_id_of(index) for index in mixture.registry_index] == [f"procedural/{name}" for name in mixed]
    key = jax.random.key(9)
    batch = jax.jit(jax.vmap(mixture.generate, (None, 0)))(key, jnp.array([0, 1], jnp.int32))
    for i, name in enumerate(mixed):
        alone = one_task(procedural_tasks(name, grid_shape=(6, 6)), key)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_array_equal(a, b[i]), alone, batch)


def test_all_is_every_rule_but_the_one_without_a_rule():
    everything = procedural_tasks("procedural/all")
    found = {task_id_of(index) for index in everything.registry_index}
    assert found == set(procedural_names()) - {"procedural/random", "procedural/all"}
    assert len(found) >= 14


def test_sampled_tasks_are_named_after_their_rules_and_cut_to_size():
    generator = procedural_tasks(["count", "transpose"], grid_shape=(6, 8))
    tasks = sample_task_set(generator, jax.random.key(0), 3)
    assert tasks.task_ids == ("procedural/count/0", "procedural/transpose/0", "procedural/count/1")
    assert tasks.grid_shape == (6, 8)
    count, transpose, _ = tasks
    assert (len(count.train), len(count.test), count.concept) == (3, 1, "procedural/count")
    for grid, output in transpose.pairs:
        np.testing.assert_array_equal(output, grid.T)
    inputs, _ = one_task(generator, jax.random.split(jax.random.key(0), 3)[1], jnp.int32(1))
    first = np.asarray(inputs[0]).reshape(6, 8)
    np.testing.assert_array_equal(
        first[: len(transpose.train[0][0])][:, : transpose.train[0][0].shape[1]], transpose.train[0][0]
    )


@pytest.mark.parametrize("name", ["", "procedural/", "all", "rotate", "procedural/count"])
def test_a_name_that_is_taken_cannot_be_registered(name):
    with pytest.raises(ValueError, match="empty or taken"):
        register_rule(name, MapColors())


def test_a_registered_rule_is_known_by_name_and_joins_the_mixture(monkeypatch):
    monkeypatch.setattr(names, "registered", {})
    register_rule("procedural/map-large", MapColors(min_side=8))
    assert "procedural/map-large" in procedural_names()
    assert MapColors(min_side=8) in procedural_tasks("all").rules
    assert procedural_tasks("map-large", side=(2, 3)).rules == (MapColors(min_side=2, max_side=3),)


POOL = 100_000  # more entries than 16 bits can point at


def test_a_rule_of_a_large_pool_is_drawn_from_all_of_it():
    # Entry i of the pool is the key (0, i), so the drawn key says which entry it is.
    entries = jnp.arange(POOL, dtype=jnp.uint32)
    generator = procedural_tasks("rotate", rule_keys=jnp.stack([jnp.zeros_like(entries), entries], axis=1))
    words = jax.random.key_data(jax.random.split(jax.random.key(0), 20 * POOL))
    counts = np.bincount(np.asarray(jax.jit(jax.vmap(generator._rule_key))(words))[:, 1], minlength=POOL)
    assert counts.min() > 0, f"{(counts == 0).sum()} of {POOL} rules are never drawn"
    chi_square = ((counts - 20) ** 2 / 20).sum()
    assert abs(chi_square - POOL) < 5 * np.sqrt(2 * POOL)  # five standard deviations
