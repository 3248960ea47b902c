"""The guided search: which longer programs it looks for, what it never loses, and weights that do not fit."""

from dataclasses import replace

import numpy as np
import pytest

from jaxarc.config import SearchConfig
from jaxarc.search import GridProgram, GuidanceError, GuidanceWarning, Question, Word, search_all, solve
from jaxarc.search import guidance as guidance_module
from jaxarc.search.descriptions import key_indices, keys_of, word_keys
from jaxarc.search.guidance import Guide, Weights, expected_words, guide_of
from jaxarc.search.solve import described
from jaxarc.search.words import vocabulary

RULE = "recolor none; size half(top) > gravity(down) > rigid(turn_90); half(top) > gravity(down) > rigid(turn_90)"


def opinion(*keys):
    """Return weights by which some keys are likely at every task."""
    units, own = 2, 1
    bias = np.zeros(len(word_keys()), np.float32)
    bias[[key_indices()[key] for key in keys]] = 5.0
    task = described([(np.eye(3, dtype=np.int8), np.eye(3, dtype=np.int8))], np.eye(3, dtype=np.int8))
    numbers, features = task.pairs[0].size, task.words.shape[1]
    shapes = [(numbers, units), (units,), (units, units), (units,), (len(bias), own), None]
    shapes += [(features + own + units, units), (units,), (units,)]
    return Guide(Weights(*(bias if shape is None else np.zeros(shape, np.float32) for shape in shapes)))


def saved(tmp_path, guide):
    path = tmp_path / "guidance.npz"
    guide.save(path)
    return str(path)


@pytest.fixture(scope="module")
def question():
    """Three words, and none of two explains it."""
    random = np.random.default_rng(3)
    rule = GridProgram.parse(RULE)
    shown = [random.choice([0, 0, 0, 1, 2, 2], shape).astype(np.int8) for shape in ((6, 5), (5, 7), (7, 5), (6, 6))]
    return Question("task", 0, tuple((grid, rule(grid)) for grid in shown[:-1]), shown[-1])


def test_a_right_opinion_finds_a_longer_program_with_fewer_words_applied(tmp_path, question):
    plain = solve(question.train, question.test_input, SearchConfig(guidance="none"))
    path = saved(tmp_path, opinion("rigid(turn_90)", "drop_empty_lines", "gravity(down)", "half(top)"))
    guided = solve(question.train, question.test_input, SearchConfig(guidance=path))
    wanted = GridProgram.parse(RULE)(question.test_input)
    assert np.array_equal(guided.answers[0].answer, wanted)
    assert guided.answers[0].cost < 16
    assert guided.num_applied < plain.num_applied / 3
    assert {"half(top)", "gravity(down)"} <= {word for word, _ in guided.expected}
    assert not plain.expected


def test_a_wrong_opinion_loses_time_and_not_the_answer(tmp_path):
    random = np.random.default_rng(4)
    shown = [random.choice([0, 0, 1, 2], shape).astype(np.int8) for shape in ((4, 3), (5, 4), (3, 5))]
    train = [(grid, grid[::-1]) for grid in shown[:-1]] + [(np.eye(3, dtype=np.int8), np.eye(3, dtype=np.int8))]
    wrong = [key for key in word_keys() if key.startswith(("smear", "extend", "connect", "pick", "keep(", "order"))]
    limits = SearchConfig(max_cost=4, max_states=2000)
    plain = solve(train, shown[-1], replace(limits, guidance="none"))
    path = saved(tmp_path, opinion(*wrong))
    ((_, guided),) = search_all([Question("task", 0, tuple(train), shown[-1])], replace(limits, guidance=path))
    np.testing.assert_array_equal(guided.answers[0].answer, plain.answers[0].answer)
    assert guided.num_applied >= plain.num_applied


@pytest.mark.parametrize("share", [1 / 3, 1 / 12])
def test_a_share_of_the_keys_is_likely(share):
    grid = np.eye(3, dtype=np.int8)
    words = vocabulary([1, 2], [3], [], [])
    log_probs = opinion("crop").log_probs(described([(grid, grid)], grid))
    likely = guidance_module.likely_words(log_probs, words, share)
    assert Word("crop") in likely
    assert len(keys_of(likely)) == int(len(keys_of(words)) * share)


def test_the_weights_of_the_package_are_of_this_vocabulary():
    guide = guide_of("trained")
    assert guide is not None
    grid = np.arange(12, dtype=np.int8).reshape(3, 4) % 5
    turned = [(grid[:, :columns], grid[::-1, :columns]) for columns in (4, 3, 2)]
    log_probs = guide.log_probs(described(turned, grid))
    assert "rigid(flip_rows)" in [word for word, _ in expected_words(log_probs)]


def test_weights_of_another_vocabulary_are_refused_and_the_search_is_unguided(tmp_path, question, monkeypatch):
    monkeypatch.setattr(guidance_module, "vocabulary_digest", lambda: "0123456789abcdef")
    path = saved(tmp_path, opinion("crop"))
    monkeypatch.undo()
    config = SearchConfig(max_cost=2, guidance=path)
    with pytest.warns(GuidanceWarning, match="0123456789abcdef"):
        result = solve(question.train, question.test_input, config)
    plain = solve(question.train, question.test_input, replace(config, guidance="none"))
    assert [str(one.program) for one in result.answers] == [str(one.program) for one in plain.answers]
    assert result.num_applied == plain.num_applied


@pytest.mark.parametrize("content", [None, b"", b"no weights", b"PK\x03\x04 half an archive"])
def test_a_file_that_is_no_weights_is_refused_by_name(tmp_path, question, content):
    path = tmp_path / "weights.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(GuidanceError, match=r"weights\.npz"):
        solve(question.train, question.test_input, SearchConfig(max_cost=2, guidance=str(path)))


def test_arrays_of_other_names_are_no_weights(tmp_path):
    np.savez(tmp_path / "other.npz", vocabulary="x", head=np.zeros(3))
    with pytest.raises(GuidanceError, match=r"other\.npz"):
        Guide.load(tmp_path / "other.npz")


@pytest.mark.parametrize("limit", [{"seconds": 0.0}, {"max_states": 1}, {"max_cost": 0}])
def test_a_guided_search_without_a_budget_still_answers(tmp_path, question, limit):
    result = solve(
        question.train, question.test_input, SearchConfig(guidance=saved(tmp_path, opinion("crop")), **limit)
    )
    assert result.answers


def test_a_task_looks_the_same_in_other_colors(question):
    swap = np.array([0, 7, 4, *range(3, 10)], np.int8)
    plain = described(question.train, question.test_input)
    other = described([(swap[source], swap[target]) for source, target in question.train], swap[question.test_input])
    np.testing.assert_allclose(plain.pairs, other.pairs)
    # Where two colors are as common, the first one is taken, so some words see other cells.
    assert np.mean(np.isclose(plain.words, other.words).all(1)) > 0.9
    np.testing.assert_array_equal(plain.is_tried, other.is_tried)


def test_the_description_says_which_word_makes_the_output(question):
    train = [(source, source[::-1]) for source, _ in question.train]
    words = described(train, question.test_input).words
    best = np.flatnonzero(words[:, 3] == 1.0)  # the lowest share of right cells over the demonstrations
    assert key_indices()["rigid(flip_rows)"] in best
    assert key_indices()["crop"] not in best
