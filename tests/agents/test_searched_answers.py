"""Answers of the program search in the place of a predictor: in compiled and mapped code, each puzzle searched once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import search
from jaxarc.agents import predictor as answers
from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.predictor import Puzzle
from jaxarc.config import AgentConfig, AnswerConfig, CloningConfig, NetworkConfig, ScheduleConfig

SIDE = 3
CONFIG = TrainConfig(
    AgentConfig(), NetworkConfig(), ScheduleConfig(), AnswerConfig("searched"), CloningConfig(), num_updates=1
)
SHOWN = [[[1, 0, 2]], [[0, 3, 3], [1, 0, 0]]]
ASKED = [[6, 0, 7], [0, 8, 8]]


def on_canvas(grid):
    grid = np.array(grid, np.int8)
    return np.pad(grid, [(0, SIDE - side) for side in grid.shape], constant_values=-1)


def mirrored(grid):
    return np.array(grid)[:, ::-1]


def puzzle_of(asked, num_shown=2):
    """A batch of one, with a slot that holds no demonstration."""
    slots = [*SHOWN[:num_shown], *[np.zeros((0, 0), np.int8)] * (3 - num_shown)]
    outputs = [mirrored(grid) for grid in slots]
    canvases = [jnp.array([[on_canvas(grid) for grid in grids]]) for grids in (slots, outputs)]
    return Puzzle(*canvases, jnp.array([[True] * num_shown + [False] * (3 - num_shown)]), jnp.array([on_canvas(asked)]))


@pytest.fixture
def predictor(monkeypatch):
    monkeypatch.setattr(answers, "_answers", {})
    state = answers.PredictorState.create(jax.random.key(0), CONFIG)
    assert jax.tree.leaves(state) == []  # nothing of it is trained, split or saved
    return state.predictor


def test_the_answer_is_searched_in_compiled_code(predictor):
    found = jax.jit(predictor.predict)(puzzle_of(ASKED))
    np.testing.assert_array_equal(found, [on_canvas(mirrored(ASKED))])


def test_equal_puzzles_of_a_mapped_batch_are_searched_once(predictor, monkeypatch):
    asked = []
    search_all = search.search_all
    monkeypatch.setattr(search, "search_all", lambda some, *rest: asked.extend(some) or search_all(some, *rest))
    other = [[4, 5]]
    batch = jax.tree.map(lambda *parts: jnp.stack(parts), *map(puzzle_of, (ASKED, other, ASKED)))
    found = jax.vmap(predictor.predict)(batch)
    np.testing.assert_array_equal(found[:, 0], [on_canvas(mirrored(grid)) for grid in (ASKED, other, ASKED)])
    assert len(asked) == 2
