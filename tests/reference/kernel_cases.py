"""Random cases as the kernels take them, what the reference makes of them, and where the two differ."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.envs.canvas import Canvas, CheckedAction, pack_columns, unpack_columns
from jaxarc.envs.pairs import PairTable
from reference.canvas import apply_operation, similarity, start_canvas
from reference.cases import Cases

PAIR_SWITCHES = (35, 36, 37, 38, 40, 41)


def bounds(masks: np.ndarray) -> np.ndarray:
    """Returns the boxes around masks bool[n, H, W], int32[n, 4]; (0, 0, -1, -1) where a mask is empty."""
    rows, columns = masks.any(2), masks.any(1)
    top, left = rows.argmax(1), columns.argmax(1)
    bottom = rows.shape[1] - 1 - rows[:, ::-1].argmax(1)
    right = columns.shape[1] - 1 - columns[:, ::-1].argmax(1)
    box = np.stack([top, left, bottom, right], 1)
    return np.where(masks.any((1, 2))[:, None], box, [0, 0, -1, -1]).astype(np.int32)


def filled(boxes: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Returns the cells of boxes int32[n, 4], bool[n, H, W]."""
    rows, columns = np.arange(shape[0])[None, :, None], np.arange(shape[1])[None, None]
    top, left, bottom, right = (boxes[:, i, None, None] for i in range(4))
    return (rows >= top) & (rows <= bottom) & (columns >= left) & (columns <= right)


def with_boxes(cases: Cases) -> Cases:
    """Returns the cases with the box around each selection in its place."""
    shape = cases.grid.shape[1:]
    return cases._replace(
        selection=filled(bounds(cases.selection), shape), old_selection=filled(bounds(cases.old_selection), shape)
    )


def kernel_arguments(cases: Cases, as_boxes: bool, colors: np.ndarray | None = None) -> tuple[Any, ...]:
    """Returns canvas, command and pair table for a batch of cases.

    Args:
        cases: n of them; an operation of ``PAIR_SWITCHES`` goes to the next case's input and target.
        as_boxes: give selections as boxes, not as masks.
        colors: int8[n, 10], what the colors of loaded grids become.
    """
    count = len(cases.operation)
    flat = lambda grids: jnp.asarray(grids.reshape(count, -1))
    sizes = np.stack([cases.height, cases.width, *_sizes(cases.target), *_sizes(cases.clipboard)], 1)
    sizes[:, 4:] = bounds(cases.clipboard >= 0)[:, 2:] + 1
    if as_boxes:
        selection, old = jnp.asarray(bounds(cases.selection)), jnp.asarray(bounds(cases.old_selection), jnp.int8)
    else:
        selection, old = flat(cases.selection), pack_columns(flat(cases.old_selection), cases.grid.shape[1:])
    canvas = Canvas(
        flat(cases.grid), flat(cases.clipboard), flat(cases.target), old, jnp.asarray(sizes.astype(np.int8))
    )
    row = _loaded_case(cases).astype(np.int32)
    command = CheckedAction(
        jnp.asarray(cases.operation), selection, jnp.asarray(row), None if colors is None else jnp.asarray(colors)
    )
    return canvas, command, PairTable(flat(cases.pair_input), flat(cases.target))


def expected_results(cases: Cases, colors: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Returns what the reference makes of each case; operation -1 changes nothing."""
    results = []
    for i, (operation, loaded) in enumerate(zip(cases.operation.tolist(), _loaded_case(cases), strict=True)):
        recolored = lambda grid, i=i: grid if colors is None else np.where(grid < 0, grid, colors[i][grid])
        pair_input, target = recolored(cases.pair_input[loaded]).astype(np.int8), cases.target[i]
        if operation in PAIR_SWITCHES:
            after, target = start_canvas(pair_input), recolored(cases.target[loaded])
        elif operation == -1:
            after = cases.canvas(i)
        else:
            after = apply_operation(cases.canvas(i), operation, cases.selection[i], pair_input)
            target = recolored(target) if operation == 39 else target
        counts = similarity(after.grid, target)
        results.append((after.grid, after.clipboard, after.selection, (after.height, after.width), target, counts))
    columns = [np.stack(column) for column in zip(*results, strict=True)]
    named = dict(zip(("grid", "clipboard", "selection", "size", "target", "matches"), columns, strict=True))
    held = bounds(named["clipboard"] >= 0)[:, 2:] + 1
    return {**named, "clipboard size": held, "target size": np.stack(_sizes(named["target"]), 1)}


def differences(edit: tuple[Canvas, jax.Array], cases: Cases, expected: dict[str, np.ndarray]) -> list[str]:
    """Returns a line for each part of each case in which the edited canvases are not what is expected."""
    canvas, matches = jax.device_get(edit)
    count, *shape = cases.grid.shape
    if canvas.selection.dtype == np.int8:
        selected, expected = canvas.selection, {**expected, "selection": bounds(expected["selection"])}  # bit for bit
    else:
        selected = np.asarray(unpack_columns(jnp.asarray(canvas.selection), tuple(shape))).reshape(count, *shape)
    sizes = canvas.sizes.astype(np.int32)
    union = np.maximum(sizes[:, 0], sizes[:, 2]) * np.maximum(sizes[:, 1], sizes[:, 3])
    found = {
        "grid": canvas.grid.reshape(count, *shape),
        "clipboard": canvas.clipboard.reshape(count, *shape),
        "selection": selected,
        "size": sizes[:, :2],
        "target": canvas.target.reshape(count, *shape),
        "matches": np.stack([matches, union], 1),
        "clipboard size": sizes[:, 4:],
        "target size": sizes[:, 2:4],
    }
    lines = []
    for name, value in found.items():
        wrong = (value != expected[name]).reshape(count, -1).any(1)
        lines += [f"{name} operation {cases.operation[i]} case {i}" for i in np.flatnonzero(wrong)]
    return lines


def _loaded_case(cases: Cases) -> np.ndarray:
    """Returns the case whose pair each case loads: the next one where the operation changes the pair."""
    index = np.arange(len(cases.operation))
    return np.where(np.isin(cases.operation, PAIR_SWITCHES), (index + 1) % len(index), index)


def _sizes(grids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (grids[:, :, 0] >= 0).sum(1), (grids[:, 0] >= 0).sum(1)
