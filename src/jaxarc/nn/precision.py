"""Compute in fewer bits than the parameters have: products in bfloat16, float16 or TensorFloat-32, sums in float32.

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
import optax
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Float32

from jaxarc.fusion import compiles_for_cpu

Params: TypeAlias = Any
Model: TypeAlias = Callable[[Params, Array], Array]

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


@jax.jit(static_argnames=("model", "optimizer", "precision"), donate_argnums=(0, 1))
def optimized_train_step(
    params: Params,
    opt_state: optax.OptState,
    batch: dict[str, Array],
    *,
    model: Model,
    optimizer: optax.GradientTransformation,
    precision: str = "bfloat16",
) -> tuple[Params, optax.OptState, Float32[Array, ""]]:
    """Fit a model to a batch, by one step on the mean squared error; one compiled program.

    The model computes in ``precision`` and is vectorized over the batch; parameters, the error and the optimizer are
    float32. A model saves memory by ``jax.checkpoint`` on the body of the scan over its layers: around the whole loss
    it would save nothing, since the backward pass begins by computing all of it again.

    Args:
        params: float32; they and ``opt_state`` are donated, so use only what is returned.
        opt_state: of ``optimizer.init(params)``, or of the step before.
        batch: ``x [B, ...]`` and ``y [B, ...]``.
        model: of the parameters and the ``x`` of one example; a function that is defined once, since a new one is
            compiled anew.
        optimizer: of the parameters.
        precision: one of :data:`DTYPES`.

    Returns:
        The parameters, the state of the optimizer, and the loss before the step.
    """
    dtype = require_precision(precision, "optimized_train_step")

    def scaled_loss(params: Params) -> Float32[Array, ""]:
        predictions = _predict(model, cast_floats(params, dtype), batch["x"].astype(dtype))
        return jnp.mean((predictions - batch["y"]) ** 2) * LOSS_SCALES[precision]

    # In float16 a gradient of 1e-8 would be 0. Of 1024 times the loss it is 1e-5, and is divided in float32.
    with products_in(precision):
        loss, gradient = jax.value_and_grad(scaled_loss)(params)
    gradient = jax.tree.map(lambda x: x / LOSS_SCALES[precision], gradient)
    updates, opt_state = optimizer.update(gradient, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss / LOSS_SCALES[precision]


@jax.jit(static_argnames=("model", "precision"))
def optimized_inference(
    params: Params, x_batch: Float[Array, "B *n"], *, model: Model, precision: str = "bfloat16"
) -> Float32[Array, "B *m"]:
    """Return what a model predicts for each example; parameters and inputs are cast to ``precision``.

    Args:
        params: of the model.
        x_batch: inputs of B examples.
        model: see :func:`optimized_train_step`.
        precision: one of :data:`DTYPES`.
    """
    dtype = require_precision(precision, "optimized_inference")
    with products_in(precision):
        return _predict(model, cast_floats(params, dtype), x_batch.astype(dtype))


def _predict(model: Model, params: Params, x_batch: Array) -> Array:
    return jax.vmap(model, (None, 0))(params, x_batch).astype(jnp.float32)


def require_precision(precision: str, function: str) -> DTypeLike:
    """Return the dtype of a precision; ``function`` is named where there is no such precision.

    Raises:
        ValueError: the precision is not one of :data:`DTYPES`.
    """
    if precision not in DTYPES:
        raise ValueError(f"{function}: unknown precision {precision!r}; choose one of {', '.join(DTYPES)}")
    return DTYPES[precision]
