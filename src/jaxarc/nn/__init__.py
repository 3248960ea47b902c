"""Layers and optimizers that the agents and the surrogate share."""

from jaxarc.nn.layers import MLP, Dense, attention, gelu_mlp, lecun_scale, rms_norm
from jaxarc.nn.optimizers import (
    entropy_weight_schedule,
    init_optimizer,
    learning_rate_schedule,
    make_surrogate_optimizer,
    surrogate_learning_rate,
    warmup_then_decay,
)

__all__ = [
    "MLP",
    "Dense",
    "attention",
    "entropy_weight_schedule",
    "gelu_mlp",
    "init_optimizer",
    "learning_rate_schedule",
    "lecun_scale",
    "make_surrogate_optimizer",
    "rms_norm",
    "surrogate_learning_rate",
    "warmup_then_decay",
]
