"""Numbers that change over a run."""

import optax

from jaxarc.config import ScheduleConfig
from jaxarc.surrogate.optimizer import rise_and_decay


def learning_rate_schedule(config: ScheduleConfig, num_steps: int) -> optax.Schedule:
    """Return the learning rate of each of ``num_steps`` steps of the optimizer."""
    warmup_steps = round(config.warmup_share * num_steps)
    return rise_and_decay(config.learning_rate, config.final_learning_rate, config.decay, warmup_steps, num_steps)


def entropy_weight_schedule(config: ScheduleConfig, num_updates: int) -> optax.Schedule:
    """Return the weight of the entropy in each of ``num_updates`` updates."""
    return optax.linear_schedule(config.entropy_weight, config.final_entropy_weight, max(num_updates, 1))
