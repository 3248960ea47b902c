"""The search as an expert: its posterior, dreamed tasks, what is held out, and the network that the search reads."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from jaxarc.config import SearchConfig, SearchExpertConfig, SurrogateConfig, SurrogateTrainingConfig
from jaxarc.search import GridProgram, solve, word_examples
from jaxarc.search.descriptions import Described, key_indices, word_keys
from jaxarc.search.word_examples import ExpertExamples, ExpertExamplesError, dreams, fold_of, posterior, record
from jaxarc.surrogate import SearchExpertTask, SurrogateExperiment, train_surrogate
from jaxarc.tasks.raw_task import RawTask

FOLD = fold_of("task 0")


def task_of(name, rule, seed):
    random = np.random.default_rng(seed)
    grids = [random.choice([0, 0, 1, 2], (4, 5)).astype(np.int8) for _ in range(4)]
    pairs = [(grid, rule(grid).astype(np.int8)) for grid in grids]
    return RawTask(name, tuple(pairs[:3]), tuple(pairs[3:]))


@pytest.fixture(scope="module")
def tasks():
    rules = [np.flipud, np.fliplr, lambda grid: grid[:2], lambda grid: grid[:, :2]]
    return [task_of(f"task {seed}", rules[seed % len(rules)], seed) for seed in range(10)]


@pytest.fixture(scope="module")
def recorded(tasks):
    return record(tasks, SearchConfig(max_cost=2, seconds=600.0), 2, processes=1)


def found(text, cost, answer):
    return SimpleNamespace(program=GridProgram.parse(text), cost=cost, answer=np.array(answer), fits_all=True)


def test_the_posterior_shares_the_weight_by_cost_and_by_what_is_right():
    both = [
        found("recolor none; size input; solid crop", 4, [[1]]),
        found("recolor none; size input; solid peel > invert", 6, [[1]]),
    ]
    probs, accuracy = posterior(both, np.array([[1]]))
    assert accuracy == pytest.approx(1.0)
    crop, peel, invert = (probs[key_indices()[key]] for key in ("crop", "peel", "invert"))
    assert crop == pytest.approx(np.e / (1 + np.e), abs=1e-6)
    assert peel == invert == pytest.approx((1 - crop) / 2)
    wrong = found("recolor none; size input; solid box", 4, [[2]])
    probs, accuracy = posterior([*both, wrong], np.array([[1]]))
    assert probs[key_indices()["box"]] == pytest.approx(0.05 * probs[key_indices()["crop"]])
    assert accuracy == pytest.approx(1 - probs[key_indices()["box"]])
    assert posterior([wrong], np.array([[1]])) is None


def test_a_table_of_features_needs_no_word():
    text = "recolor none; size input; table cell_feature(any_rank) : 0 = 0, 1 = 1"
    probs, _ = posterior([found(text, 2, [[1]])], np.array([[1]]))
    assert probs[key_indices()["input"]] == 1.0


def test_the_recorded_posterior_has_the_words_that_explain_the_task(tasks, recorded):
    real = ~recorded.is_dreamed
    assert real.sum() == 4 * len(tasks)  # the test, and each demonstration left out
    np.testing.assert_allclose(recorded.probs.sum(1), 1.0, rtol=1e-5)
    first = recorded.probs[real & (recorded.task_ids == "task 0")]
    assert (first[:, key_indices()["rigid(flip_rows)"]] > 0.3).all()


def test_a_dream_is_a_program_on_the_inputs(tasks):
    inputs = [source for source, _ in tasks[0].train]
    dreamed = list(dreams(np.random.default_rng(0), inputs, 3))
    assert len(dreamed) == 3
    for pairs, probs in dreamed:
        words = {word_keys()[key] for key in np.flatnonzero(probs)}
        assert probs.sum() == pytest.approx(1.0)
        assert all(source is given for (source, _), given in zip(pairs, inputs, strict=True))
        assert all(len(np.unique(target)) > 1 and not np.array_equal(source, target) for source, target in pairs)
        names = {name.partition("(")[0] for name in words}
        result = solve(pairs[:-1], pairs[-1][0], SearchConfig(max_cost=4, answers=5))
        assert names
        assert any(np.array_equal(one.answer, pairs[-1][1]) for one in result.answers)


def test_a_held_out_fold_is_in_no_training_example(recorded):
    task = SearchExpertTask(recorded, SearchExpertConfig(fold=FOLD))
    assert {fold_of(str(name)) for name in task.held_out.task_ids} == {FOLD}
    assert FOLD not in {fold_of(str(name)) for name in task.train.task_ids}
    assert not task.held_out.is_dreamed.any()
    assert task.train.is_dreamed.any()


def test_the_batch_of_a_turned_example_names_the_turned_words(recorded):
    """Of a task that flips rows, half of the symmetries make one that flips columns."""
    only = ExpertExamples(*(array[(recorded.task_ids == "task 0") & ~recorded.is_dreamed] for array in recorded))
    task = SearchExpertTask(only, SearchExpertConfig(num_examples=64, dreamed_share=0.0))
    rows, columns = key_indices()["rigid(flip_rows)"], key_indices()["rigid(flip_columns)"]
    examples, candidates = task.batch(0, 0)
    probs = np.asarray(examples.expert_probs)
    flips_rows = probs[:, rows] > 0.3
    assert 0.2 < flips_rows.mean() < 0.8
    assert (probs[~flips_rows, columns] > 0.3).all()
    # What the key sees is turned with it: it makes all cells right.
    shares = np.asarray(candidates.features)[:, :, 3]
    assert (shares[flips_rows, rows] == 1.0).all()
    assert (shares[~flips_rows, columns] == 1.0).all()
    again, _ = task.batch(0, 0)
    np.testing.assert_array_equal(probs, np.asarray(again.expert_probs))


@pytest.mark.usefixtures("standard_promotion")
def test_training_learns_the_words_and_the_search_evaluates_the_same_network(recorded, tasks, tmp_path):
    experiment = SurrogateExperiment(
        surrogate=SurrogateConfig(problem="search", steps_per_report=30),
        surrogate_training=SurrogateTrainingConfig(num_steps=60, learning_rate=1e-2, warmup_steps=5),
        search_expert=SearchExpertConfig(fold=FOLD, num_examples=16),
    )
    task = SearchExpertTask(recorded, experiment.search_expert)
    before = task.evaluate(task.make_model(jax.random.key(0)))
    result = train_surrogate(experiment, task)
    after = task.evaluate(result.state.model)
    assert after.kl < before.kl / 2
    assert after.top10_mass > before.top10_mass

    guide = task.guide(result.state.model)
    held_out = task.held_out
    for place in range(2):
        seen = Described(held_out.pairs[place], held_out.words[place], held_out.is_tried[place])
        log_probs = guide.log_probs(seen)
        order = np.argsort(-log_probs)[:10]
        assert np.exp(log_probs).sum() == pytest.approx(1.0, abs=1e-3)
        _, candidates = task.batch(0, 0)
        alone = jax.tree.map(lambda array: array[0], candidates)
        alone = type(alone)(alone.rows, alone.columns, seen.words, seen.is_tried)
        logits = np.asarray(result.state.model(seen.pairs, alone))
        np.testing.assert_array_equal(order, np.argsort(-np.where(seen.is_tried, logits, -np.inf))[:10])
    path = tmp_path / "guidance.npz"
    guide.save(path)
    assert path.stat().st_size < 1_000_000
    train, (asked, answer) = tasks[0].train, tasks[0].test[0]
    guided = solve(train, asked, SearchConfig(guidance=str(path)))
    np.testing.assert_array_equal(guided.answers[0].answer, answer)


def test_examples_are_read_back_and_those_of_another_vocabulary_are_refused(recorded, tmp_path, monkeypatch):
    path = tmp_path / "examples.npz"
    recorded.save(path)
    for ours, theirs in zip(recorded, ExpertExamples.load(path), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    monkeypatch.setattr(word_examples, "vocabulary_digest", lambda: "0123456789abcdef")
    with pytest.raises(ExpertExamplesError, match="0123456789abcdef"):
        ExpertExamples.load(path)
    monkeypatch.undo()
    path.write_bytes(b"nothing")
    with pytest.raises(ExpertExamplesError, match=r"examples\.npz"):
        SearchExpertTask.load(SearchExpertConfig(recording=str(path)))


def test_too_few_examples_are_refused(recorded):
    some = ExpertExamples(*(array[recorded.task_ids == "task 0"] for array in recorded))
    other = next(fold for fold in range(5) if fold != fold_of("task 0"))
    with pytest.raises(ValueError, match=f"fold {other}"):
        SearchExpertTask(some, SearchExpertConfig(fold=other))
