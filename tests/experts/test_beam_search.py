"""Beam search, played in the environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc import constants as c
from jaxarc.datasets import TaskSet
from jaxarc.experts.beam import beam_search
from jaxarc.tasks import RawTask

SHAPE = (5, 6)
DEPTH = 12


def make_world(inputs, outputs, selection_format="bbox", **rules):
    pairs = zip(inputs, outputs, strict=True)
    tasks = TaskSet("pairs", tuple(RawTask(f"task-{i}", (pair,), (pair,)) for i, pair in enumerate(pairs)))
    return jaxarc.make(
        tasks,
        selection_format=selection_format,
        max_grid_height=SHAPE[0],
        max_grid_width=SHAPE[1],
        invalid_action_policy="noop",
        history_enabled=False,
        **rules,
    )


def drawn_pairs(count):
    """Inputs and outputs of different sizes: on one color, some boxes of others."""
    draw = np.random.default_rng(3)

    def grid():
        grid = np.zeros((draw.integers(3, SHAPE[0] + 1), draw.integers(3, SHAPE[1] + 1)), int)
        for _ in range(3):
            (top, left), color = draw.integers(0, 3, 2), draw.integers(1, 5)
            grid[top : top + draw.integers(1, 4), left : left + draw.integers(1, 4)] = color
        return grid

    return [grid() for _ in range(count)], [grid() for _ in range(count)]


class Search:
    """A search compiled for all pairs at once, and its solutions."""

    def __init__(self, inputs, outputs, selection_format="bbox", width=4):
        self.env, self.params = make_world(inputs, outputs, selection_format)
        keys = jax.random.split(jax.random.key(0), len(inputs))
        reset = jax.jit(jax.vmap(self.env.reset, (0, None, 0)))
        self.states, _ = reset(keys, self.params, jnp.arange(len(inputs)))
        self._search = jax.jit(
            jax.vmap(
                lambda key, state: beam_search(key, state, self.params, width=width, depth=DEPTH, num_candidates=32)
            )
        )
        self.solutions = self.search(1)

    def search(self, seed):
        return self._search(jax.random.split(jax.random.key(seed), self.states.counts.shape[0]), self.states)

    def replayed(self):
        """The states after the actions of each solution."""

        def play(state, actions):
            return jax.lax.scan(lambda s, a: (self.env.step(s, a, self.params)[0], None), state, actions)[0]

        return jax.jit(jax.vmap(play))(self.states, self.solutions.actions)


@pytest.fixture(scope="module")
def search():
    inputs, outputs = drawn_pairs(5)
    return Search([*inputs, outputs[0]], [*outputs, outputs[0]])


def test_the_solutions_solve_when_they_are_played(search):
    after, solutions = search.replayed(), search.solutions
    assert solutions.is_solved.all()
    assert after.is_solved.all()
    assert after.step_count.tolist() == solutions.num_actions.tolist()
    assert (solutions.num_actions <= DEPTH + 1).all()
    operations = np.asarray(solutions.actions.operation)
    for row, count in zip(operations, solutions.num_actions.tolist(), strict=True):
        assert (row[: count - 1] != c.SUBMIT).all()
        assert (row[count - 1 :] == c.SUBMIT).all()


def test_what_is_solved_already_is_submitted(search):
    assert search.solutions.num_actions[-1] == 1
    assert search.solutions.similarity[-1] == 1


def test_the_same_key_finds_the_same(search):
    for first, again in zip(jax.tree.leaves(search.solutions), jax.tree.leaves(search.search(1)), strict=True):
        np.testing.assert_array_equal(first, again)
    other = search.search(2)
    assert any((first != x).any() for first, x in zip(*map(jax.tree.leaves, (search.solutions, other)), strict=True))


def test_masks_take_one_fill_for_each_color():
    target = np.array([[1, 2, 1, 2], [2, 3, 2, 1], [1, 2, 3, 3]])
    search = Search([np.zeros((3, 4), int)], [target], "mask", width=2)
    assert search.solutions.num_actions.tolist() == [4]
    assert search.replayed().is_solved.all()


def test_settings_that_cannot_be_are_refused():
    env, params = make_world(*drawn_pairs(1))
    state, _ = env.reset(jax.random.key(0), params)
    with pytest.raises(ValueError, match="width of a beam search must be at least 1, got 0"):
        beam_search(jax.random.key(0), state, params, width=0)
    with pytest.raises(ValueError, match="number of candidates must be at least"):
        beam_search(jax.random.key(0), state, params, num_candidates=5)
    env, params = make_world(*drawn_pairs(1), allowed_operations=tuple(range(10)))
    with pytest.raises(ValueError, match="ends with a submit; allow operation 34"):
        beam_search(jax.random.key(0), env.reset(jax.random.key(0), params)[0], params)
