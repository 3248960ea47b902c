"""Layers, optimizers and precision that the agents and the surrogate share."""

from jaxarc.nn.layers import MLP, Dense, attention, gelu_mlp, lecun_scale, rms_norm
from jaxarc.nn.optimizers import (
    entropy_weight_schedule,
    init_optimizer,
    learning_rate_schedule,
    make_surrogate_optimizer,
    surrogate_learning_rate,
    warmup_then_decay,
)
from jaxarc.nn.padding import make_tpu_friendly_shape, padded_fn
from jaxarc.nn.precision import cast_floats, mixed_precision_matmul, products_in
from jaxarc.nn.update import optimized_inference, optimized_train_step, predict, update

__all__ = [
    "MLP",
    "Dense",
    "attention",
    "cast_floats",
    "entropy_weight_schedule",
    "gelu_mlp",
    "init_optimizer",
    "learning_rate_schedule",
    "lecun_scale",
    "make_surrogate_optimizer",
    "make_tpu_friendly_shape",
    "mixed_precision_matmul",
    "optimized_inference",
    "optimized_train_step",
    "padded_fn",
    "predict",
    "products_in",
    "rms_norm",
    "surrogate_learning_rate",
    "update",
    "warmup_then_decay",
]
