"""What turns gradients into updates, and how fast."""

import equinox as eqx
import optax

from jaxarc.config.surrogate import SurrogateTrainingConfig


def make_surrogate_optimizer(config: SurrogateTrainingConfig) -> optax.GradientTransformation:
    """Return AdamW on clipped gradients, with the learning rate of the config."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.adamw(learning_rate_schedule(config), weight_decay=config.weight_decay),
    )


def init_optimizer(optimizer: optax.GradientTransformation, model: eqx.Module) -> optax.OptState:
    """Make the first state of an optimizer for the parameters of a model, which are its floating-point arrays."""
    return optimizer.init(eqx.filter(model, eqx.is_inexact_array))


def learning_rate_schedule(config: SurrogateTrainingConfig) -> optax.Schedule:
    """Return the learning rate of each of ``config.num_steps`` steps."""
    rest = config.num_steps - config.warmup_steps
    highest, last = config.learning_rate, config.final_learning_rate
    match config.decay:
        case "linear":
            decay = optax.linear_schedule(highest, last, rest)
        case "cosine":
            decay = optax.cosine_decay_schedule(highest, rest, alpha=last / highest if highest else 0.0)
        case _:
            decay = optax.constant_schedule(highest)
    if not config.warmup_steps:
        return decay
    return optax.join_schedules(
        [optax.linear_schedule(0.0, highest, config.warmup_steps), decay], [config.warmup_steps]
    )
