"""Environments around environments: our types in, our types out."""

from jaxarc.wrappers.auto_reset import AutoReset
from jaxarc.wrappers.episode_statistics import EpisodeStatistics
from jaxarc.wrappers.flat_actions import FlatActions
from jaxarc.wrappers.stacked_observations import StackedObservations
from jaxarc.wrappers.trials import Trials
from jaxarc.wrappers.wrapper import Wrapper

__all__ = ["AutoReset", "EpisodeStatistics", "FlatActions", "StackedObservations", "Trials", "Wrapper"]


def __dir__() -> list[str]:
    return sorted(__all__)
