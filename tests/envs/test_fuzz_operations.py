"""The JAX kernels against the NumPy reference, operation by operation: no mismatch in any case."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import AS_USERS
from reference.canvas import apply_operation, similarity
from reference.cases import Cases, random_cases

from jaxarc.envs.canvas import Canvas, Command, PairTable
from jaxarc.envs.operations.bits import pack_columns, unpack_columns
from jaxarc.envs.operations.execute import Plan, execute_batch

RESET_PAIR = 39
BATCH = 2048
# canvas shape -> number of batches; about 104,000 cases over all, each in both executors
SIZES = {(30, 30): 12, (5, 5): 14, (3, 7): 8, (12, 9): 8, (1, 1): 2, (1, 6): 2, (4, 1): 2, (30, 4): 3}


def _bounds(mask):
    """Bounding boxes of masks, int32[n, 4]; (0, 0, -1, -1) where a mask is empty."""
    rows, columns = mask.any(2), mask.any(1)
    top, left = rows.argmax(1), columns.argmax(1)
    bottom = rows.shape[1] - 1 - rows[:, ::-1].argmax(1)
    right = columns.shape[1] - 1 - columns[:, ::-1].argmax(1)
    box = np.stack([top, left, bottom, right], 1)
    return np.where(mask.any((1, 2))[:, None], box, [0, 0, -1, -1]).astype(np.int32)


def _filled(boxes, shape):
    """Masks of boxes, bool[n, H, W]."""
    rows, columns = np.arange(shape[0])[None, :, None], np.arange(shape[1])[None, None]
    top, left, bottom, right = (boxes[:, i, None, None] for i in range(4))
    return (rows >= top) & (rows <= bottom) & (columns >= left) & (columns <= right)


def _size(grids):
    return (grids[:, :, 0] >= 0).sum(1), (grids[:, 0] >= 0).sum(1)


def _arrays(cases: Cases, as_boxes: bool):
    """The kernel's arguments for a batch of cases."""
    count = len(cases.operation)
    flat = lambda grids: jnp.asarray(grids.reshape(count, -1))
    sizes = np.stack([cases.height, cases.width, *_size(cases.target), *_size(cases.clipboard)], 1)
    held = _bounds(cases.clipboard >= 0)
    sizes[:, 4:] = held[:, 2:] + 1
    if as_boxes:
        selection, old = jnp.asarray(_bounds(cases.selection)), jnp.asarray(_bounds(cases.old_selection), jnp.int8)
    else:
        selection, old = flat(cases.selection), pack_columns(flat(cases.old_selection), cases.grid.shape[1:])
    canvas = Canvas(
        flat(cases.grid), flat(cases.clipboard), flat(cases.target), old, jnp.asarray(sizes.astype(np.int8))
    )
    command = Command(jnp.asarray(cases.operation), selection, jnp.arange(count, dtype=jnp.int32))
    return canvas, command, PairTable(flat(cases.pair_input), flat(cases.target))


def _expected(cases: Cases):
    """What the reference makes of each case: grid, clipboard, selection, size, (matches, union)."""
    results = []
    for i in range(len(cases.operation)):
        after = apply_operation(cases.canvas(i), int(cases.operation[i]), cases.selection[i], cases.pair_input[i])
        counts = similarity(after.grid, cases.target[i])
        results.append((after.grid, after.clipboard, after.selection, (after.height, after.width), counts))
    return [np.stack(column) for column in zip(*results, strict=True)]


def _mismatches(cases: Cases, shape, as_boxes, expected):
    grid, clipboard, selection, size, counts = expected
    found = []
    for executor in ("compact", "dense"):
        run = _compiled(shape, executor)
        canvas, matches = jax.device_get(run(*_arrays(cases, as_boxes)))
        count = len(cases.operation)
        if as_boxes:
            selected = _filled(canvas.selection.astype(np.int32), shape)
        else:
            selected = np.asarray(unpack_columns(jnp.asarray(canvas.selection), shape)).reshape(count, *shape)
        sizes = canvas.sizes.astype(np.int32)
        union = np.maximum(sizes[:, 0], sizes[:, 2]) * np.maximum(sizes[:, 1], sizes[:, 3])
        parts = {
            "grid": (canvas.grid.reshape(grid.shape), grid),
            "clipboard": (canvas.clipboard.reshape(grid.shape), clipboard),
            "clipboard size": (sizes[:, 4:], _bounds(clipboard >= 0)[:, 2:] + 1),
            "selection": (selected, selection),
            "size": (sizes[:, :2], size),
            "matches": (np.stack([matches, union], 1), counts),
        }
        for name, (ours, theirs) in parts.items():
            wrong = (ours != theirs).reshape(count, -1).any(1)
            found += [f"{executor} {name} operation {cases.operation[i]} case {i}" for i in np.flatnonzero(wrong)]
    return found


@functools.cache
def _compiled(shape, executor):
    plan = Plan(shape, executor, tuple(range(42)))
    execute = lambda canvas, command, pairs: execute_batch(canvas, command, pairs, plan)
    return jax.jit(execute, compiler_options=AS_USERS)


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("as_boxes", [False, True], ids=["mask", "bbox"])
def test_kernels_agree_with_the_reference(shape, as_boxes):
    rng = np.random.default_rng([*shape, as_boxes])
    for _ in range(SIZES[shape] if not as_boxes else -(-SIZES[shape] // 2)):
        cases = random_cases(rng, BATCH, *shape)
        if as_boxes:
            cases = cases._replace(
                selection=_filled(_bounds(cases.selection), shape),
                old_selection=_filled(_bounds(cases.old_selection), shape),
            )
        wrong = _mismatches(cases, shape, as_boxes, _expected(cases))
        assert not wrong, f"{len(wrong)} mismatches, first: {wrong[:5]}"
