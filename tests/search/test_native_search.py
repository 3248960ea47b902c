"""The library makes the states that the words in NumPy make, one by one, and the answers that it always made."""

import ctypes
import json
import math
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from jaxarc.config import SearchConfig
from jaxarc.native.library import FLAGS, SEARCH_SOURCES, NativeLibraryError, find_compiler, load_library
from jaxarc.search import Question, search_all, solve
from jaxarc.search.features import FEATURES, cell_feature
from jaxarc.search.graph import StateGraph
from jaxarc.search.images import images_of
from jaxarc.search.interpreter import apply, state_of
from jaxarc.search.lists import LENGTH
from jaxarc.search.search_library import TableTask, call, numbered_values, search_library
from jaxarc.search.words import NEW_ALONE, vocabulary

FRAME = 12
WORDS = vocabulary(range(10), range(10), [(2, 3)], [(9, 10)])
LIST_WORDS = [word for word in WORDS if word.makes_list(True) is not None and word.makes_list(False) is None]
SPLITS = [word for word in WORDS if word.name == "split"]
IMAGE_WORDS = [word for word in WORDS if word not in LIST_WORDS and word.name != "split"]


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


def described(images, index):
    box = [int(side[index]) for side in (images.row, images.column, images.height, images.width)]
    return *box, images.grid(index).tobytes()


def made_in_numpy(words, inputs, frame, most):
    """Return program, cost and images of all states that are one image for each input."""
    known, levels, found = set(), {}, []

    def add(states, is_list, program, cost):
        images = [[described(one.images, number) if number >= 0 else -1 for number in one.numbers] for one in states]
        key = is_list, tuple((*row, *[-1] * (LENGTH - len(row))) if is_list else row[0] for row in images)
        if key not in known:
            known.add(key)
            levels.setdefault((cost, is_list), []).append((states, program))
            if not is_list:
                found.append((" > ".join(map(str, program)), cost, [row[0] for row in images]))

    def expand(word, is_list, level, cost):
        for states, program in level:
            made = [apply(word, state) for state in states]
            if any(len(one.numbers) == 0 or one.numbers[0] < 0 for one in made):
                continue
            are_lists = word.makes_list(is_list)
            are_two = any(len(one.numbers) > 1 and one.numbers[1] >= 0 for one in made)
            if not are_lists or are_two or word in NEW_ALONE:
                add(made, are_lists and are_two, (*program, word), cost)

    add([state_of(images_of([grid], frame)) for grid in inputs], False, (), 0)
    for cost in range(1, most + 1):
        for target, makes_lists in ((cost - 1, True), (cost, False)):
            for source in range(target):
                for is_list in (False, True):
                    for word in words:
                        if source + word.cost == target and word.makes_list(is_list) is makes_lists:
                            expand(word, is_list, [*levels.get((source, is_list), [])], target)
    return found


def made_in_cpp(words, inputs, frame, most):
    graph = StateGraph(inputs, frame, words, 10**6)
    graph.expand(most, float("inf"))
    found = []
    for state, numbers, cost in zip(*graph.image_states, strict=True):
        images = graph.images(numbers)
        program = " > ".join(map(str, graph.program(int(state))))
        found.append((program, int(cost), [described(images, index) for index in range(len(inputs))]))
    return found


def check(words, inputs, frame=FRAME, most=4):
    expected, found = (made(words, inputs, frame, most) for made in (made_in_numpy, made_in_cpp))
    assert [row[:2] for row in found] == [row[:2] for row in expected], [str(word) for word in words]
    for one, other in zip(found, expected, strict=True):
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
    words = [word for word in WORDS if random.random() < 0.1]
    check(words, [random_grid(random, 6) for _ in range(3)], frame=8)


def test_a_grid_of_one_cell_and_one_of_the_largest_size_are_like_any_other():
    words = [*IMAGE_WORDS[::3], *SPLITS]
    check(words, [np.zeros((1, 1), np.uint8)], frame=3)
    check(words[::4], [np.tile(random_grid(np.random.default_rng(4)), (30, 30))[:30, :30]], frame=30)


@pytest.mark.parametrize("side", [1, 3, 6, 12, 30])
def test_features_of_cells_are_the_same(side):
    random = np.random.default_rng(side)
    for _ in range(8):
        images = images_of([random_grid(random, side) for _ in range(3)], max(side, 3))
        graph = StateGraph([images.grid(0)], images.frame, [], 1)
        rows = graph.features(graph.add(images))
        for name, row in zip(FEATURES, rows, strict=True):
            expected = cell_feature(images, name).cells[images.inside]
            np.testing.assert_array_equal(row, expected, f"{name} {images.grid(0).tolist()}")


def test_sources_that_say_the_same_are_kept_once():
    values = np.array([[0, 5, 5, 3], [1, 9, 9, 4], [1, 9, 9, 4], [0, 2, 2, 1]], np.uint8)
    codes, num_values, are_new = numbered_values(values, np.array([True, False, True, False]))
    assert codes.tolist() == [[0, 2, 2, 1]] * 4
    assert num_values.tolist() == [3] * 4
    assert are_new.tolist() == [True, True, True, False]


def tables_in_numpy(task, most):
    """Return the tables of one or two sources that no cell contradicts, and those that copy where some row needs it."""
    keys = [(a,) for a in range(len(task["codes"]))]
    keys += [(a, b) for a in range(len(keys)) for b in range(a + 1, len(keys))]
    found = {}
    for chosen in keys:
        rows = [tuple(cell) for cell in task["codes"][list(chosen)].T.tolist()]
        several = {row for row in rows if len({c for r, c in zip(rows, task["colors"], strict=True) if r == row}) > 1}
        if len(set(rows)) < 2 or math.prod(task["num_values"][list(chosen)]) > most:
            continue
        if not several:
            found[(*chosen, -1, -1, -1)[:4], -1] = True
        for copied, values in enumerate(task["values"] if several else ()):
            is_right = (values == task["colors"]).tolist()
            if all(right for row, right in zip(rows, is_right, strict=True) if row in several):
                found[(*chosen, -1, -1, -1)[:4], copied] = True
    return set(found)


@pytest.mark.parametrize("seed", range(20))
def test_tables_are_those_that_no_cell_contradicts(seed):
    random = np.random.default_rng(seed)
    values = random.integers(0, random.choice([2, 4]), (6, 9)).astype(np.uint8)
    colors = values[random.integers(6)] if seed % 2 else np.where(values[0] == 0, values[1], values[2])
    codes, num_values, _ = numbered_values(values, np.ones(6, np.bool_))
    task = {"values": values, "codes": codes, "colors": colors, "num_values": num_values}
    tables = TableTask()
    tables.set(**task, asked_codes=codes, costs=np.ones(6, np.int64), pairs=np.zeros(9, np.uint8), num_sources=6)
    tables.set(counts=np.ones(9, np.int64), have_colors=np.ones(6, np.bool_), count=9, num_asked=9, most_rows=12)
    tables.set(keeps_unknown=True, rows_of_one_cost=4)
    sample = np.stack([pair.ravel() for pair in np.indices((9, 9))])
    found = {(tuple(row[:4]), row[4]) for row in tables.right_tables(sample, 9.0).tolist() if row[2] < 0}
    assert found == tables_in_numpy(task, most=12)


def recolored(grid):
    return np.where(grid == 0, 4, np.where(grid == 1, grid[::-1], 7))


def layered(grid):
    return np.where(grid != 0, grid, np.where(grid[:, ::-1] != 0, 3, 0))


def noisy(grid):
    return np.where(grid == grid.max(), 0, grid.T[: grid.shape[0], : grid.shape[1]]) if grid.sum() % 2 else grid


@pytest.mark.parametrize("rule", [recolored, layered, noisy])
def test_answers_are_those_that_were_kept(rule):
    random = np.random.default_rng(5)
    *shown, asked = (random.integers(0, 3, (5, 5)) for _ in range(4))
    result = solve([(grid, rule(grid)) for grid in shown], asked, SearchConfig(max_cost=3, answers=5, seconds=100))
    kept = json.loads((Path(__file__).parent / "answers.json").read_text())[rule.__name__]
    assert [result.num_states, result.num_applied] == [kept["states"], kept["applied"]]
    assert [[str(one.program), one.cost, list(one.fits)] for one in result.answers] == kept["answers"]


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
    search_library.cache_clear()
    yield tmp_path / "calls"
    search_library.cache_clear()


ROWS = [np.array([row]) for row in ([1, 2, 0], [3, 4, 4], [5, 6, 7])]
TURN = Question("turn", 0, tuple((row, row[:, ::-1]) for row in ROWS[:2]), ROWS[2])


def test_a_first_search_is_as_good_as_any_other(slow_compiler):
    found = solve(TURN.train, TURN.test_input, SearchConfig(max_cost=2, seconds=1.5))
    assert slow_compiler.read_text() == f"{os.getpid()}\n"
    assert not found.is_cut
    assert found.answers[0].answer.tolist() == [[7, 6, 5]]
    search_library.cache_clear()
    again = solve(TURN.train, TURN.test_input, SearchConfig(max_cost=2, seconds=1.5))
    assert again.num_states == found.num_states > 1


def test_a_budget_of_minutes_and_processes_begin_after_the_build(slow_compiler):
    config = SearchConfig(max_cost=2)
    ((_, alone),) = search_all([TURN], config, minutes=1.5 / 60)
    assert alone.answers[0].answer.tolist() == [[7, 6, 5]]
    slow_compiler.with_name("cache").rename(slow_compiler.with_name("other"))
    search_library.cache_clear()
    found = list(search_all([TURN, TURN], config, processes=2))
    assert [one.answers[0].answer.tolist() for _, one in found] == [[[7, 6, 5]]] * 2
    assert slow_compiler.read_text() == f"{os.getpid()}\n" * 2


@pytest.mark.parametrize("processes", [1, 2])
def test_without_a_library_the_search_says_what_to_do(processes, slow_compiler):
    slow_compiler.with_name("c++").write_text(f"#!/bin/sh\necho $PPID >> {slow_compiler}\nexit 1\n")
    with pytest.raises(NativeLibraryError, match=r"c\+\+ fails.*wheel"):
        next(search_all([TURN, TURN], SearchConfig(max_cost=2), processes))
    assert slow_compiler.read_text() == f"{os.getpid()}\n"


def test_sources_compile_without_a_warning():
    strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command = [*find_compiler(), *(flag for flag in FLAGS if flag != "-w"), *strict, str(SEARCH_SOURCES / "search.cc")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_table_costs_its_sources_its_rows_and_what_it_does_not_foresee():
    task = TableTask()
    task.set(
        codes=np.array([[0, 0, 1, 1], [0, 1, 1, 2]], np.uint8), num_values=np.array([2, 3]), costs=np.array([2, 5])
    )
    task.set(pairs=np.array([0, 1, 0, 1], np.uint8), count=4, asked_codes=np.array([[0, 1], [0, 0]], np.uint8))
    task.set(num_asked=2, keeps_unknown=True, unknown_cost=10, unforeseen_cost=10, rows_of_one_cost=4)
    rows, unforeseen, unknown = 4 // 4, 2 * 10, 10 + 10 // 2  # each row of one demonstration; one of two that are asked
    assert task.cost([0, 1]) == 2 + 5 + 2 + rows + unforeseen + unknown
    assert task.cost([0]) == 2  # both demonstrations have both rows
    task.set(keeps_unknown=False)
    assert task.cost([0, 1]) == -1


def test_arrays_of_another_dtype_are_refused():
    numbers = np.zeros(3, np.int64)
    sizes = np.zeros(3, np.int32)
    graph = call("new", FRAME, 1)
    try:
        for wrong in (numbers.astype(np.int32), np.zeros((3, 2), np.int64)[:, 0]):
            with pytest.raises(ctypes.ArgumentError, match="argument 3"):
                call("sizes", graph, 3, wrong, sizes, sizes)
    finally:
        call("delete", graph)
    with pytest.raises(TypeError, match=r"^num_values must be .* int64"):
        TableTask().set(num_values=sizes)
