"""The rows of ``jaxarc benchmark training``: speed with and without learning, and the share of each part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from jaxarc.agents.experiment import Experiment
from jaxarc.benchmarks.measure import Row
from jaxarc.benchmarks.suite import Measure
from jaxarc.benchmarks.training_parts import Speeds

DEFAULT_TRAINING_SIZES: Final = (256, 1024)

_TARGETS: Final = {5: 100e3, 30: 10e3}  # steps per second with learning, by the side of the canvas


def training_rows(experiments: Mapping[str, Experiment], sizes: Sequence[int] = DEFAULT_TRAINING_SIZES) -> list[Row]:
    """List rows of each experiment, with each of the batch sizes.

    Args:
        experiments: by name.
        sizes: numbers of environments; a minibatch keeps the size that it has in the experiment.

    Raises:
        ConfigValidationError: a number of environments does not consist of whole minibatches.
    """
    return [
        row
        for name, experiment in experiments.items()
        for size in sizes
        for row in _rows(f"{name}-{size}", with_environments(experiment, size))
    ]


def with_environments(experiment: Experiment, num_envs: int) -> Experiment:
    """Change the number of environments, but not the size of a minibatch.

    Raises:
        ConfigValidationError: ``num_envs`` does not consist of whole minibatches.
    """
    agent = experiment.agent
    num_minibatches = max(1, num_envs * agent.num_minibatches // agent.num_envs)
    return replace(experiment, agent=agent.replace(num_envs=num_envs, num_minibatches=num_minibatches))


def _rows(name: str, experiment: Experiment) -> list[Row]:
    agent = experiment.agent
    network = experiment.network
    height, width = experiment.environment.grid_shape
    speed = lambda field: _measure(experiment, lambda speeds: getattr(speeds, field))
    share = lambda field: _measure(experiment, lambda speeds: 100 * getattr(speeds, field))
    what = (
        f"{height}x{width}, {agent.num_envs:,} environments x {agent.rollout_steps} steps, {agent.num_epochs} x "
        f"{agent.num_minibatches} minibatches, {network.kind} network of {network.hidden_size}"
    )
    if sides := experiment.task.canvases:
        what += f", canvases {sides if sides == 'auto' else ', '.join(map(str, sides))}"
    target = _TARGETS.get(height) if height == width else None
    return [
        Row(f"learning-{name}", what, "steps/s", speed("learning"), target),
        Row(f"playing-{name}", "the same without learning: the policy acts", "steps/s", speed("playing")),
        Row(f"stepping-{name}", "the same without policy: actions are given", "steps/s", speed("environment")),
        Row(f"share-envs-{name}", "share of environments in the time of learning", "%", share("environment_share")),
        Row(f"share-policy-{name}", "share of the policy that acts", "%", share("policy_share")),
        Row(f"share-update-{name}", "share of updates", "%", share("update_share")),
    ]


def _measure(experiment: Experiment, read: Callable[[Speeds], float]) -> Measure:
    return lambda suite: read(suite.training_speeds(experiment))
