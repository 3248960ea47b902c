"""Programs as texts: what is no program is refused by name, and what the search finds is read back and runs again."""

import numpy as np
import pytest

from jaxarc.config import SearchConfig
from jaxarc.search import GridProgram, ProgramError, Word, WordError, solve
from jaxarc.search.words import parse_words, vocabulary
from jaxarc.tasks import TaskFormatError


@pytest.mark.parametrize("word", [str(word) for word in vocabulary(range(10), range(10), [(2, 3)], [(9, 10)])])
def test_a_word_that_the_search_tries_is_read_back(word):
    assert str(Word.parse(word)) == word
    assert Word.parse(word).in_words


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("rigid(flip_colums)", ["flip_colums", "flip_columns"]),
        ("cell_feature(any_siz)", ["any_siz", "any_size"]),
        ("split(object)", ["object", "objects"]),
        ("split(objects) > pick(mst, cells)", ["mst", "most"]),
        ("split(objects) > item(16)", ["16", "15"]),
        ("paint(44)", ["44", "9"]),
        ("upscale(2, 0)", ["0", "1 to 30"]),
        ("move(1.5, 0)", ["1.5"]),
        ("paint(3,)", ["paint"]),
        ("rigid", ["rigid", "turn_90"]),
        ("cropp", ["cropp", "crop"]),
        ("crop > ", ["''"]),
        ("split(objects)", ["list", "pick"]),
        ("pick(most, cells)", ["pick", "list"]),
        ("split(objects) > split(rows)", ["split(rows)", "image"]),
    ],
)
def test_wrong_words_are_refused_by_name(text, names):
    for program in (f"recolor none; size input; {text}", f"recolor none; size input; product input by {text} "):
        with pytest.raises(WordError) as caught:
            GridProgram.parse(program)
        assert all(name in str(caught.value) for name in names)
        assert "\n" not in str(caught.value)


def test_a_frame_alone_counts_as_an_image_and_in_a_list_as_a_list():
    for text in ("split(frames) > peel", "split(windows) > split(rows) > item(0)", "split(frames) > pick(most, cells)"):
        assert " > ".join(map(str, parse_words(text))) == text


NO_PROGRAMS = {  # a text -> what its refusal names
    "=> recolor none; size input; crop": "''",
    "frame 31; recolor none; size input; crop": "31",
    "orient sideways; recolor none; size input; input": "sideways | striped",
    "recolor none; size 3x31; crop": "3x31",
    "recolor none; size 3x; crop": "3x",
    "recolor none; size input * 2; crop": "input * 2",
    "recolor none; size 3x3; table input | crop : 0 = 1": "0 = 1 | 2",
    "recolor none; size 3x3; table input : 256 = 1": "256 | 255",
    "recolor none; size 3x3; table input : 0 = 1, 0 = 2": "0 = 2",
}
NO_RULES = {  # the same after a recoloring and a size
    "color 44": "44",
    "color 3 > crop": "color 3",
    "objects blobs by all : 1 = stay": "blobs | one_color",
    "objects any by mood : 1 = stay": "mood | is_most",
    "objects any by all : 1 = jump up": "jump up | slide up",
    "objects any by all : 1 = stay, 1 = clear": "1 = clear",
    "templates by mirrors : keep": "mirrors | turns | clear",
    "templates by all : drop": "drop | turns | clear",
    "grow by halves : 0 up 3 = 3": "halves | turns",
    "grow by none : 0 up = 3": "0 up = 3",
    "grow by none : 0 above 3 = 3": "above",
    "grow by none : 0 up 3 = x": "= x",
    "grow by none : 0 up 3 = 12": "12",
    "grow by none : 0 = 3": "0 = 3",
    "grow by none : ": "''",
}
WRONG = {**NO_PROGRAMS, **{f"recolor none; size input; {rule}": names for rule, names in NO_RULES.items()}}


@pytest.mark.parametrize(("text", "names"), WRONG.items(), ids=WRONG)
def test_what_is_no_program_is_refused_by_name(text, names):
    with pytest.raises(ProgramError) as caught:
        GridProgram.parse(text)
    assert [name for name in names.split(" | ") if name not in str(caught.value)] == []


@pytest.mark.parametrize("grid", [[[1, 10]], [[-1]], [1, 2], np.zeros((31, 1), np.int8), [[0.5]]])
def test_a_program_takes_grids_only(grid):
    with pytest.raises(TaskFormatError):
        GridProgram.parse("recolor none; size input; input")(grid)


def require_same(train, asked, config):
    """Check that each program gives its answer, is what it says of the demonstrations, and is read back; count them."""
    result = solve(train, asked, config)
    for found in result.answers:
        assert found.program is not None
        assert GridProgram.parse(str(found.program)) == found.program
        np.testing.assert_array_equal(found.program(asked), found.answer)
        for (source, target), fits in zip(train, found.fits, strict=True):
            assert np.array_equal(found.program(source), target) == fits
    return [str(found.program) for found in result.answers]


def test_an_image_stands_at_its_place_where_one_of_a_demonstration_has_another_size():
    """The images of the demonstrations are smaller than the outputs, that of the test is not."""
    random = np.random.default_rng(0)
    inputs = [random.integers(1, 5, (3, 2)) for _ in range(3)]
    train = [(grid, np.pad(grid, ((0, 0), (1, 0)))) for grid in inputs]
    programs = require_same(train, random.integers(1, 5, (3, 3)), SearchConfig(max_cost=2, answers=5))
    assert programs[0] == "recolor none; size 3x3; solid placed move(0, 1)"


def test_an_image_of_a_list_that_is_too_large_for_the_search_is_missing_in_the_program_too():
    random = np.random.default_rng(1)

    def source():
        grid = np.zeros((8, 8), np.int64)
        large = random.integers(1, 4)
        for index, (top, left) in enumerate([(0, 0), (0, 4), (4, 0), (4, 4)]):
            side = 3 if index == large else 2
            part = np.full((side, side), random.integers(1, 9))
            part[tuple(random.integers(0, side, 2))] = 0
            grid[top : top + side, left : left + side] = part
        return grid

    text = "frame 8; recolor none; size input; solid split(objects) > kronecker > stack(first)"
    *shown, asked = (source() for _ in range(4))
    programs = require_same([(grid, GridProgram.parse(text)(grid)) for grid in shown], asked, SearchConfig(max_cost=4))
    assert programs[0] == text
    assert not np.array_equal(GridProgram.parse(text.partition("; ")[2])(asked), GridProgram.parse(text)(asked))


def test_sizes_that_nothing_explains_are_told():
    random = np.random.default_rng(2)
    train = [(random.integers(0, 9, (3, 3)), np.full(shape, 4)) for shape in ((2, 5), (4, 3), (5, 5))]
    found = solve(train, random.integers(0, 9, (3, 3)), SearchConfig(max_cost=2)).answers[0]
    assert found.fits_all
    assert not found.knows_sizes
    assert found.program is not None
    assert str(found.program.size) == "2x5"


@pytest.mark.parametrize("seed", range(6))
def test_every_program_that_the_search_finds_gives_its_answer_and_is_read_back(seed):
    """Tasks of a random program of two layers; of most of them also programs that fit in part are found."""
    random = np.random.default_rng(seed)
    words = [word for word in vocabulary([1, 2], [1, 2], [], []) if word.makes_list(False) is False]
    while True:
        chosen = [str(words[index]) for index in random.integers(len(words), size=2)]
        rule = GridProgram.parse(f"recolor none; size input; {chosen[0]} + solid {chosen[1]}")
        *shown, asked = (random.choice([0, 0, 1, 2], random.integers(3, 7, 2)) for _ in range(4))
        try:
            train = [(grid, rule(grid)) for grid in shown]
            break
        except ProgramError:  # a word has no answer for one of the grids
            continue
    assert require_same(train, asked, SearchConfig(max_cost=4, max_states=3000, answers=20))


def test_a_color_beside_the_grid_is_not_copied():
    text = "recolor none; size input; table input copy cell_feature(beside_down) : 0 = 0, 1 = copy"
    np.testing.assert_array_equal(GridProgram.parse(text)([[0, 0], [1, 1]]), [[0, 0], [0, 0]])
    with pytest.raises(ProgramError, match=r"10.*beside_down"):
        GridProgram.parse(text)([[1, 0], [1, 1]])
