"""The native executor gives the bits of its C++ kernel, which test_fuzz_operations.py tests, wherever JAX calls it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import EXECUTORS
from reference.cases import random_cases
from reference.kernel_cases import kernel_arguments, with_boxes

from jaxarc.envs.canvas import CheckedAction
from jaxarc.envs.operations.execute import KernelStatics, execute, execute_batch

SHAPE = (12, 9)
BATCH = 12
STATICS = KernelStatics(SHAPE, "native", tuple(range(42)))

pytestmark = pytest.mark.skipif("native" not in EXECUTORS, reason="no C++ compiler is installed")


def cases(as_boxes, colors=None):
    drawn = random_cases(np.random.default_rng(as_boxes), BATCH, *SHAPE)
    return kernel_arguments(with_boxes(drawn) if as_boxes else drawn, as_boxes, colors)


def one(canvas, action, pairs):
    return execute(canvas, action, pairs, STATICS)


every = jax.vmap(one, (0, 0, None))


def at_once(canvas, action, pairs):
    return execute_batch(canvas, action, pairs, STATICS)


def rows_of(tree, size):
    return jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), tree)


def nested(canvas, action, pairs):
    return jax.vmap(every, (0, 0, None))(rows_of(canvas, 3), rows_of(action, 3), pairs)


def behind_a_branch(canvas, action, pairs):
    neither = lambda canvas, *_: (canvas, jnp.zeros(BATCH, jnp.int32))
    return jax.lax.cond(action.operation[0] >= -1, every, neither, canvas, action, pairs)


def one_by_one(canvas, action, pairs):
    return jax.lax.map(lambda row: one(*row, pairs), (canvas, action))


def for_another_machine(canvas, action, pairs):
    """An exported program holds no call of the library."""
    exported = jax.export.export(jax.jit(lambda *leaves: jax.tree.leaves(every(*jax.tree.unflatten(tree, leaves)))))
    leaves, tree = jax.tree.flatten((canvas, action, pairs))
    out_tree = jax.tree.structure(jax.eval_shape(every, canvas, action, pairs))
    return jax.tree.unflatten(out_tree, exported(*leaves).call(*leaves))


@pytest.mark.parametrize("as_boxes", [True, False], ids=["bbox", "mask"])
@pytest.mark.parametrize("use", [nested, behind_a_branch, one_by_one, for_another_machine], ids=lambda x: x.__name__)
def test_bits_are_those_of_one_call(use, as_boxes):
    arguments = cases(as_boxes)
    expected = jax.tree.leaves(at_once(*arguments))
    for found, wanted in zip(jax.tree.leaves(jax.jit(use)(*arguments)), expected, strict=True):
        np.testing.assert_array_equal(np.reshape(found, wanted.shape), wanted)


def test_batches_with_tables_of_their_own():
    """Three batches of four rows, and four of the twelve rows of the whole table for each."""
    canvas, action, pairs = cases(True)
    threes = rows_of((canvas, action, pairs), 3)
    edited = jax.vmap(every)(*threes)
    for i in range(3):
        expected = every(*jax.tree.map(lambda x, i=i: x[i], threes))
        jax.tree.map(lambda found, wanted, i=i: np.testing.assert_array_equal(found[i], wanted), edited, expected)


def turned(action, offset):
    return jax.tree.map(lambda x: jnp.roll(x, offset, axis=0), action)


def repeated(canvas, action, pairs):
    """Five steps in a scan, each with the actions of other rows."""
    step = lambda canvas, offset: every(canvas, turned(action, offset), pairs)
    return jax.lax.scan(step, canvas, jnp.arange(5, dtype=jnp.int32))


def test_a_scan_takes_the_steps_of_a_loop_and_keeps_the_canvases_in_place():
    """No grid is copied in it: the library writes where it reads."""
    canvas, action, pairs = cases(True)
    program = jax.jit(repeated, donate_argnums=0).lower(canvas, action, pairs).compile()
    loops = [block for block in program.as_text().split("\n\n") if "custom-call(" in block]
    assert loops
    grids = f"s8[{BATCH},{SHAPE[0] * SHAPE[1]}]"
    assert [line for block in loops for line in block.splitlines() if f"= {grids}" in line and " copy(" in line] == []
    expected = canvas
    for offset in range(5):
        expected, _ = at_once(expected, turned(action, offset), pairs)
    jax.tree.map(np.testing.assert_array_equal, jax.jit(repeated)(canvas, action, pairs)[0], expected)


def test_a_branch_of_each_row_is_a_select():
    canvas, action, pairs = cases(True)
    even = action.operation % 2 == 0
    each = lambda is_even, canvas, action: jax.lax.cond(is_even, lambda: one(canvas, action, pairs)[0], lambda: canvas)
    edited, _ = at_once(canvas, action, pairs)
    expected = jax.tree.map(lambda new, old: jnp.where(even[:, None], new, old), edited, canvas)
    jax.tree.map(np.testing.assert_array_equal, jax.vmap(each)(even, canvas, action), expected)


def test_gradients_pass_beside_the_call():
    """As those of a policy that learns through a rollout do: the edit has none, what stands around it does."""
    canvas, action, pairs = cases(True)

    def loss(weight):
        carry = lambda carry, _: ((carry[0] * weight, every(carry[1], action, pairs)[0]), None)
        (value, edited), _ = jax.lax.scan(carry, (weight, canvas), length=2)
        return value * jnp.sum(edited.sizes.astype(jnp.float32))

    sizes = at_once(at_once(canvas, action, pairs)[0], action, pairs)[0].sizes
    np.testing.assert_allclose(jax.grad(loss)(2.0), 3 * 2.0**2 * float(np.sum(np.asarray(sizes))))


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_other_platforms_get_no_call_of_the_library(platform):
    lower = lambda platform: jax.jit(every).trace(*cases(True)).lower(lowering_platforms=(platform,)).as_text()
    assert "jaxarc" in lower("cpu")
    assert "jaxarc" not in lower(platform)


def test_loaded_grids_are_recolored():
    colors = np.random.default_rng(0).permuted(np.tile(np.arange(10, dtype=np.int8), (BATCH, 1)), axis=1)
    canvas, action, pairs = cases(True, colors)
    loads = CheckedAction(jnp.full(BATCH, 39, jnp.int32), action.selection, action.row, action.colors)
    edited, _ = every(canvas, loads, pairs)
    inputs, outputs = (np.asarray(x)[action.row].astype(np.int64) for x in (pairs.inputs, pairs.outputs))
    for found, stored in ((edited.grid, inputs), (edited.target, outputs)):
        recolored = np.take_along_axis(colors, np.maximum(stored, 0), axis=1)
        np.testing.assert_array_equal(found, np.where(stored < 0, -1, recolored))


def test_arguments_stay_as_they_are():
    """A result takes the place of an argument only where nobody reads the argument any more."""
    arguments = cases(True)
    before = jax.device_get(arguments)
    every(*arguments)
    jax.tree.map(np.testing.assert_array_equal, before, jax.device_get(arguments))
