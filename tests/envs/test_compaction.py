"""Rows that need a kernel get its result, however wide they are and however many need it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.fusion import materialize, materialize_call
from jaxarc.native import library
from jaxarc.primitives import choose_executor
from jaxarc.rows import HUGE_ROW, WIDE_ROW, update_rows

B, BLOCK_FRACTION = 50, 1 / 3  # blocks of 16 rows, so that up to four are needed


@functools.partial(jax.jit, static_argnums=0)
def update(in_blocks, need, out, ins):
    kernel = lambda out, ins: {"rows": out["rows"] + ins[:, None], "total": out["rows"].sum(1) + ins}
    return update_rows(need, kernel, out, ins, BLOCK_FRACTION, in_blocks)


@pytest.mark.parametrize("width", [1, WIDE_ROW - 1, WIDE_ROW, HUGE_ROW - 1, HUGE_ROW, 3 * HUGE_ROW])
def test_rows_that_need_it_are_updated_and_the_others_stay(width):
    rng = np.random.default_rng(width)
    out = {"rows": jnp.asarray(rng.integers(0, 99, (B, width)), jnp.int32), "total": jnp.zeros(B, jnp.int32)}
    ins = jnp.asarray(rng.integers(1, 99, B), jnp.int32)
    for share in (0.0, 0.02, 0.3, 0.7, 1.0):
        need = rng.random(B) < share
        expected = np.where(need[:, None], out["rows"] + ins[:, None], out["rows"])
        totals = np.where(need, np.asarray(out["rows"]).sum(1) + np.asarray(ins), 0)
        for in_blocks in (True, False):
            updated = update(in_blocks, jnp.asarray(need), out, ins)
            np.testing.assert_array_equal(updated["rows"], expected)
            np.testing.assert_array_equal(updated["total"], totals)


@pytest.mark.parametrize(("batch", "block_fraction"), [(1, 1.0), (2, 0.001), (16, 1.0), (17, 1.0), (17, 0.001)])
def test_batches_of_any_size_and_blocks_of_any_share(batch, block_fraction):
    rows, ins = jnp.arange(batch, dtype=jnp.int32)[:, None], jnp.arange(1, batch + 1, dtype=jnp.int32)
    kernel = lambda out, ins: out * 10 + ins[:, None]
    update = jax.jit(
        lambda need, in_blocks: update_rows(need, kernel, rows, ins, block_fraction, in_blocks), static_argnums=1
    )
    for need in (np.zeros(batch, bool), np.ones(batch, bool), np.arange(batch) % 3 == 0):
        expected = np.where(need[:, None], rows * 10 + ins[:, None], rows)
        for in_blocks in (True, False):
            np.testing.assert_array_equal(update(jnp.asarray(need), in_blocks), expected)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint32, jnp.bool_, jnp.float32])
def test_materialized_calls_are_behind_one_branch_on_a_cpu(monkeypatch, backend, dtype):
    both = lambda x: (x, x[::-1])
    x = jnp.array([[0, 1, 2], [3, 4, 0]]).astype(dtype)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    call = lambda x: jax.vmap(lambda row: materialize_call(both, row))(x)
    assert str(jax.make_jaxpr(call)(x)).count("cond[") == (backend == "cpu")
    for found, expected in zip(call(x), (x, x[:, ::-1]), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(materialize(x), x)


@pytest.mark.parametrize("backend", ["cpu", "gpu", "tpu"])
@pytest.mark.parametrize("has_library", [True, False])
def test_the_executor_suits_the_backend_unless_one_is_wanted(monkeypatch, backend, has_library):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(library, "native_library", lambda: object() if has_library else None)
    chosen = "native" if backend == "cpu" and has_library else "xla"
    assert [choose_executor(wanted) for wanted in ("auto", "native", "xla")] == [chosen, chosen, "xla"]
