"""Environments around environments: our types in, our types out."""

from jaxarc.wrappers.auto_reset import AutoReset
from jaxarc.wrappers.episode_statistics import EpisodeStatistics

__all__ = ["AutoReset", "EpisodeStatistics"]
