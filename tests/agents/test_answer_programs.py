"""Programs that explain demonstrations, and the answers that they give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents.answers import Puzzle
from jaxarc.agents.answers.programs import search_answers
from jaxarc.parallel import program_memory

SIDE = 6
search = jax.jit(search_answers)


def on_canvas(grid):
    canvas = np.full((SIDE, SIDE), -1, np.int8)
    canvas[: grid.shape[0], : grid.shape[1]] = grid[:SIDE, :SIDE]
    return canvas


def puzzle_of(rule, sources, seed=0):
    """A puzzle of two demonstrations and a hidden one, with a slot that must not count."""
    inputs = [on_canvas(source) for source in sources]
    outputs = [on_canvas(rule(source)) for source in sources]
    noise = np.random.default_rng(seed).integers(0, 10, (SIDE, SIDE)).astype(np.int8)
    shown = jnp.array([[True, False, True]])
    as_batch = lambda grids: jnp.asarray(np.stack([grids[0], noise, grids[1]])[None])
    return Puzzle(as_batch(inputs), as_batch(outputs), shown, jnp.asarray(inputs[2][None])), outputs[2]


def sources_of(*sizes, highest=9):
    random = np.random.default_rng(1)
    return [random.integers(0, highest + 1, size).astype(np.int8) for size in sizes]


def crop(grid):
    rows, columns = (np.flatnonzero((grid > 0).any(axis=axis)) for axis in (1, 0))
    return grid[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def swap(grid):
    return np.where(grid == 3, 7, np.where(grid == 0, 2, grid)).astype(np.int8)


RULES = {
    "turned": (lambda grid: np.rot90(grid), [(3, 4), (2, 5), (4, 3)]),
    "mirrored": (lambda grid: grid[::-1], [(3, 4), (2, 5), (4, 3)]),
    "cut out": (lambda grid: crop(np.pad(grid, 1)), [(3, 4), (2, 3), (4, 3)]),
    "upper half": (lambda grid: grid[: (len(grid) + 1) // 2], [(3, 4), (2, 5), (5, 3)]),
    "lower half": (lambda grid: grid[len(grid) // 2 :], [(3, 4), (2, 5), (5, 3)]),
    "left half": (lambda grid: grid[:, : (grid.shape[1] + 1) // 2], [(3, 4), (2, 5), (4, 3)]),
    "right half": (lambda grid: grid[:, grid.shape[1] // 2 :], [(3, 4), (2, 5), (4, 3)]),
    "twice as large": (lambda grid: np.kron(grid, np.ones((2, 2), np.int8)), [(2, 3), (3, 1), (3, 2)]),
    "three times": (lambda grid: np.tile(grid, (3, 3)), [(2, 2), (2, 1), (1, 2)]),
}


@pytest.mark.parametrize("recolors", [False, True], ids=["as it is", "recolored"])
@pytest.mark.parametrize("name", RULES)
def test_a_program_that_explains_the_demonstrations_gives_the_first_answer(name, recolors):
    rule, sizes = RULES[name]
    whole = (lambda grid: swap(rule(grid))) if recolors else rule
    puzzle, answer = puzzle_of(whole, sources_of(*sizes, highest=3))
    np.testing.assert_array_equal(search(puzzle)[0, 0], answer)


def test_what_is_not_shown_changes_nothing():
    rule, sizes = RULES["turned"]
    first, other = (puzzle_of(rule, sources_of(*sizes), seed)[0] for seed in (0, 1))
    assert (first.inputs != other.inputs).any()
    np.testing.assert_array_equal(search(first), search(other))


def test_the_program_that_is_nearly_right_comes_before_those_that_are_not():
    """No program keeps one odd cell; the input as it is, is closest."""

    def odd(grid):
        changed = grid.copy()
        changed[0, 0] = 9 - grid[0, 0]
        return changed

    puzzle, _ = puzzle_of(odd, sources_of((4, 5), (5, 4), (5, 5)))
    np.testing.assert_array_equal(search(puzzle)[0, 0], puzzle.grid[0])


def test_the_search_takes_less_than_a_megabyte_for_a_task():
    batch, slots, side = 4, 10, 30
    grids = jax.ShapeDtypeStruct((batch, slots, side, side), jnp.int8)
    puzzles = Puzzle(
        grids,
        grids,
        jax.ShapeDtypeStruct((batch, slots), jnp.bool_),
        jax.ShapeDtypeStruct((batch, side, side), jnp.int8),
    )
    one = lambda puzzle: search_answers(jax.tree.map(lambda x: x[None], puzzle))
    program = jax.jit(jax.vmap(one)).lower(puzzles).compile()
    assert program_memory(program) / batch < 1e6
