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
    return rise_and_decay(
        config.learning_rate, config.final_learning_rate, config.decay, config.warmup_steps, config.num_steps
    )


def rise_and_decay(highest: float, last: float, decay: str, warmup_steps: int, num_steps: int) -> optax.Schedule:
    """Return a number that rises from 0 in a straight line and then falls.

    Args:
        highest: after the rise.
        last: after all steps, except where it is to stay "constant".
        decay: how it falls, of :data:`jaxarc.config.schedule.DECAYS`.
        warmup_steps: of the rise; 0 for none.
        num_steps: together.
    """
    rest = max(num_steps - warmup_steps, 1)
    match decay:
        case "linear":
            fall = optax.linear_schedule(highest, last, rest)
        case "cosine":
            fall = optax.cosine_decay_schedule(highest, rest, alpha=last / highest if highest else 0.0)
        case _:
            fall = optax.constant_schedule(highest)
    if not warmup_steps:
        return fall
    return optax.join_schedules([optax.linear_schedule(0.0, highest, warmup_steps), fall], [warmup_steps])
