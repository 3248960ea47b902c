"""The C++ graph makes the same states as the NumPy graph, word by word."""

import ctypes
import os
import subprocess

import numpy as np
import pytest

from jaxarc.config import SearchConfig
from jaxarc.native.library import FLAGS, SEARCH_SOURCES, NativeLibraryWarning, find_compiler, load_library
from jaxarc.search import Question, kernels, search_all, solve
from jaxarc.search.graph import Limits, StateGraph
from jaxarc.search.native import NativeGraph
from jaxarc.search.words import vocabulary

FRAME = 12
WORDS = vocabulary(range(10), range(10), [(2, 3)], [(9, 10)])
LIST_WORDS = [word for word in WORDS if word.makes_list(True) is not None and word.makes_list(False) is None]
SPLITS = [word for word in WORDS if word.name == "split"]
IMAGE_WORDS = [word for word in WORDS if word not in LIST_WORDS and word.name != "split"]


@pytest.fixture(autouse=True)
def library():
    if kernels.search_library() is None:
        pytest.skip("no C++ compiler is installed")


def random_grid(random, side=FRAME):
    """Return a grid as tasks have them: few colors on color 0, sometimes lines, a mirror image or a repeated tile."""
    height, width = random.integers(1, side + 1, 2)
    colors = random.choice(10, random.integers(1, 4))
    grid = np.where(
        random.random((height, width)) < random.choice([0.1, 0.4, 0.9]), random.choice(colors, (height, width)), 0
    )
    kind = random.integers(6)
    if kind == 0:
        grid[random.integers(height)] = colors[0]
        grid[:, random.integers(width)] = colors[0]
    if kind == 1:
        grid = np.maximum(grid, grid[::-1])
    if kind == 2:
        grid = np.where(random.random(grid.shape) < 0.1, 0, np.maximum(grid, grid[:, ::-1]))
    if kind == 3:
        grid = np.tile(grid[: 1 + height // 3, : 1 + width // 3], (3, 3))[:height, :width]
    if kind == 4 and min(height, width) > 3:
        grid[1:4, 0:4] = colors[0]
        grid[2, 1:3] = 0
    return grid.astype(np.uint8)


def made(graph):
    """Return all states of one image each: their words, costs and images."""
    while graph.cost < 4:
        graph.expand()
    found = []
    for state, numbers, cost in zip(*graph.images, strict=True):
        images = graph.table.images(numbers)
        places = np.stack([images.row, images.column, images.height, images.width], 1).tolist()
        found.append((" > ".join(map(str, graph.program(int(state)))), int(cost), places, images.cells.tolist()))
    return found


def check(words, inputs, frame=FRAME):
    given = inputs, frame, words, Limits(10**6, 10**6, deadline=float("inf"))
    expected, native = made(StateGraph(*given)), made(NativeGraph(*given))
    assert [row[:2] for row in native] == [row[:2] for row in expected], [str(word) for word in words]
    for one, other in zip(native, expected, strict=True):
        assert one == other, (one[0], [grid.tolist() for grid in inputs])


@pytest.mark.parametrize("seed", range(2))
def test_image_words_make_the_same_images(seed):
    random = np.random.default_rng(seed)
    for word in IMAGE_WORDS:
        check([word], [random_grid(random)])


def test_list_words_make_the_same_images():
    random = np.random.default_rng(2)
    for word in LIST_WORDS:
        check([SPLITS[random.integers(len(SPLITS))], word], [random_grid(random)])
    for split in SPLITS:
        check([split, *(LIST_WORDS[index] for index in random.integers(0, len(LIST_WORDS), 6))], [random_grid(random)])


def test_all_words_together_make_the_same_states():
    random = np.random.default_rng(3)
    words = [word for word in WORDS if random.random() < 0.3]
    check(words, [random_grid(random, 6) for _ in range(3)], frame=8)


def test_a_grid_of_one_cell_and_one_of_the_largest_size_are_like_any_other():
    words = [*IMAGE_WORDS[::3], *SPLITS]
    check(words, [np.zeros((1, 1), np.uint8)], frame=3)
    check(words[::4], [np.tile(random_grid(np.random.default_rng(4)), (30, 30))[:30, :30]], frame=30)


def recolored(grid):
    return np.where(grid == 0, 4, np.where(grid == 1, grid[::-1], 7))


def layered(grid):
    return np.where(grid != 0, grid, np.where(grid[:, ::-1] != 0, 3, 0))


def noisy(grid):
    return np.where(grid == grid.max(), 0, grid.T[: grid.shape[0], : grid.shape[1]]) if grid.sum() % 2 else grid


@pytest.mark.parametrize("rule", [recolored, layered, noisy])
def test_answers_are_the_same_without_the_library(rule, monkeypatch):
    random = np.random.default_rng(5)
    *shown, asked = (random.integers(0, 3, (5, 5)) for _ in range(4))
    train = [(grid, rule(grid)) for grid in shown]
    config = SearchConfig(max_cost=3, answers=5, seconds=100)
    native = solve(train, asked, config)
    monkeypatch.setattr(kernels, "search_library", lambda: None)
    plain = solve(train, asked, config)
    assert (native.num_states, native.num_applied) == (plain.num_states, plain.num_applied)
    for one, other in zip(native.answers, plain.answers, strict=True):
        assert (str(one.program), one.cost, one.fits, one.share) == (
            str(other.program),
            other.cost,
            other.fits,
            other.share,
        )
        np.testing.assert_array_equal(one.answer, other.answer)


@pytest.fixture
def slow_compiler(tmp_path, monkeypatch):
    """An empty cache, and a compiler that takes two seconds, and writes who called it into the file returned."""
    built, _ = load_library(SEARCH_SOURCES, ())
    compiler = tmp_path / "c++"
    compiler.write_text(
        f'#!/bin/sh\necho $PPID >> {tmp_path}/calls\nsleep 2\nfor last; do :; done\ncp {built} "$last"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path / "cache"))
    kernels.search_library.cache_clear()
    yield tmp_path / "calls"
    kernels.search_library.cache_clear()


ROWS = [np.array([row]) for row in ([1, 2, 0], [3, 4, 4], [5, 6, 7])]
TURN = Question("turn", 0, tuple((row, row[:, ::-1]) for row in ROWS[:2]), ROWS[2])


def test_a_first_search_is_as_good_as_any_other(slow_compiler):
    found = solve(TURN.train, TURN.test_input, SearchConfig(max_cost=2, seconds=1.5))
    assert slow_compiler.read_text() == f"{os.getpid()}\n"
    assert not found.is_cut
    assert found.answers[0].answer.tolist() == [[7, 6, 5]]
    kernels.search_library.cache_clear()
    again = solve(TURN.train, TURN.test_input, SearchConfig(max_cost=2, seconds=1.5))
    assert again.num_states == found.num_states > 1


def test_a_budget_of_minutes_and_processes_begin_after_the_build(slow_compiler):
    config = SearchConfig(max_cost=2)
    ((_, alone),) = search_all([TURN], config, minutes=1.5 / 60)
    assert alone.answers[0].answer.tolist() == [[7, 6, 5]]
    slow_compiler.with_name("cache").rename(slow_compiler.with_name("other"))
    kernels.search_library.cache_clear()
    found = list(search_all([TURN, TURN], config, processes=2))
    assert [one.answers[0].answer.tolist() for _, one in found] == [[[7, 6, 5]]] * 2
    assert slow_compiler.read_text() == f"{os.getpid()}\n" * 2


def test_processes_do_not_try_again_what_failed(slow_compiler, monkeypatch, capfd):
    compiler = slow_compiler.with_name("c++")
    compiler.write_text(f"#!/bin/sh\necho $PPID >> {slow_compiler}\nexit 1\n")
    with pytest.warns(NativeLibraryWarning, match="NumPy"):
        found = list(search_all([TURN, TURN], SearchConfig(max_cost=2), processes=2))
    assert [one.answers[0].answer.tolist() for _, one in found] == [[[7, 6, 5]]] * 2
    assert slow_compiler.read_text() == f"{os.getpid()}\n"
    assert "NumPy" not in capfd.readouterr().err


def test_sources_compile_without_a_warning():
    strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command = [*find_compiler(), *(flag for flag in FLAGS if flag != "-w"), *strict, str(SEARCH_SOURCES / "search.cc")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_arrays_of_another_dtype_are_refused():
    numbers = np.zeros(3, np.int64)
    sizes = np.zeros(3, np.int32)
    graph = kernels.call("new", FRAME, 1)
    try:
        for wrong in (numbers.astype(np.int32), np.zeros((3, 2), np.int64)[:, 0]):
            with pytest.raises(ctypes.ArgumentError, match="argument 3"):
                kernels.call("sizes", graph, 3, wrong, sizes, sizes)
    finally:
        kernels.call("delete", graph)
    with pytest.raises(TypeError, match=r"^num_values must be .* int64"):
        kernels.TableTask().set(num_values=sizes)
