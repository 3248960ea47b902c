"""Plans that leave families of operations out do what the reference does, in XLA."""

import functools
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import EXECUTORS, QUICKLY, interpreted_triton
from reference.cases import Cases, random_cases
from reference.kernel_cases import PAIR_SWITCHES, differences, expected_results, kernel_arguments, with_boxes
from scipy import ndimage

from jaxarc.envs.operations.execute import KernelStatics, execute, execute_batch
from jaxarc.envs.operations.flood_fill import flood_fill

BATCH = 192
NO_OPERATION = -1
FAMILIES = {
    "all": (*range(35), 39, *PAIR_SWITCHES),
    "fill": (*range(10), 31, 33, 34),
    "flood": tuple(range(10, 20)),
    "shift": (*range(20, 24), 28, 29, 30),
    "turn": tuple(range(24, 28)),
    "copy input": (32, 33),
    "change pair": (39, *PAIR_SWITCHES),
}
LARGE, SMALL = (9, 8), (4, 6)  # a long row and a short one: more than a byte of rows, and less than one
SELECTIONS = pytest.mark.parametrize(("shape", "as_boxes"), [(LARGE, False), (SMALL, True)], ids=["mask", "bbox"])


def cases_of(operations, shape, as_boxes, count=BATCH):
    """Cases of these operations, and some in which nothing is done."""
    rng = np.random.default_rng([*shape, *operations])
    pool = random_cases(rng, count, *shape)
    drawn = rng.choice([*operations, *operations, NO_OPERATION], count).astype(np.int32)
    floods = (drawn >= 10) & (drawn < 20)
    single = np.zeros_like(pool.selection)
    beyond = rng.random(count) < 0.3  # beside the active area, where there is no cell to flood
    bottom, right = (
        np.where(beyond, side, sides) for side, sides in zip(shape, (pool.height, pool.width), strict=True)
    )
    single[np.arange(count), rng.integers(0, bottom), rng.integers(0, right)] = True
    lone = floods & (rng.random(count) < 0.8)  # one cell, or nothing would be flooded
    selection = np.where(lone[:, None, None], single, pool.selection)
    cases = Cases(*pool)._replace(operation=drawn, selection=selection)
    return with_boxes(cases) if as_boxes else cases


@functools.cache
def compiled(shape, operations):
    statics = KernelStatics(shape, "xla", operations)
    return jax.jit(lambda *arguments: execute_batch(*arguments, statics))


@pytest.mark.parametrize("family", FAMILIES)
@SELECTIONS
def test_a_plan_of_one_family_agrees_with_the_reference(family, shape, as_boxes):
    operations = FAMILIES[family]
    cases = cases_of(operations, shape, as_boxes)
    edit = compiled(shape, operations)(*kernel_arguments(cases, as_boxes))
    assert differences(edit, cases, expected_results(cases)) == []


def test_a_single_canvas_agrees_with_the_reference():
    operations = FAMILIES["all"]
    cases = cases_of(operations, LARGE, False, 80)
    for i in range(80):
        case = Cases(*(column[i : i + 1] for column in cases))
        edit = compiled(LARGE, operations)(*kernel_arguments(case, False))
        assert differences(edit, case, expected_results(case)) == []


def test_a_flood_goes_as_far_as_a_spiral_does():
    """Every arm needs another sweep: the loop goes on until nothing changes, in all forms."""
    spiral = np.zeros((16, 16), np.int8)
    top, left, bottom, right = 0, 0, 15, 15
    while bottom - top >= 3:  # walls between the arms, each with a gap at one end
        spiral[top + 1, left : right - 1] = 1
        spiral[top + 1 : bottom - 1, right - 1] = 1
        spiral[bottom - 1, left + 2 : right] = 1
        spiral[top + 3 : bottom, left + 1 + 1] = 1
        top, left, bottom, right = top + 2, left + 2, bottom - 2, right - 2
    ins = (jnp.asarray(spiral.reshape(1, -1)), *(jnp.full((1,), x, jnp.int32) for x in (17, 0, 0)))
    labels, _ = ndimage.label(spiral == 0)
    for traced_as in (nullcontext(), interpreted_triton()):
        with traced_as:
            found = jax.jit(lambda *ins: flood_fill(*ins, spiral.shape), compiler_options=QUICKLY)(*ins)
        np.testing.assert_array_equal(np.asarray(found).reshape(spiral.shape) == 7, labels == labels[0, 0])


@pytest.mark.parametrize("operation", [10, 19, 20, 30, 24, 27, 39, PAIR_SWITCHES[-1]])
def test_a_plan_of_one_operation_agrees_with_the_reference(operation):
    """The first and the last of each family: what is left out is decided by their numbers."""
    cases = cases_of((operation,), SMALL, True, 32)
    edit = compiled(SMALL, (operation,))(*kernel_arguments(cases, True))
    assert differences(edit, cases, expected_results(cases)) == []


@pytest.mark.parametrize("family", ["copy input", "change pair"])
def test_what_is_loaded_is_recolored(family):
    shape, operations = SMALL, FAMILIES[family]
    cases = cases_of(operations, shape, as_boxes=True)
    rng = np.random.default_rng(len(family))
    colors = np.stack([rng.permutation(10) for _ in range(BATCH)]).astype(np.int8)
    expected = expected_results(cases, colors)
    edit = compiled(shape, operations)(*kernel_arguments(cases, True, colors))
    assert differences(edit, cases, expected) == []


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_canvas_may_load_from_a_table_of_its_own(executor):
    """Two batches of five canvases; each batch has its own table, or each canvas has."""
    shape, operations = SMALL, (32, 39, *PAIR_SWITCHES)
    statics = KernelStatics(shape, executor, operations)
    batches = [cases_of(operations, shape, True, 10 + i) for i in range(2)]
    batches = [Cases(*(column[:5] for column in cases)) for cases in batches]
    arguments = [kernel_arguments(cases, True) for cases in batches]
    canvas, command, pairs = jax.tree.map(lambda *parts: np.stack(parts), *arguments)
    one = lambda canvas, command, pairs: execute(canvas, command, pairs, statics)
    shared = jax.jit(jax.vmap(jax.vmap(one, (0, 0, None))))(canvas, command, pairs)
    repeat = lambda table: np.repeat(table[:, None], 5, axis=1)
    own = jax.jit(jax.vmap(jax.vmap(one)))(canvas, command, jax.tree.map(repeat, pairs))
    for edits in (shared, own):
        for i, cases in enumerate(batches):
            edit = jax.tree.map(lambda part, i=i: part[i], edits)
            assert differences(edit, cases, expected_results(cases)) == []


def test_what_cannot_occur_is_not_compiled():
    cases = cases_of((0,), SMALL, as_boxes=True)
    text = lambda *operations: str(
        jax.make_jaxpr(lambda *arguments: execute_batch(*arguments, KernelStatics(SMALL, "xla", operations)))(
            *kernel_arguments(cases, True)
        )
    )
    few = text(0)
    assert "while" not in few
    assert "while" in text(0, 10)
    for operation in (20, 24, 28, 30, 32, 35, 39):
        assert len(text(0, operation)) > len(few)
    assert len(text(0, 9, 31, 33, 34)) == len(few)
