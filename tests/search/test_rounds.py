"""A budget of time: rounds of equal shares, whatever the order of a file, and searches that go on where they ended."""

import os
import signal
import time
import weakref
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import pytest

from jaxarc.config import SearchConfig
from jaxarc.search import Question, rounds, search_all
from jaxarc.search.graph import StateGraph
from jaxarc.search.solve import TaskSearch, nothing_found, solve
from jaxarc.search.words import vocabulary

MINUTES = 2.0


class Clock:
    """A fake clock, which only searches move."""

    now = 0.0

    def __call__(self):
        return self.now


class BurningSearch:
    """A search that takes all the time that it gets, and a little more; easy ones need a second."""

    clock: Clock
    overshoot = 0.01
    size = 0

    def __init__(self, train, test_input, config):
        self.need = 1.0 if test_input[0, 0] == 1 else np.inf
        self.given = (train, test_input)
        self.seconds = 0.0
        self.num_bytes = self.size

    @property
    def is_done(self):
        return self.seconds >= self.need

    def go_on(self, seconds):
        used = min(seconds + self.overshoot, self.need - self.seconds)
        self.clock.now += used
        self.seconds += used
        return replace(nothing_found(*self.given, None), seconds=self.seconds)


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    monkeypatch.setattr(time, "monotonic", fake)
    monkeypatch.setattr(BurningSearch, "clock", fake, raising=False)
    monkeypatch.setattr(rounds, "TaskSearch", BurningSearch)
    return fake


def questions_of(kinds):
    """Questions with one demonstration; 1 is an easy one."""
    grid = np.ones((1, 1), np.int8)
    return [Question(f"{place}", 0, ((grid, grid),), np.array([[kind, place]])) for place, kind in enumerate(kinds)]


def seconds_of(questions, megabytes=1000):
    config = SearchConfig(seconds=1000.0, megabytes=megabytes)
    return {one.task_id: result.seconds for one, result in search_all(questions, config, 1, MINUTES)}


def test_each_question_gets_an_equal_share_at_least_and_what_easy_ones_leave(clock):
    spent = seconds_of(questions_of([2, 1, 1, 2, 1, 2]))
    assert clock.now == pytest.approx(60 * MINUTES, abs=1)
    assert [spent[name] for name in "124"] == [1.0, 1.0, 1.0]
    hard = [spent[name] for name in "035"]
    assert hard == pytest.approx([39, 39, 39], abs=0.5)  # an equal share is 20


def test_no_question_gets_less_than_an_equal_share_where_none_is_easy(clock):
    spent = seconds_of(questions_of([2] * 30))
    assert min(spent.values()) >= 60 * MINUTES / 30 - 0.1
    assert clock.now <= 60 * MINUTES + 1


def test_the_order_of_a_file_changes_nothing(clock):
    questions = questions_of([2, 1, 2, 2, 1, 1, 2, 2])
    first = seconds_of(questions)
    order = np.random.default_rng(0).permutation(len(questions))
    clock.now = 0.0
    assert seconds_of([questions[place] for place in order]) == pytest.approx(first)


GB = 10**9


@pytest.mark.parametrize(("free", "share"), [([None], 0.7), ([42 * GB], 0.99), ([42 * GB, 10 * GB], 0.7)])
def test_what_no_memory_holds_gets_the_time_again_that_it_has_had(clock, monkeypatch, free, share):
    """Half of 42 GB holds all twenty; where other programs leave less than a quarter of it, none is held."""
    monkeypatch.setattr(BurningSearch, "size", GB)
    answers = chain(free, repeat(free[-1]))
    monkeypatch.setattr(rounds, "host_memory", lambda: next(answers))
    spent = seconds_of(questions_of([2] * 20), megabytes=100)
    assert min(spent.values()) >= 60 * MINUTES / 20 * share
    assert sum(spent.values()) < 60 * MINUTES * (share + 0.1)
    assert clock.now <= 60 * MINUTES + 1


def noise(sides, colors, seed=0):
    return np.random.default_rng(seed).integers(0, colors, (2, *sides))


def test_a_search_in_parts_finds_what_one_at_once_finds(monkeypatch):
    """Parts from 20 ms of CPU time on cut it amid functions, tables and rules."""
    monkeypatch.setattr(time, "monotonic", time.process_time)
    grids = [np.random.default_rng(seed).choice([0, 0, 0, 1, 2], (8, 9)).astype(np.int8) for seed in range(4)]
    train = [(grid, np.where(grid == 0, np.roll(grid, 3, 1), 3)) for grid in grids[:3]]
    config = SearchConfig(max_cost=3, max_states=500, seconds=1000)
    once = solve(train, grids[3], config)
    parts = TaskSearch(train, grids[3], config)
    result, count = parts.go_on(0.0), 1
    while not parts.is_done:
        result, count = parts.go_on(0.02 * 1.5**count), count + 1
    assert count > 3
    assert result.num_states == once.num_states
    assert {str(one.program) for one in result.found} >= {str(one.program) for one in once.found if one.fits_all}
    assert [one.answer.tolist() for one in result.answers] == [one.answer.tolist() for one in once.answers]
    assert [str(one.program) for one in result.answers] == [str(one.program) for one in once.answers]


def test_a_search_that_is_dropped_gives_its_memory_back_at_once():
    grid = np.array([[1, 2, 0]])
    search = TaskSearch([(grid, grid + 1)], grid, SearchConfig(max_cost=12))
    search.go_on(0.0)
    graphs = [weakref.ref(one.graph) for one in search._views.values()]
    assert not search.is_done
    del search
    assert [graph() for graph in graphs] == [None] * len(graphs) != []


def test_a_graph_goes_on_where_its_deadline_cut_it():
    inputs = [np.random.default_rng(seed).integers(0, 3, (6, 6)) for seed in range(3)]
    words = vocabulary([0, 1, 2], [0, 1, 2], (), ())
    once = StateGraph(inputs, 6, words, 10**6)
    once.expand(4, np.inf)
    parts = StateGraph(inputs, 6, words, 10**6)
    goes = 0
    while parts.cost < 4:
        parts.expand(4, time.monotonic() + 0.001)
        goes += parts.is_late
    assert goes > 5
    assert [len(parts), parts.num_applied] == [len(once), once.num_applied]
    for one, other in zip(parts.image_states, once.image_states, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("colors", [2, 10])
def test_a_limit_of_seconds_holds_on_the_largest_tasks(colors, monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)  # other programs take time of this one
    train = [tuple(noise((30, 30), colors, seed)) for seed in range(30)]
    began = time.process_time()
    result = solve(train, noise((30, 30), colors, 99)[0], SearchConfig(seconds=0.5))
    assert time.process_time() - began < 1.3
    assert result.is_cut
    assert result.answers


def die_or_search(train, test_input, config):
    if np.shape(test_input) == (2, 2):
        os.kill(os.getpid(), signal.SIGKILL)
    return solve(train, test_input, config)


def test_a_question_whose_process_dies_twice_is_named_and_the_others_are_answered(monkeypatch):
    monkeypatch.setattr(rounds, "solve", die_or_search)
    row = np.array([[1, 2, 0]])
    shown = ((row, row[:, ::-1]), (row + 1, row[:, ::-1] + 1))
    questions = [Question("fine", 0, shown, row + 2), Question("deadly", 0, shown, np.ones((2, 2), int))]
    found = {one.task_id: result for one, result in search_all(questions, SearchConfig(max_cost=2), 2)}
    assert found["deadly"].fault == "the process died (SIGKILL)"
    assert (found["fine"].fault, found["fine"].answers[0].answer.tolist()) == (None, [[2, 4, 3]])
