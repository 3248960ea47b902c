"""Where the color of an answer's cell may come from."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents.predictor import UNKNOWN, color_tables, enclosed_cells, line_readings, symmetric_copies
from jaxarc.datasets import sample_task_set
from jaxarc.tasks.procedural import procedural_tasks


def on_canvas(grid, height, width):
    """Put a grid at the top left; what does not fit is cut off."""
    canvas = np.full((height, width), -1, np.int8)
    rows, columns = min(height, grid.shape[0]), min(width, grid.shape[1])
    canvas[:rows, :columns] = grid[:rows, :columns]
    return canvas


def random_grids(height, width, highest=9):
    """One grid of each size that fits."""
    random = np.random.default_rng(0)
    return [
        random.integers(0, highest + 1, size).astype(np.int8)
        for size in itertools.product(range(1, height + 1), range(1, width + 1))
    ]


@pytest.mark.parametrize(("height", "width"), [(4, 4), (2, 5), (5, 3)])
def test_copies_are_turned_and_mirrored_within_the_size_of_their_grid(height, width):
    grids = random_grids(height, width)
    copies = jax.jit(symmetric_copies)(jnp.asarray([on_canvas(grid, height, width) for grid in grids]))
    for grid, found in zip(grids, copies, strict=True):
        flips = [grid, grid[:, ::-1], grid[::-1], grid[::-1, ::-1]]
        expected = [on_canvas(copy, height, width) for copy in (*flips, *(copy.T for copy in flips))]
        np.testing.assert_array_equal(found, expected)
        if height == width:  # among them every turn
            for turns in range(4):
                assert any(np.array_equal(on_canvas(np.rot90(grid, turns), height, width), copy) for copy in found)


def readings_of(line):
    """The four readings of one line, cell by cell."""
    colored = [color for color in line if color > 0]
    nth = lambda colors, n: colors[n] if n < len(colors) else 0
    return [
        [nth(colors, n) for n in order]
        for colors in (colored, colored[::-1])
        for order in (range(len(line)), range(len(line))[::-1])
    ]


@pytest.mark.parametrize(("height", "width"), [(4, 4), (2, 5)])
def test_readings_of_lines_agree_with_reading_cell_by_cell(height, width):
    grids = random_grids(height, width, highest=2)
    found = jax.jit(line_readings)(jnp.asarray([on_canvas(grid, height, width) for grid in grids]))
    for grid, readings in zip(grids, found, strict=True):
        by_column = np.array([readings_of(column) for column in grid.T]).transpose(1, 2, 0)
        by_row = np.array([readings_of(row) for row in grid]).transpose(1, 0, 2)
        for reading, expected in zip(readings, [*by_column, *by_row], strict=True):
            np.testing.assert_array_equal(reading, on_canvas(expected, height, width))


def test_one_reading_tells_how_things_fall_in_every_direction():
    """On tasks of gravity: the same reading explains all pairs of a task, and each direction has its own."""
    tasks = sample_task_set(procedural_tasks("gravity", (6, 6), side=(3, 6)), jax.random.key(0), 24)
    explaining = []
    for task in tasks:
        inputs = jnp.asarray([on_canvas(source, 6, 6) for source, _ in task.pairs])
        outputs = np.array([on_canvas(output, 6, 6) for _, output in task.pairs])
        explains = (line_readings(inputs) == outputs[:, None]).all(axis=(0, 2, 3))
        assert explains.any()
        explaining += np.flatnonzero(explains).tolist()
    assert set(explaining) >= {0, 3, 4, 7}  # up, down, left, right


def test_color_tables_tell_what_each_color_always_becomes_in_what_is_shown():
    random = np.random.default_rng(3)
    sizes = [[(2, 3), (3, 3), (3, 2)], [(1, 1), (3, 3), (2, 2)]]
    draw = lambda size: on_canvas(random.integers(0, 10, size), 3, 3)
    inputs = np.array([[draw(size) for size in row] for row in sizes])
    outputs = np.array([[draw(size[::-1]) for size in row] for row in sizes])
    shown = np.array([[True, True, False], [True, False, True]])
    tables = jax.jit(color_tables)(jnp.asarray(inputs), jnp.asarray(outputs), jnp.asarray(shown))
    for task in range(2):
        becomes = {(table, color): set() for table in range(2) for color in range(10)}
        for slot in np.flatnonzero(shown[task]):
            for before, after in zip(inputs[task, slot].ravel(), outputs[task, slot].ravel(), strict=True):
                if min(before, after) >= 0:
                    becomes[0, before].add(after)
                    becomes[1, before] |= {after} - {before}
        expected = {place: found.pop() if len(found) == 1 else UNKNOWN for place, found in becomes.items()}
        for (table, color), color_after in expected.items():
            assert tables[task, table, color] == color_after
        assert len(set(expected.values())) > 1  # some known, some not


def reaches_the_edge(grid, row, column):
    """Whether a path over black cells leads from a black cell out of the grid."""
    seen, front = set(), [(row, column)]
    while front:
        r, c = front.pop()
        if not (0 <= r < grid.shape[0] and 0 <= c < grid.shape[1]):
            return True
        if grid[r, c] == 0 and (r, c) not in seen:
            seen.add((r, c))
            front += [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]
    return False


def test_enclosed_cells_are_those_from_which_no_way_over_black_leads_out():
    random = np.random.default_rng(4)
    grids = [(random.random(size) < 0.5).astype(np.int8) for size in [(5, 6), (6, 6), (6, 4), (3, 3)] * 10]
    grids.append(
        np.array([[1, 1, 1, 1, 1], [1, 0, 0, 0, 1], [1, 1, 1, 0, 1], [0, 0, 1, 0, 1], [1, 0, 1, 0, 0]], np.int8)
    )
    grids.append(np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 0, 1, 1], [1, 1, 1, 0]], np.int8))
    found = np.asarray(jax.jit(enclosed_cells)(jnp.asarray([on_canvas(grid, 6, 6) for grid in grids])))
    assert found.any()
    for grid, marks in zip(grids, found, strict=True):
        for row, column in np.ndindex(6, 6):
            inside = row < grid.shape[0] and column < grid.shape[1] and grid[row, column] == 0
            assert marks[row, column] == (inside and not reaches_the_edge(grid, row, column))
