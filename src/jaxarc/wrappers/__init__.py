"""Environments around environments: our types in, our types out."""

from jaxarc.lazy import lazy
from jaxarc.wrappers.episode_statistics import EpisodeStatistics
from jaxarc.wrappers.flat_actions import FlatActions
from jaxarc.wrappers.own import ObservationWrapper, RewardWrapper
from jaxarc.wrappers.trials import Trials
from jaxarc.wrappers.wrapper import AutoReset, Wrapper

__all__ = [
    "AutoReset",
    "EpisodeStatistics",
    "FlatActions",
    "ObservationWrapper",
    "RewardWrapper",
    "Trials",
    "Wrapper",
]

_HOMES = {"ExtendedMetrics": "jaxarc.stoix_adapter"}  # a wrapper of Stoa, which Stoix looks for here

__getattr__, __dir__ = lazy(__name__, _HOMES)
