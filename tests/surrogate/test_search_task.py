"""The words of drawn rules as an expert, and the network that the search reads."""

import operator

import jax
import numpy as np
import pytest

from jaxarc.config import SearchConfig, SearchExpertConfig, SurrogateConfig, SurrogateTrainingConfig
from jaxarc.config.build import ConfigValidationError
from jaxarc.datasets import TaskSet
from jaxarc.search import GridProgram, solve
from jaxarc.search.descriptions import Described, key_indices
from jaxarc.surrogate import SearchExpertTask, SurrogateExperiment, train_surrogate
from jaxarc.tasks.raw_task import RawTask

PROGRAMS = ("rigid(flip_rows)", "rigid(flip_columns)", "half(top)", "half(left)")


def rule_of(number, words):
    text = f"recolor none; size {words}; {words}"
    random = np.random.default_rng(number)
    grids = [random.choice([0, 0, 1, 2], (4, 5)).astype(np.int8) for _ in range(4)]
    pairs = [(grid, GridProgram.parse(text)(grid)) for grid in grids]
    return RawTask.of_checked_pairs(f"rule {number}", tuple(pairs[:3]), tuple(pairs[3:]), text)


def rules(first, count):
    numbers = range(first, first + count)
    return TaskSet("some", tuple(rule_of(number, PROGRAMS[number % len(PROGRAMS)]) for number in numbers))


@pytest.fixture(scope="module")
def task():
    return SearchExpertTask(SearchExpertConfig(num_examples=16), rules(0, 40), [rules(100, 8), rules(200, 4)])


def test_the_words_of_a_program_are_alike_likely_and_what_they_make_is_seen(task):
    examples, candidates = task.batch(0, 0)
    probs = np.asarray(examples.expert_probs)
    np.testing.assert_allclose(probs.sum(1), 1.0)
    flips = probs[:, key_indices()["rigid(flip_rows)"]] == 1.0
    assert 0 < flips.sum() < len(flips)
    shares = np.asarray(candidates.features)[:, key_indices()["rigid(flip_rows)"], 3]  # the fewest right cells
    assert (shares[flips] == 1.0).all()
    assert (shares[~flips] < 1.0).any()
    again, _ = task.batch(0, 0)
    np.testing.assert_array_equal(probs, np.asarray(again.expert_probs))


@pytest.mark.usefixtures("standard_promotion")
def test_training_learns_the_words_and_the_search_evaluates_the_same_network(task, tmp_path):
    experiment = SurrogateExperiment(
        surrogate=SurrogateConfig(problem="search", steps_per_report=30),
        surrogate_training=SurrogateTrainingConfig(num_steps=60, learning_rate=1e-2, warmup_steps=5),
        search_expert=task.config,
    )
    before = task.evaluate(task.make_model(jax.random.key(0)))
    result = train_surrogate(experiment, task)
    after = task.evaluate(result.state.model)
    assert after.kl < before.kl / 2
    assert after.top10_mass > before.top10_mass

    guide = task.guide(result.state.model)
    examples, candidates = task.batch(0, 1)
    for place in range(2):
        seen = Described(*(np.asarray(one[place]) for one in _seen(examples, candidates)))
        log_probs = guide.log_probs(seen)
        assert np.exp(log_probs).sum() == pytest.approx(1.0, abs=1e-3)
        logits = result.state.model(seen.pairs, jax.tree.map(operator.itemgetter(place), candidates))
        order = np.argsort(-np.where(seen.is_tried, np.asarray(logits), -np.inf))[:10]
        np.testing.assert_array_equal(order, np.argsort(-log_probs)[:10])
    path = tmp_path / "guidance.npz"
    guide.save(path)
    assert path.stat().st_size < 200_000
    asked, answer = rule_of(0, PROGRAMS[0]).test[0]
    guided = solve(rule_of(0, PROGRAMS[0]).train, asked, SearchConfig(guidance=str(path)))
    np.testing.assert_array_equal(guided.answers[0].answer, answer)


def _seen(examples, candidates):
    return examples.observational_data, candidates.features, candidates.is_real


def test_tasks_without_programs_are_refused_by_name(task):
    plain = rule_of(0, PROGRAMS[0])
    unnamed = RawTask("by hand", plain.train, plain.test)
    other = SearchExpertTask(task.config, TaskSet("hand", (unnamed,)), task.measured)
    with pytest.raises(ConfigValidationError, match=r"by hand.*tasks generate rules"):
        other.batch(0, 0)
