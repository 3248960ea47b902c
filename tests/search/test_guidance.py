"""The guided search: what it looks at first, what it never loses, and weights that do not fit."""

import numpy as np
import pytest

from jaxarc.config import SearchConfig
from jaxarc.search import GridProgram, GuidanceError, GuidanceWarning, Question, Word, search_all, solve
from jaxarc.search import guidance as guidance_module
from jaxarc.search.descriptions import key_indices, keys_of, word_keys
from jaxarc.search.guidance import Guide, Weights
from jaxarc.search.orientations import turned
from jaxarc.search.solve import described
from jaxarc.search.turned_words import turned_keys
from jaxarc.search.words import vocabulary


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
    random = np.random.default_rng(3)
    shown = [random.choice([0, 0, 0, 1, 2, 2], shape).astype(np.int8) for shape in ((4, 3), (5, 4), (3, 5), (4, 6))]
    rule = lambda grid: np.flipud(np.where(grid == 2, 0, grid))[: -(-grid.shape[0] // 2)]
    return Question("task", 0, tuple((grid, rule(grid).astype(np.int8)) for grid in shown[:-1]), shown[-1])


def test_a_right_opinion_finds_the_same_answer_with_fewer_words_applied(tmp_path, question):
    plain = solve(question.train, question.test_input, SearchConfig(max_cost=4))
    words = [str(word) for word in plain.answers[0].program.all_words]
    assert plain.answers[0].fits_all
    assert plain.num_applied > 3000  # or it is no search
    known = [word_keys()[key] for key in keys_of(map(Word.parse, words))]
    path = saved(tmp_path, opinion(*known))
    guided = solve(question.train, question.test_input, SearchConfig(max_cost=4, guidance=path))
    np.testing.assert_array_equal(guided.answers[0].answer, plain.answers[0].answer)
    assert guided.num_applied < plain.num_applied / 3
    assert set(known) <= {word for word, _ in guided.expected}
    assert not plain.expected


def test_a_wrong_opinion_loses_time_and_not_the_answer(tmp_path, question):
    plain = solve(question.train, question.test_input, SearchConfig(max_cost=4))
    wrong = [key for key in word_keys() if key.startswith(("smear", "extend", "connect", "pick", "keep(", "order"))]
    config = SearchConfig(max_cost=4, guidance=saved(tmp_path, opinion(*wrong)))
    ((_, guided),) = search_all([question], config)
    np.testing.assert_array_equal(guided.answers[0].answer, plain.answers[0].answer)
    assert guided.num_applied > plain.num_applied


def test_the_guided_search_tries_a_third_of_the_keys():
    grid = np.eye(3, dtype=np.int8)
    words = vocabulary([1, 2], [3], [], [])
    log_probs = opinion("crop").log_probs(described([(grid, grid)], grid))
    likely = guidance_module.likely_words(log_probs, words)
    assert Word("crop") in likely
    assert len(keys_of(likely)) == len(keys_of(words)) // 3


def test_weights_of_another_vocabulary_are_refused_and_the_search_is_unguided(tmp_path, question, monkeypatch):
    monkeypatch.setattr(guidance_module, "vocabulary_digest", lambda: "0123456789abcdef")
    path = saved(tmp_path, opinion("crop"))
    monkeypatch.undo()
    config = SearchConfig(max_cost=2, guidance=path)
    with pytest.warns(GuidanceWarning, match="0123456789abcdef"):
        result = solve(question.train, question.test_input, config)
    plain = solve(question.train, question.test_input, SearchConfig(max_cost=2))
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
    assert result.expected


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


@pytest.mark.parametrize("symmetry", range(8))
@pytest.mark.parametrize("text", ["half(left) > gravity(up)", "split(objects) > pick(most, cells) > smear(up_left)"])
def test_a_turned_program_turns_the_answer(text, symmetry):
    words = [Word.parse(one) for one in text.split(" > ")]
    places = [turned_keys(symmetry)[key_indices()[str(word)]] for word in words]
    assert min(places) >= 0
    plain, other = (
        GridProgram.parse(f"recolor none; size {chain}; solid {chain}")
        for chain in (text, " > ".join(word_keys()[place] for place in places))
    )
    random = np.random.default_rng(5)
    for shape in ((4, 6), (6, 6), (5, 4)):
        grid = np.where(random.random(shape) < 0.4, random.integers(1, 5, shape), 0).astype(np.int8)
        grid[:2, :2] = 4  # the largest object
        np.testing.assert_array_equal(other(turned(grid, symmetry)), turned(plain(grid), symmetry))


def test_symmetries_undo_themselves():
    for symmetry in (1, 2, 4):
        once = np.array(turned_keys(symmetry))
        there = once >= 0
        assert there.mean() > 0.8
        np.testing.assert_array_equal(once[once[there]], np.flatnonzero(there))
    assert turned_keys(0) == tuple(range(len(word_keys())))
