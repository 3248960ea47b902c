"""The C++ graph makes the same states as the NumPy graph, word by word."""

import numpy as np
import pytest

from jaxarc.search.graph import StateGraph
from jaxarc.search.kernels import search_library
from jaxarc.search.native import NativeGraph
from jaxarc.search.words import vocabulary

FRAME = 12
WORDS = vocabulary(range(10), range(10), [(2, 3)], [(9, 10)])
LIST_WORDS = [word for word in WORDS if word.makes_list(True) is not None and word.makes_list(False) is None]
SPLITS = [word for word in WORDS if word.name == "split"]
IMAGE_WORDS = [word for word in WORDS if word not in LIST_WORDS and word.name != "split"]


@pytest.fixture(autouse=True)
def library():
    if search_library() is None:
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
    limits = frame, words, 10**6, 10**6, float("inf")
    expected, native = made(StateGraph(inputs, *limits)), made(NativeGraph(inputs, *limits))
    assert [row[:2] for row in native] == [row[:2] for row in expected], [str(word) for word in words]
    for one, other in zip(native, expected, strict=True):
        assert one == other, (one[0], [grid.tolist() for grid in inputs])
