"""Rows that need a kernel get its result, however wide they are and however many need it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs.operations.compaction import HUGE_ROW, WIDE_ROW, update_rows

B, DIVISOR = 50, 3  # blocks of 16 rows, so that up to four are needed


@functools.partial(jax.jit, static_argnums=0)
def update(executor, need, out, ins):
    kernel = lambda out, ins: {"rows": out["rows"] + ins[:, None], "total": out["rows"].sum(1) + ins}
    return update_rows(executor, need, kernel, out, ins, DIVISOR)


@pytest.mark.parametrize("width", [1, WIDE_ROW - 1, WIDE_ROW, HUGE_ROW - 1, HUGE_ROW, 3 * HUGE_ROW])
def test_rows_that_need_it_are_updated_and_the_others_stay(width):
    rng = np.random.default_rng(width)
    out = {"rows": jnp.asarray(rng.integers(0, 99, (B, width)), jnp.int32), "total": jnp.zeros(B, jnp.int32)}
    ins = jnp.asarray(rng.integers(1, 99, B), jnp.int32)
    for share in (0.0, 0.02, 0.3, 0.7, 1.0):
        need = rng.random(B) < share
        expected = np.where(need[:, None], out["rows"] + ins[:, None], out["rows"])
        totals = np.where(need, np.asarray(out["rows"]).sum(1) + np.asarray(ins), 0)
        for executor in ("compact", "dense"):
            updated = update(executor, jnp.asarray(need), out, ins)
            np.testing.assert_array_equal(updated["rows"], expected)
            np.testing.assert_array_equal(updated["total"], totals)
