"""Compare products and reductions of compiled programs with NumPy: some versions of JAX compute wrong numbers.

On a CPU, jaxlib 0.10.2 computes wrong rows of a product that is mapped over more than 32,768 rows of three numbers and
then reduced (https://github.com/jax-ml/jax/issues/39103); 0.9.1 to 0.10.1 do so if the reduction is a maximum. Which
programs meet such a fault depends on their shapes, so those here have the shapes of networks, surrogates and losses.
"""

import importlib.metadata
import time
import warnings
from collections.abc import Callable
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.errors import JaxarcWarning

_TOLERANCE: Final = 1e-3  # of values near 1; a sum of 900 products in float32 is right to about 1e-5


class NumericsReport(NamedTuple):
    """What :func:`check_numerics` has seen."""

    wrong: dict[str, str]  # of each program with a wrong result: how many of its values are wrong
    num_programs: int
    seconds: float  # most of which compile


class WrongNumbersWarning(JaxarcWarning):
    """The installed JAX computes wrong numbers on this machine."""


class _Program(NamedTuple):
    """A program of JAX, and the same computed by NumPy in float64."""

    compute: Callable[..., jax.Array]
    judge: Callable[..., np.ndarray]
    shapes: tuple[tuple[int, ...], ...]  # of its arguments, normally distributed


def check_numerics() -> NumericsReport:
    """Compile small programs of the shapes that networks, surrogates and losses have, and compare them with NumPy.

    It takes about two seconds, most of them in the compiler, and warns once if a result is wrong.

    Returns:
        The programs with wrong results, and how many programs were tried.

    Warns:
        WrongNumbersWarning: with the version of jaxlib, the programs, and what to install instead.
    """
    start = time.perf_counter()
    wrong = {name: found for name, program in _PROGRAMS.items() if (found := _compare(program))}
    report = NumericsReport(wrong, len(_PROGRAMS), time.perf_counter() - start)
    if wrong:
        found = "; ".join(f"{name}: {values}" for name, values in wrong.items())
        warnings.warn(
            f"jaxlib {importlib.metadata.version('jaxlib')} computes wrong numbers on this machine ({found}); "
            "install a version that docs/install.md calls sound",
            WrongNumbersWarning,
            stacklevel=2,
        )
    return report


def _compare(program: _Program) -> str | None:
    generator = np.random.default_rng(0)
    values = [generator.standard_normal(shape).astype(np.float32) for shape in program.shapes]
    found = np.asarray(jax.jit(program.compute)(*values))
    expected = program.judge(*(value.astype(np.float64) for value in values))
    # "not close" and not "far": NaN is wrong, too.
    num_wrong = int(np.sum(~np.isclose(found, expected, rtol=_TOLERANCE, atol=_TOLERANCE)))
    return f"{num_wrong:,} of {found.size:,} values are wrong" if num_wrong else None


def _mapped(row: Callable[[jax.Array], jax.Array]) -> Callable[..., jax.Array]:
    """Map a reduction of the product ``matrix @ row`` over many rows, as ``jax.vmap`` of a small network does."""
    return lambda rows, matrix: jax.vmap(lambda one: row(matrix @ one))(rows)


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _attention(queries: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
    shares = jax.nn.softmax(
        jnp.einsum("bnc,bmc->bnm", queries, keys) / jnp.sqrt(np.float32(queries.shape[-1])), axis=-1
    )
    return jnp.einsum("bnm,bmc->bnc", shares, values)


def _judge_attention(queries: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    return _softmax(queries @ keys.swapaxes(1, 2) * queries.shape[-1] ** -0.5) @ values


def _dense_loss(cells: jax.Array, weight: jax.Array) -> jax.Array:
    return jnp.square(jax.nn.relu(cells @ weight)).mean()


def _judge_dense_gradient(cells: np.ndarray, weight: np.ndarray) -> np.ndarray:
    products = cells @ weight
    return np.einsum("bni,bno->io", cells, 2 * np.maximum(products, 0)) / products.size


# The first three met the faults of 0.9.1 to 0.10.2, which begin at 32,769 rows of three numbers. Samples of a surrogate
# are [N, d, 3], cells of a network [B, HW, C], logits [B, HW].
_PROGRAMS: Final = {
    "mapped product, summed": _Program(
        _mapped(lambda row: jnp.sum(row**2)),
        lambda rows, matrix: ((rows @ matrix.T) ** 2).sum(-1),
        ((40_001, 3), (3, 3)),
    ),
    "mapped product, largest": _Program(
        _mapped(jnp.max), lambda rows, matrix: (rows @ matrix.T).max(-1), ((40_001, 3), (3, 3))
    ),
    "mapped perceptron": _Program(
        _mapped(lambda row: jax.nn.relu(row).sum()),
        lambda rows, matrix: np.maximum(rows @ matrix.T, 0).sum(-1),
        ((40_001, 3), (2, 3)),
    ),
    "moments of samples": _Program(
        lambda data: jnp.einsum("nik,njl->ijkl", data, data) / data.shape[0],
        lambda data: np.einsum("nik,njl->ijkl", data, data, optimize=True) / len(data),
        ((1000, 10, 3),),
    ),
    "cells, largest and mean": _Program(
        lambda cells, weight: jnp.concatenate([(y := jax.nn.relu(cells @ weight)).max(1), y.mean(1)], axis=-1),
        lambda cells, weight: np.concatenate([(y := np.maximum(cells @ weight, 0)).max(1), y.mean(1)], axis=-1),
        ((64, 900, 24), (24, 32)),
    ),
    "gradient of cells": _Program(jax.grad(_dense_loss, argnums=1), _judge_dense_gradient, ((64, 900, 24), (24, 32))),
    "attention": _Program(_attention, _judge_attention, ((16, 30, 16), (16, 30, 16), (16, 30, 16))),
    "probabilities": _Program(lambda logits: jax.nn.softmax(logits, axis=-1), _softmax, ((1024, 900),)),
    "sums of columns": _Program(lambda x: jnp.mean(x, axis=0), lambda x: x.mean(axis=0), ((40_001, 10),)),
}
