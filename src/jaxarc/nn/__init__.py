"""Layers, optimizers and precision that the agents and the surrogate share."""

from jaxarc.extras import require_library

require_library("optax")  # before the rest asks for it without a word on how to install it

from jaxarc.nn.layers import (  # noqa: E402
    MLP,
    Dense,
    attention,
    cast_floats,
    gelu_mlp,
    lecun_scale,
    make_tpu_friendly_shape,
    mixed_precision_matmul,
    padded_fn,
    products_in,
    rms_norm,
)
from jaxarc.nn.update import (  # noqa: E402
    entropy_weight_schedule,
    init_optimizer,
    learning_rate_schedule,
    make_surrogate_optimizer,
    optimized_inference,
    optimized_train_step,
    predict,
    surrogate_learning_rate,
    update,
    warmup_then_decay,
)

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
