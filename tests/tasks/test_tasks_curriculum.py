"""What was played decides what is played next: on the device, in any order, without a recompilation."""

import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from process_group import run_python

from jaxarc.config import CurriculumConfig
from jaxarc.profiling import CompileCounter
from jaxarc.tasks import sample_task, uniform_weights
from jaxarc.tasks.curriculum import (
    apply_counts,
    count_episodes,
    count_played_tasks,
    curriculum_weights,
    effective_task_count,
    record,
    start_curriculum,
)

LEARNABILITY = CurriculumConfig("learnability")
REPLAY = CurriculumConfig("replay")
KINDS = [CurriculumConfig(), LEARNABILITY, REPLAY]


_record = jax.jit(record)
_weights = jax.jit(curriculum_weights)


def fresh(num_tasks, config):
    return start_curriculum(uniform_weights(num_tasks), config)


def episodes(*plays):
    """Entries from (task, solved) or (task, solved, score)."""
    columns = list(zip(*plays, strict=True))
    index, solved = jnp.array(columns[0], jnp.int32), jnp.array(columns[1], jnp.bool_)
    score = jnp.array(columns[2], jnp.float32) if len(columns) == 3 else None
    return index, jnp.ones_like(solved), solved, score


def played(curriculum, *updates):
    for update in updates:
        curriculum = _record(curriculum, *episodes(*update))
    return curriculum


def weights_of(curriculum):
    weights = np.asarray(_weights(curriculum))
    assert np.all(np.isfinite(weights))
    assert weights.sum() == pytest.approx(1, abs=1e-5)
    return weights


def test_statistics_count_every_episode_of_a_task_and_only_where_one_ended():
    index = jnp.array([[2, 2, 0], [2, 0, 0]], jnp.int32)
    ended = jnp.array([[True, True, False], [True, True, False]])
    solved = jnp.array([[True, False, True], [True, False, True]])
    statistics = _record(fresh(4, LEARNABILITY), index, ended, solved).statistics
    assert statistics.attempts.tolist() == [1, 0, 3, 0]
    assert statistics.solves.tolist() == [0, 0, 2, 0]
    assert statistics.last_update.tolist() == [1, -1, 1, -1]
    assert statistics.clock == 1


def test_the_recent_rate_forgets_the_prior_and_the_past_and_does_not_depend_on_how_episodes_are_split_into_updates():
    solves = [(0, True)] * 12
    at_once = played(fresh(2, LEARNABILITY), solves).statistics.success_rate
    one_by_one = played(fresh(2, LEARNABILITY), *[[play] for play in solves]).statistics.success_rate
    np.testing.assert_allclose(at_once, [1 - 0.5 * 0.9**12, 0.5], rtol=1e-5)
    np.testing.assert_allclose(one_by_one, at_once, rtol=1e-5)
    changed = played(fresh(2, LEARNABILITY), solves, [(0, False)] * 50).statistics.success_rate
    assert changed[0] < 0.01


def test_learnability_is_largest_where_half_of_the_episodes_are_solved():
    half = [(0, False)] * 40 + [(1, False), (1, False), (1, False), (1, True)] * 10 + [(2, False), (2, True)] * 20
    rest = [(3, True), (3, True), (3, True), (3, False)] * 10 + [(4, True)] * 40
    weights = weights_of(played(fresh(5, LEARNABILITY), half + rest))
    assert np.argmax(weights) == 2
    np.testing.assert_allclose(weights, weights[::-1], rtol=1e-4)
    learnable = np.array([0, 3 / 16, 1 / 4, 3 / 16, 0])
    np.testing.assert_allclose(weights, 0.2 / 5 + 0.8 * learnable / learnable.sum(), atol=0.01)


@pytest.mark.parametrize("config", [LEARNABILITY, REPLAY], ids=["learnability", "replay"])
@pytest.mark.parametrize("outcome", [True, False], ids=["always solved", "never solved"])
def test_a_task_always_or_never_solved_fades_but_keeps_its_uniform_share(config, outcome):
    curriculum = fresh(10, config)
    others = [(task, parity) for task in range(1, 10) for parity in (True, False)]
    for _ in range(30):
        curriculum = played(curriculum, [(0, outcome)] * 20 + others)
    weights = weights_of(curriculum)
    assert weights[0] == weights.min() < 0.5 / 10
    assert weights[0] >= 0.2 / 10 * 0.999


def test_replay_weighs_by_rank_of_the_score_whatever_its_size():
    config = REPLAY.replace(uniform_share=0.0, staleness_share=0.0, temperature=0.5)
    plays = [(0, False, 0.1), (1, False, 1000.0), (2, False, 0.2), (3, False, 0.1), (3, False, 0.2)]
    weights = weights_of(played(fresh(4, config), plays))
    expected = np.array([4, 1, 2, 3], np.float32) ** -2  # task 3 has the mean score 0.15
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-5)


def test_replay_gives_an_unseen_task_its_base_weight_until_it_is_seen():
    curriculum = fresh(4, REPLAY.replace(uniform_share=0.0))
    curriculum = played(curriculum, [(0, True, 5.0)])
    np.testing.assert_allclose(weights_of(curriculum), 0.25, rtol=1e-5)
    curriculum = played(curriculum, [(1, True, 1.0)])
    np.testing.assert_allclose(weights_of(curriculum)[2:], 0.25, rtol=1e-5)
    weights = weights_of(played(curriculum, [(2, True, 0.5), (3, True, 0.4)]))
    assert weights[0] > weights[2] > weights[3]


def test_staleness_revives_a_task_that_was_forgotten():
    config = REPLAY.replace(uniform_share=0.0, staleness_share=0.3)
    curriculum = played(fresh(3, config), [(0, True, 0.0), (1, True, 1.0), (2, True, 2.0)])
    before = weights_of(curriculum)
    for _ in range(9):
        curriculum = played(curriculum, [(1, True, 1.0), (2, True, 2.0)])
    after = weights_of(curriculum)
    assert before[0] == before.min()
    assert after[0] == pytest.approx(before[0] * 0.7 + 0.3, rel=1e-3)


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.kind)
def test_a_task_of_base_weight_zero_is_never_drawn(config):
    curriculum = start_curriculum(jnp.array([0.5, 0.0, 1.5, 0.0]), config)
    for _ in range(3):
        curriculum = played(curriculum, [(task, solved, 1.0) for task in range(4) for solved in (True, False)])
        weights = np.asarray(_weights(curriculum))
        assert (weights > 0).tolist() == [True, False, True, False]
        assert weights[2] > weights[0]


def test_effective_tasks_run_from_one_to_all():
    assert effective_task_count(jnp.array([0.0, 2.0, 0.0])) == pytest.approx(1)
    assert effective_task_count(uniform_weights(7)) == pytest.approx(7)
    assert 1 < effective_task_count(jnp.array([0.9, 0.1])) < 2
    assert count_played_tasks(played(fresh(3, REPLAY), [(1, True), (1, False)])) == 1


def random_update(seed, num_tasks=9, shape=(4, 16)):
    random = np.random.default_rng(seed)
    index = jnp.asarray(random.integers(0, num_tasks, shape), jnp.int32)
    flags = (jnp.asarray(random.random(shape) < 0.5) for _ in range(2))
    return index, *flags, jnp.asarray(random.random(shape), jnp.float32)


def integers(curriculum):
    statistics = curriculum.statistics
    counts = (statistics.attempts, statistics.solves, statistics.last_update, statistics.clock)
    return [np.asarray(count).tolist() for count in counts]


def test_the_order_of_environments_changes_no_count_and_no_rate():
    update = random_update(0)
    order = np.random.default_rng(1).permutation(16)
    straight = _record(fresh(9, REPLAY), *update)
    shuffled = _record(fresh(9, REPLAY), *[entries[:, order] for entries in update])
    assert integers(straight) == integers(shuffled)
    np.testing.assert_array_equal(straight.statistics.success_rate, shuffled.statistics.success_rate)
    np.testing.assert_allclose(straight.statistics.score, shuffled.statistics.score, rtol=1e-5)


def facts_on_devices(count):
    """The integers after one update: entries split over devices under jit, and under shard_map with a psum."""
    mesh = jax.make_mesh((count,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    split, start, update = PartitionSpec(None, "data"), fresh(9, REPLAY), random_update(0)
    placed = jax.device_put(update, NamedSharding(mesh, split))

    def on_each(curriculum, *entries):
        return apply_counts(curriculum, jax.lax.psum(count_episodes(9, *entries), "data"))

    specs = (PartitionSpec(), *[split] * 4)
    mapped = jax.jit(jax.shard_map(on_each, mesh=mesh, in_specs=specs, out_specs=PartitionSpec()))
    results = (_record(start, *placed), mapped(start, *placed))
    assert {len(entries.sharding.device_set) for entries in placed} == {count}
    return [[integers(result), np.argsort(_weights(result)).tolist()] for result in results]


def test_the_number_of_devices_changes_no_count():
    program = "import json, conftest, test_tasks_curriculum as t; print(json.dumps(t.facts_on_devices(8)))"
    spread = json.loads(run_python(program, devices=8, path=os.path.dirname(__file__)))
    alone = facts_on_devices(1)
    assert spread == alone
    assert alone[0] == alone[1]


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.kind)
def test_fifty_updates_compile_once(config):
    update = jax.jit(lambda curriculum, *entries: (after := record(curriculum, *entries), curriculum_weights(after)))
    curriculum, _ = update(fresh(9, config), *random_update(0))
    entries = [random_update(seed) for seed in range(50)]
    with CompileCounter() as counter:
        for batch in entries:
            curriculum, _ = update(curriculum, *batch)
    counter.assert_none()
    assert curriculum.statistics.clock == 51


def test_the_one_learnable_task_among_an_impossible_and_trivial_ones_is_drawn_most():
    chance = jnp.array([0.0, 1.0, 0.4, 0.0, 1.0], jnp.float32)

    def play(curriculum, key):
        key_task, key_solve = jax.random.split(key)
        weights = curriculum_weights(curriculum)
        index = jax.vmap(sample_task, (0, None))(jax.random.split(key_task, 16), weights)
        solved = jax.random.uniform(key_solve, index.shape) < chance[index]
        return record(curriculum, index, jnp.ones_like(solved), solved), weights

    run = jax.jit(lambda curriculum: jax.lax.scan(play, curriculum, jax.random.split(jax.random.key(0), 100)))
    for config in (LEARNABILITY, REPLAY):
        curriculum, weights = run(fresh(5, config))
        assert np.argmax(weights[-1]) == 2
        attempts = np.asarray(curriculum.statistics.attempts)
        others = np.delete(attempts, 2)
        assert attempts[2] > 1.5 * others.max()
        assert others.min() > 0.2 / 5 * attempts.sum() / 2
        assert weights[-1, 2] > (0.75 if config is LEARNABILITY else 0.35)
