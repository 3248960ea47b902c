"""Numbers that change over a run."""

import optax

from jaxarc.config import ScheduleConfig


def learning_rate_schedule(config: ScheduleConfig, num_steps: int) -> optax.Schedule:
    """Return the learning rate of each of ``num_steps`` steps of the optimizer."""
    warmup = round(config.warmup_share * num_steps)
    rest = max(num_steps - warmup, 1)
    start, end = config.learning_rate, config.final_learning_rate
    match config.decay:
        case "linear":
            decay = optax.linear_schedule(start, end, rest)
        case "cosine":
            decay = optax.cosine_decay_schedule(start, rest, alpha=end / start if start else 0.0)
        case _:
            decay = optax.constant_schedule(start)
    if not warmup:
        return decay
    return optax.join_schedules([optax.linear_schedule(0.0, start, warmup), decay], [warmup])


def entropy_weight_schedule(config: ScheduleConfig, num_updates: int) -> optax.Schedule:
    """Return the weight of the entropy in each of ``num_updates`` updates."""
    return optax.linear_schedule(config.entropy_weight, config.final_entropy_weight, max(num_updates, 1))
