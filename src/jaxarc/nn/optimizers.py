"""Optimizers, and the schedules of learning rates and loss weights."""

import equinox as eqx
import optax

from jaxarc.config import ScheduleConfig, SurrogateTrainingConfig


def make_surrogate_optimizer(config: SurrogateTrainingConfig) -> optax.GradientTransformation:
    """Return AdamW on clipped gradients, with the learning rate of the config."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.adamw(surrogate_learning_rate(config), weight_decay=config.weight_decay),
    )


def init_optimizer(optimizer: optax.GradientTransformation, model: eqx.Module) -> optax.OptState:
    """Make the first state of an optimizer for the parameters of a model, which are its floating-point arrays."""
    return optimizer.init(eqx.filter(model, eqx.is_inexact_array))


def surrogate_learning_rate(config: SurrogateTrainingConfig) -> optax.Schedule:
    """Return the learning rate of each of ``config.num_steps`` steps."""
    return warmup_then_decay(
        config.learning_rate, config.final_learning_rate, config.decay, config.warmup_steps, config.num_steps
    )


def learning_rate_schedule(config: ScheduleConfig, num_steps: int) -> optax.Schedule:
    """Return the learning rate of each of ``num_steps`` steps of an agent's optimizer."""
    warmup_steps = round(config.warmup_share * num_steps)
    return warmup_then_decay(config.learning_rate, config.final_learning_rate, config.decay, warmup_steps, num_steps)


def entropy_weight_schedule(config: ScheduleConfig, num_updates: int) -> optax.Schedule:
    """Return the weight of the entropy in each of ``num_updates`` updates, which changes in a straight line."""
    return optax.linear_schedule(config.entropy_weight, config.final_entropy_weight, max(num_updates, 1))


def warmup_then_decay(peak: float, final: float, decay: str, warmup_steps: int, num_steps: int) -> optax.Schedule:
    """Return a schedule that rises from 0 to ``peak`` in a straight line and then falls to ``final``.

    With ``peak=1, final=0, decay="linear", warmup_steps=2, num_steps=6`` the steps 0 .. 6 get
    0, 0.5, 1, 0.75, 0.5, 0.25, 0.

    Args:
        peak: after the warmup.
        final: after ``num_steps``, unless ``decay`` is "constant".
        decay: one of :data:`jaxarc.config.agent_training.Decay`.
        warmup_steps: of the rise; 0 starts at ``peak``.
        num_steps: rise and fall together.
    """
    # The second schedule counts its steps from the end of the warmup on, so it has what is left of the steps.
    decay_steps = max(num_steps - warmup_steps, 1)
    match decay:
        case "linear":
            fall = optax.linear_schedule(peak, final, decay_steps)
        case "cosine":
            fall = optax.cosine_decay_schedule(peak, decay_steps, alpha=final / peak if peak else 0.0)
        case _:
            fall = optax.constant_schedule(peak)
    if not warmup_steps:
        return fall
    return optax.join_schedules([optax.linear_schedule(0.0, peak, warmup_steps), fall], [warmup_steps])
