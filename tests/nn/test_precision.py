"""Products and whole steps in fewer bits: what is rounded, what stays float32, and how far the results are off."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxarc.nn import Dense, cast_floats, mixed_precision_matmul, optimized_inference, optimized_train_step
from jaxarc.nn.layers import DTYPES

OPTIMIZER = optax.adamw(3e-2)
ROUNDING = {"float32": 1e-6, "tensorfloat32": 1e-6, "bfloat16": 2**-7, "float16": 2**-10}  # of two factors


def line(params, x):
    return x @ params["w"] + params["b"]


@pytest.fixture
def lines(nans_allowed, standard_promotion):
    """Make parameters that fit nothing yet, and 256 examples of the line that they should become."""
    x = jax.random.normal(jax.random.key(0), (256, 4))
    params = {"w": jnp.zeros((4, 3)), "b": jnp.zeros(3)}
    return params, {"x": x, "y": x @ jnp.arange(12.0).reshape(4, 3) / 12}


@pytest.mark.parametrize("precision", DTYPES)
def test_factors_are_rounded_and_sums_are_not(precision):
    x, w = (jax.random.uniform(jax.random.key(i), shape) for i, shape in enumerate([(5, 1000), (1000, 3)]))
    product = mixed_precision_matmul(x, w, precision)
    exact = np.asarray(x, np.float64) @ np.asarray(w, np.float64)
    assert product.dtype == jnp.float32
    np.testing.assert_allclose(product, exact, rtol=ROUNDING[precision])
    program = jax.make_jaxpr(mixed_precision_matmul, static_argnums=2)(x, w, precision)
    (product,) = (equation for equation in program.jaxpr.eqns if equation.primitive.name == "dot_general")
    assert {factor.aval.dtype for factor in product.invars} == {jnp.dtype(DTYPES[precision])}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_layer_sums_in_float32_and_returns_what_its_weights_are(dtype):
    layer = cast_floats(Dense(jax.random.key(0), 100, 3), dtype)
    x = jax.random.normal(jax.random.key(1), (2, 5, 100), jnp.float32)
    expected = mixed_precision_matmul(x, layer.weight, dtype).astype(dtype)
    np.testing.assert_array_equal(layer(x), expected)  # the bias is 0
    assert layer(x).dtype == dtype
    products = [one for one in jax.make_jaxpr(layer)(x).jaxpr.eqns if one.primitive.name == "dot_general"]
    assert [one.outvars[0].aval.dtype for one in products] == [jnp.float32]


@pytest.mark.parametrize("precision", DTYPES)
def test_a_step_learns_the_same_line_in_every_precision(lines, precision):
    params, batch = lines
    state = OPTIMIZER.init(params)
    losses = []
    for _ in range(150):
        given = params
        params, state, loss = optimized_train_step(
            params, state, batch, model=line, optimizer=OPTIMIZER, precision=precision
        )
        losses.append(float(loss))
    assert losses[0] > 0.3
    assert losses[-1] < 1e-3
    assert given["w"].is_deleted()  # its memory is that of the new one
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    predicted = optimized_inference(params, batch["x"], model=line, precision=precision)
    assert predicted.dtype == jnp.float32
    np.testing.assert_allclose(predicted, jax.vmap(line, (None, 0))(params, batch["x"]), atol=2e-2)


def test_a_gradient_too_small_for_float16_is_not_lost(lines):
    params, batch = lines
    plain = optax.sgd(1.0)
    small = {"x": batch["x"][:1], "y": batch["y"][:1] * 1e-7}  # float16 begins at 6e-8
    params, _, _ = optimized_train_step(
        params, plain.init(params), small, model=line, optimizer=plain, precision="float16"
    )
    expected = 2 / 3 * np.outer(small["x"][0], small["y"][0])
    np.testing.assert_allclose(params["w"], expected, rtol=0.05, atol=1e-10)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mixed_precision_matmul(x, x, "float8"),
        lambda x: optimized_inference({"w": x, "b": x[0]}, x, model=line, precision="float8"),
    ],
)
def test_an_unknown_precision_is_named(call):
    with pytest.raises(ValueError, match=r"float8.*float32.*bfloat16"):
        call(jnp.ones((2, 2)))


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 3\)"):
        mixed_precision_matmul(jnp.ones((2, 3)), jnp.ones((2, 3)))
