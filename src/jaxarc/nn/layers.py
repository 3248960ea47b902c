"""Layers of the last axis, in the precision of their weights.

A layer computes in bfloat16 where its weights were cast to bfloat16. Sums of squares and the softmax of the attention
are float32 all the same: a sum of 64 squares in bfloat16 has only about two correct digits.

A float32 has 8 bits of exponent and 23 of fraction. bfloat16 keeps the exponent and 7 bits of fraction, so it has the
same range and two correct digits. float16 keeps 10 bits of fraction and 5 of exponent: above 65,504 it is infinite, and
gradients below 6e-8 are 0, which is why a loss is multiplied by :data:`LOSS_SCALES` before they are taken.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Float32, Int, Shaped

from jaxarc.device_arrays import device_array
from jaxarc.fusion import compiles_for_cpu
from jaxarc.types import PRNGKey, round_up

Activation: TypeAlias = Callable[[Float[Array, "*B"]], Float[Array, "*B"]]
Draws: TypeAlias = PRNGKey | Float32[Array, "..."]
"""A random key, or the normal numbers that it gives, drawn already: see :func:`draw_together`."""


def draw_together(key: PRNGKey, count: int, largest: int) -> Float32[Array, "count 2 largest"]:
    """Draw the weights of ``count`` perceptrons, as each would with a key of ``jax.random.split(key, count)``.

    XLA compiles a draw as ten kernels and a loop, so one for all layers saves seconds at the start of a run.

    Args:
        key: random key.
        count: of :class:`MLP`.
        largest: the most weights of a layer; a smaller layer takes the first of its row.
    """
    keys = jax.vmap(jax.random.split)(jax.random.split(key, count))
    return jax.vmap(jax.vmap(lambda key: jax.random.normal(key, (largest,), jnp.float32)))(keys)


def _is_drawn(draws: Draws) -> bool:
    return jnp.issubdtype(draws.dtype, jnp.floating)


class Dense(eqx.Module):
    """An affine map of the last axis, in the precision of the weights; the bias starts at 0."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, key: Draws, inputs: int, outputs: int, scale: float | None = None):
        """Draw the weights.

        Args:
            key: random key, or normal numbers, of which the first are taken.
            inputs: size of the last axis before.
            outputs: size of the last axis after.
            scale: standard deviation of the weights; ``sqrt(2 / inputs)`` (He et al. 2015) when left out.
        """
        deviation = (2.0 / inputs) ** 0.5 if scale is None else scale
        count = inputs * outputs
        numbers = key[:count] if _is_drawn(key) else jax.random.normal(key, (count,), jnp.float32)
        self.weight = numbers.reshape(inputs, outputs) * deviation
        self.bias = jnp.zeros((outputs,), jnp.float32)

    def __call__(self, x: Float[Array, "*B inputs"]) -> Float[Array, "*B outputs"]:
        dtype = self.weight.dtype
        product = mixed_precision_matmul(x, self.weight, dtype.name).astype(dtype)
        # Rank promotion is an error in our tests, so the bias gets the axes of x: (outputs,) -> (1, .., 1, outputs).
        return product + self.bias.reshape(*[1] * (x.ndim - 1), -1)


def relu(x: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the positive part; unlike ``jax.nn.relu`` a module that holds this function can be pickled."""
    return jax.nn.relu(x)


class MLP(eqx.Module):
    """Two dense layers with an activation in between.

    The last layer starts small by default, so that the logits of a fresh head are nearly equal.
    """

    hidden: Dense
    last: Dense
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        key: Draws,
        sizes: tuple[int, int, int],
        scale: float | None = None,
        last_scale: float = 0.01,
        activation: Activation = relu,
    ):
        """Draw the weights.

        Args:
            key: random key, or a row of normal numbers for each layer.
            sizes: inputs, hidden units and outputs.
            scale: of the first layer, see :class:`Dense`.
            last_scale: of the last layer.
            activation: of the hidden units.
        """
        key_hidden, key_last = key if _is_drawn(key) else jax.random.split(key)
        inputs, hidden, outputs = sizes
        self.hidden = Dense(key_hidden, inputs, hidden, scale)
        self.last = Dense(key_last, hidden, outputs, last_scale)
        self.activation = activation

    def __call__(self, x: Float[Array, "*B inputs"]) -> Float[Array, "*B outputs"]:
        return self.last(self.activation(self.hidden(x)))


def lecun_scale(inputs: int, gain: float = 1.0) -> float:
    """Return the standard deviation of weights that keeps the variance of the inputs, times ``gain``."""
    return gain * inputs**-0.5


def gelu_mlp(key: PRNGKey, sizes: tuple[int, int, int], last_gain: float = 1.0) -> MLP:
    """Make the perceptron of a transformer layer; ``last_gain`` scales its last layer."""
    inputs, hidden, _ = sizes
    return MLP(key, sizes, lecun_scale(inputs, 2**0.5), lecun_scale(hidden, last_gain), jax.nn.gelu)


def rms_norm(x: Float[Array, "*B C"]) -> Float[Array, "*B C"]:
    """Scale the last axis to a mean square of 1 (Zhang and Sennrich 2019), without a learned gain."""
    # (3, 4) has the mean square 12.5 and becomes (0.85, 1.13), whose mean square is 1.
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt((wide * wide).mean(axis=-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def attention(
    queries: Float[Array, "*B n h c"], keys: Float[Array, "*B n h c"], values: Float[Array, "*B n h c"]
) -> Float[Array, "*B n h c"]:
    """Return scaled dot-product attention of each of n positions to all n, with h heads of c channels."""
    # [n, h, c] x [m, h, c] -> [h, n, m], then a softmax over m. A product of c random numbers has a deviation of
    # sqrt(c), by which scores are divided: else the softmax would be nearly one-hot from the start.
    scores = jnp.einsum("...nhc,...mhc->...hnm", queries, keys, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores * queries.shape[-1] ** -0.5, axis=-1).astype(values.dtype)
    return jnp.einsum("...hnm,...mhc->...nhc", shares, values)


DTYPES: Final = {  # of what is cast, by the name in a config
    "float32": jnp.float32,
    "tensorfloat32": jnp.float32,  # the products round, nothing is cast
    "bfloat16": jnp.bfloat16,
    "float16": jnp.float16,
}
LOSS_SCALES: Final = {"float32": 1.0, "tensorfloat32": 1.0, "bfloat16": 1.0, "float16": 1024.0}
_PRODUCTS: Final = {"tensorfloat32": "tensorfloat32", "bfloat16": "BF16_BF16_F32"}


def products_in(precision: str) -> AbstractContextManager[None]:
    """Trace matrix products of float32 with factors rounded to ``precision``; sums are float32 either way.

    ``"tensorfloat32"`` and ``"bfloat16"`` round the factors as the units for products of GPUs and TPUs read them;
    any other name changes nothing. On a CPU factors stay as they are: it has no such products.
    """
    if precision not in _PRODUCTS or compiles_for_cpu():
        return nullcontext()
    return jax.default_matmul_precision(_PRODUCTS[precision])


def cast_floats(tree: Any, dtype: DTypeLike) -> Any:
    """Cast every array of floating-point numbers in a pytree; other leaves stay.

    Cast both the parameters and the inputs: bfloat16 times float32 is computed in float32. The gradient flows back
    through the cast, so that of float32 parameters is float32, rounded to bfloat16 once for each part of a batch.
    """
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


def mixed_precision_matmul(
    x: Float[Array, "*B n"], w: Float[Array, "n m"], precision: str = "bfloat16"
) -> Float32[Array, "*B m"]:
    """Multiply matrices whose entries are rounded to ``precision``; sums and result are float32.

    Rounding the sums too, as ``x @ w`` of two bfloat16 matrices does, would leave two correct digits of a sum however
    many numbers it adds: bfloat16 has 8 significant bits, and 257 needs nine, so a sum of ones would stop at 256.

    Raises:
        ValueError: the precision is not one of :data:`DTYPES`, or the shapes do not fit.
    """
    dtype = require_precision(precision, "mixed_precision_matmul")
    if not x.ndim or w.ndim != 2 or x.shape[-1] != w.shape[0]:
        raise ValueError(
            f"mixed_precision_matmul: x of shape {x.shape} and w of shape {w.shape} cannot be multiplied; the last "
            "axis of x has to be as long as the first of the matrix w"
        )
    with products_in(precision):
        return jnp.matmul(x.astype(dtype), w.astype(dtype), preferred_element_type=jnp.float32)


def require_precision(precision: str, function: str) -> DTypeLike:
    """Return the dtype of a precision; ``function`` is named where there is no such precision.

    Raises:
        ValueError: the precision is not one of :data:`DTYPES`.
    """
    if precision not in DTYPES:
        raise ValueError(f"{function}: unknown precision {precision!r}; choose one of {', '.join(DTYPES)}")
    return DTYPES[precision]


TPU_LANES: Final = 128  # elements, not bytes, that a vector unit of a TPU handles at once


def padded_fn(
    x: Shaped[Array, "m *rest"], n: int | Int[Array, ""], max_n: int = 10
) -> tuple[Shaped[Array, "max_n*m *rest"], Bool[Array, " max_n*m"]]:
    """Repeat an array ``n`` times along its first axis, with zeros up to ``max_n`` times.

    The shape depends on ``max_n`` alone, so compiled code takes any ``n``, a traced one too::

        padded_fn([1, 2], n=2, max_n=3)  ->  [1, 2, 1, 2, 0, 0], [True, True, True, True, False, False]

    Returns:
        The padded array, and true where it is no padding.

    Raises:
        ValueError: ``x`` is a scalar, or ``max_n`` is below 1.
        EquinoxRuntimeError: ``n`` is not within 0 .. ``max_n``.
    """
    if not x.ndim or max_n < 1:
        raise ValueError(
            f"padded_fn: x needs an axis to repeat and max_n must be at least 1, got the shape {x.shape} and {max_n}"
        )
    n = device_array(n)
    n = eqx.error_if(n, (n < 0) | (n > max_n), f"padded_fn: n must be within 0 .. max_n={max_n}; pass a larger max_n")
    return pad_rows(jnp.tile(x, (max_n, *[1] * (x.ndim - 1))), n * x.shape[0], max_n * x.shape[0])


def pad_rows(
    x: Shaped[Array, "m *rest"], count: int | Int[Array, ""], size: int
) -> tuple[Shaped[Array, "size *rest"], Bool[Array, " size"]]:
    """Keep the first ``count`` rows, and add zeros up to ``size`` rows; returns also true where a row is kept."""
    is_real = jnp.arange(size) < count
    padded = jnp.pad(x, ((0, size - x.shape[0]), *[(0, 0)] * (x.ndim - 1)))
    return jnp.where(is_real.reshape(-1, *[1] * (x.ndim - 1)), padded, jnp.zeros((), x.dtype)), is_real


def make_tpu_friendly_shape(size: int) -> int:
    """Round a size of an axis up to a multiple of 128, the lanes of a TPU: 1 -> 128, 128 -> 128, 129 -> 256."""
    if size < 1:
        raise ValueError(f"make_tpu_friendly_shape: a size is at least 1, got {size}; leave an empty axis out")
    return round_up(size, TPU_LANES)
