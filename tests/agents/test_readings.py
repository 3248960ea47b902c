"""Readings of a grid, and what is said of its cells, beside plain loops over grids without padding."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents.readings import enclosed_cells, read

HEIGHT, WIDTH = 5, 7
read_all = jax.jit(jax.vmap(read))
NEAR = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def on_canvas(grid, height, width):
    """Put a grid at the top left; what does not fit is cut off."""
    canvas = np.full((height, width), -1, np.int8)
    rows, columns = min(height, grid.shape[0]), min(width, grid.shape[1])
    canvas[:rows, :columns] = grid[:rows, :columns]
    return canvas


def turned(grid, symmetry):
    """Mirror rows (bit 0) and columns (bit 1), and then swap rows and columns (bit 2)."""
    grid = grid[::-1] if symmetry & 1 else grid
    grid = grid[:, ::-1] if symmetry & 2 else grid
    return grid.T if symmetry & 4 else grid


def cut(grid, mask):
    """The smallest rectangle around some cells; the corner if there are none."""
    rows, columns = np.nonzero(mask) if mask.any() else (np.array([0]), np.array([0]))
    return grid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def nearest(line):
    """The last colored cell before each one, -1 for none."""
    found, last = [], -1
    for cell in line:
        found.append(last)
        last = cell if cell > 0 else last
    return found


def objects(grid, same_color):
    """Sets of touching colored cells."""
    left, found = {tuple(map(int, cell)) for cell in np.argwhere(grid > 0)}, []
    while left:
        front, object_ = [left.pop()], set()
        while front:
            row, column = front.pop()
            object_.add((row, column))
            for down, right in NEAR:
                other = row + down, column + right
                if other in left and (grid[other] == grid[row, column] or not same_color):
                    left.remove(other)
                    front.append(other)
        found.append(object_)
    return found


def mask_of(cells, shape):
    mask = np.zeros(shape, bool)
    for cell in cells:
        mask[cell] = True
    return mask


def by_size(grid, same_color):
    """The cells of the largest objects, of the smallest, and of those of one cell."""
    found = objects(grid, same_color)
    sizes = [len(one) for one in found]
    chosen = [[one for one in found if len(one) == size] for size in (max(sizes), min(sizes), 1)] if found else [[]] * 3
    return [mask_of(itertools.chain(*some), grid.shape) for some in chosen]


def commonest(cells, is_rarest=False):
    """The only color but black that is most, or least, often there; -1 if there is no such one."""
    counts = {int(color): int((cells == color).sum()) for color in np.unique(cells) if color > 0}
    count = (min if is_rarest else max)(counts.values(), default=0)
    found = [color for color in counts if counts[color] == count]
    return found[0] if len(found) == 1 else -1


def expected_readings(grid, height, width):
    """All readings of a grid, in the order of ``read``."""
    canvas = on_canvas(grid, height, width)
    rows, columns = grid.shape
    place = lambda grid: on_canvas(grid, height, width)
    tiled = lambda grid: place(np.tile(grid, (height, width)))
    found = []
    found += [place(turned(grid, symmetry)) for symmetry in range(8)]
    found += [tiled(turned(grid, symmetry)) for symmetry in range(8)]
    around = np.pad(canvas, 2, constant_values=-1)
    for down, right in [*NEAR, (-2, 0), (2, 0), (0, -2), (0, 2)]:
        found.append(around[2 + down : 2 + down + height, 2 + right : 2 + right + width])
    found += [place(canvas.repeat(scale, 0).repeat(scale, 1)) for scale in (2, 3)]
    found += [place(canvas[::scale, ::scale]) for scale in (2, 3)]
    for first_row, first_column in itertools.product((0, 1), (0, 1)):
        band = [turned(grid, 2) if (column + first_column) % 2 else grid for column in range(width)]
        wide = np.concatenate(band, 1)
        found.append(place(np.concatenate([wide[::-1] if (row + first_row) % 2 else wide for row in range(height)])))
    content = cut(grid, grid > 0)
    found += [place(turned(content, symmetry)) for symmetry in range(8)]
    found += [place(content.repeat(scale, 0).repeat(scale, 1)) for scale in (2, 3)]
    # Tiles, and the grid mirrored about the middle of the content, begin where the content does.
    top, left = np.argwhere(grid > 0).min(0) if (grid > 0).any() else (0, 0)
    found.append(tiled(content))
    far = np.pad(canvas, ((2 * height,) * 2, (2 * width,) * 2), constant_values=-1)
    row = 2 * top + content.shape[0] - 1 - np.arange(height) + 2 * height
    column = 2 * left + content.shape[1] - 1 - np.arange(width) + 2 * width
    same_row, same_column = np.arange(height) + 2 * height, np.arange(width) + 2 * width
    found += [far[np.ix_(*both)] for both in ((row, same_column), (same_row, column), (row, column))]
    half, across = rows // 2, columns // 2
    found += [
        place(grid[:half]),
        place(grid[rows - half :]),
        place(grid[:, :across]),
        place(grid[:, columns - across :]),
    ]

    for is_row, is_up in itertools.product((False, True), (False, True)):
        lines = [list(line) for line in (grid if is_row else grid.T)]
        colored = [[cell for cell in line if cell > 0] for line in lines]
        gaps = [[0] * (len(line) - len(some)) for line, some in zip(lines, colored, strict=True)]
        fallen = np.array([some + gap if is_up else gap + some for some, gap in zip(colored, gaps, strict=True)])
        found.append(place(fallen if is_row else fallen.T))
    up = np.array([nearest(line) for line in canvas.T]).T
    down = np.array([nearest(line[::-1])[::-1] for line in canvas.T]).T
    before = np.array([nearest(line) for line in canvas])
    after = np.array([nearest(line[::-1])[::-1] for line in canvas])
    in_column, in_row = np.where(up == down, up, -1), np.where(before == after, before, -1)
    found += [up, down, before, after, in_column, in_row, np.where(in_column > 0, in_column, in_row)]
    found.append(np.where(in_column == in_row, in_column, -1))
    black, colors = np.minimum(canvas, 0), [commonest(grid), commonest(grid, is_rarest=True)]
    found += [black, *(np.where((canvas == color) & (color > 0), canvas, black) for color in colors)]
    found += [np.full_like(canvas, color) for color in colors]
    found.append(np.repeat([[commonest(line)] for line in canvas], width, 1))
    found.append(np.repeat([[commonest(line) for line in canvas.T]], height, 0))
    kept = [np.where(by_size(grid, same)[size], grid, 0) for size in (0, 1) for same in (True, False)]
    found += [*map(place, kept), *(place(cut(one, one > 0)) for one in kept)]
    cells = list(np.ndindex(grid.shape))
    touches = lambda row, column: (grid[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2] > 0).any()
    masks = [[cell for cell in cells if grid[cell] == 0 and not reaches_the_edge(grid, *cell)]]
    masks.append([cell for cell in cells if grid[cell] == 0 and touches(*cell)])
    sizes = [by_size(grid, same)[size] for size in (0, 1, 2) for same in (True, False)]
    marked = [*(mask_of(some, grid.shape) for some in masks), *sizes]
    return [*found, *(place(np.where(mask, 0, -1)) for mask in marked)]


def read_random_grids(highest):
    """Grids of all sizes that fit, sparse ones too, and what is read; all are compiled once."""
    random = np.random.default_rng(0)
    sizes = itertools.product(range(1, HEIGHT + 1), range(1, WIDTH + 1))
    draw = lambda size, share: random.integers(1, highest + 1, size) * (random.random(size) < share)
    grids = [draw(size, share).astype(np.int8) for size in sizes for share in (0.2, 0.6)]
    return grids, read_all(jnp.asarray([on_canvas(grid, HEIGHT, WIDTH) for grid in grids]))


@pytest.mark.parametrize("highest", [2, 5])
def test_readings_agree_with_loops_over_cells(highest):
    grids, found = read_random_grids(highest)
    for grid, colors in zip(grids, np.asarray(found.colors), strict=True):
        expected = expected_readings(grid, HEIGHT, WIDTH)
        assert len(colors) == len(expected)
        for number, (one, wanted) in enumerate(zip(colors, expected, strict=True)):
            np.testing.assert_array_equal(one, wanted, err_msg=f"reading {number} of {grid.tolist()}")


def test_cells_agree_with_loops_over_cells():
    grids, found = read_random_grids(3)
    for grid, cells in zip(grids, np.asarray(found.cells), strict=True):
        masks = [*by_size(grid, True), *by_size(grid, False)]
        for row, column in np.ndindex(HEIGHT, WIDTH):
            around = [
                on_canvas(grid, HEIGHT, WIDTH)[r, c] if 0 <= r < HEIGHT and 0 <= c < WIDTH else -1
                for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
            ]
            is_inside = row < grid.shape[0] and column < grid.shape[1]
            color = grid[row, column] if is_inside else -1
            sides = [sum(one < 0 for one in around), is_inside * sum(one == color for one in around)]
            sides.append(sum(one > 0 for one in around))
            expected = [is_inside, color == 0, color > 0, color == 0 and not reaches_the_edge(grid, row, column)]
            expected += [side / 4 for side in sides]
            expected += [(row + column) % 2, row % 2, column % 2]
            expected += [is_inside and mask[row, column] for mask in masks]
            np.testing.assert_array_equal(cells[row, column], np.array(expected, np.float32))


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
    found = np.asarray(jax.jit(jax.vmap(enclosed_cells))(jnp.asarray([on_canvas(grid, 6, 6) for grid in grids])))
    assert found.any()
    for grid, marks in zip(grids, found, strict=True):
        for row, column in np.ndindex(6, 6):
            inside = row < grid.shape[0] and column < grid.shape[1] and grid[row, column] == 0
            assert marks[row, column] == (inside and not reaches_the_edge(grid, row, column))
