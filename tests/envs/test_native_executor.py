"""The native executor gives the bits of the compact one under every transformation of JAX."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import EXECUTORS
from reference.cases import random_cases
from reference.kernel_cases import kernel_arguments, with_boxes

from jaxarc.envs.canvas import CheckedAction
from jaxarc.envs.operations.execute import KernelStatics, execute

SHAPE = (12, 9)
BATCH = 12

pytestmark = pytest.mark.skipif("native" not in EXECUTORS, reason="no C++ compiler is installed")


def cases(as_boxes, colors=None):
    drawn = random_cases(np.random.default_rng(as_boxes), BATCH, *SHAPE)
    return kernel_arguments(with_boxes(drawn) if as_boxes else drawn, as_boxes, colors)


def edit(executor):
    statics = KernelStatics(SHAPE, executor, tuple(range(42)))
    return lambda canvas, action, pairs: execute(canvas, action, pairs, statics)


def rows_of(tree, size):
    return jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), tree)


def nested(one, canvas, action, pairs):
    both = jax.vmap(jax.vmap(one, (0, 0, None)), (0, 0, None))
    return both(rows_of(canvas, 3), rows_of(action, 3), pairs)


def tables_of_their_own(one, canvas, action, pairs):
    """Three batches of four rows; each batch has a table of its own, four rows of the whole one."""
    both = jax.vmap(jax.vmap(one, (0, 0, None)))
    return both(rows_of(canvas, 3), rows_of(action, 3), rows_of(pairs, 3))


def repeated(one, canvas, action, pairs):
    """Five steps in a scan; the row number turns every step into another one."""

    def step(canvas, offset):
        rolled = jax.tree.map(lambda x: jnp.roll(x, offset, axis=0), action)
        return jax.vmap(one, (0, 0, None))(canvas, rolled, pairs)

    return jax.lax.scan(step, canvas, jnp.arange(5, dtype=jnp.int32))


def behind_a_branch(one, canvas, action, pairs):
    every = jax.vmap(one, (0, 0, None))
    first = action.operation[0] >= 0
    return jax.lax.cond(first, every, lambda canvas, *_: (canvas, jnp.zeros(BATCH, jnp.int32)), canvas, action, pairs)


def one_by_one(one, canvas, action, pairs):
    return jax.lax.map(lambda row: one(*row, pairs), (canvas, action))


USES = [nested, tables_of_their_own, repeated, behind_a_branch, one_by_one]


@pytest.mark.parametrize("as_boxes", [True, False], ids=["bbox", "mask"])
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_bits_are_those_of_the_compact_executor(use, as_boxes):
    results = [jax.jit(functools.partial(use, edit(executor)))(*cases(as_boxes)) for executor in ("native", "compact")]
    jax.tree.map(np.testing.assert_array_equal, *results)


def test_a_branch_of_each_row_is_a_select():
    canvas, action, pairs = cases(True)
    even = action.operation % 2 == 0

    def each(is_even, canvas, action):
        return jax.lax.cond(is_even, lambda: edit("native")(canvas, action, pairs)[0], lambda: canvas)

    edited, _ = jax.vmap(edit("compact"), (0, 0, None))(canvas, action, pairs)
    expected = jax.tree.map(lambda new, old: jnp.where(even[:, None], new, old), edited, canvas)
    jax.tree.map(np.testing.assert_array_equal, jax.vmap(each)(even, canvas, action), expected)


def test_loaded_grids_are_recolored():
    colors = np.random.default_rng(0).permuted(np.tile(np.arange(10, dtype=np.int8), (BATCH, 1)), axis=1)
    canvas, action, pairs = cases(True, colors)
    loads = CheckedAction(jnp.full(BATCH, 39, jnp.int32), action.selection, action.row, action.colors)
    results = [jax.vmap(edit(executor), (0, 0, None))(canvas, loads, pairs) for executor in ("native", "compact")]
    jax.tree.map(np.testing.assert_array_equal, *results)


def test_arguments_stay_as_they_are():
    """A result takes the place of an argument only where nobody reads the argument any more."""
    arguments = cases(True)
    before = jax.device_get(arguments)
    jax.vmap(edit("native"), (0, 0, None))(*arguments)
    jax.tree.map(np.testing.assert_array_equal, before, jax.device_get(arguments))


def test_a_row_beyond_the_table_is_the_last():
    canvas, action, pairs = cases(True)
    beyond = CheckedAction(jnp.full(BATCH, 32, jnp.int32), action.selection, jnp.full(BATCH, 99, jnp.int32))
    edited, _ = jax.vmap(edit("native"), (0, 0, None))(canvas, beyond, pairs)
    np.testing.assert_array_equal(edited.grid, np.broadcast_to(pairs.inputs[-1], edited.grid.shape))


def test_a_scan_keeps_the_canvases_in_place():
    """No grid is copied in a loop: the library writes where it reads."""
    canvas, action, pairs = cases(True)
    program = jax.jit(functools.partial(repeated, edit("native")), donate_argnums=0).lower(canvas, action, pairs)
    text = program.compile().as_text()
    assert "custom-call" in text
    grids = f"s8[{BATCH},{SHAPE[0] * SHAPE[1]}]"
    loops = [block for block in text.split("\n\n") if "custom-call(" in block]
    assert [line for block in loops for line in block.splitlines() if f"= {grids}" in line and " copy(" in line] == []
