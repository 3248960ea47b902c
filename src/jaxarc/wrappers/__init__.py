"""Environments around environments: our types in, our types out."""

import importlib
from typing import Any

from jaxarc.wrappers.auto_reset import AutoReset
from jaxarc.wrappers.episode_statistics import EpisodeStatistics
from jaxarc.wrappers.flat_actions import FlatActions
from jaxarc.wrappers.trials import Trials
from jaxarc.wrappers.wrapper import Wrapper

__all__ = ["AutoReset", "EpisodeStatistics", "FlatActions", "Trials", "Wrapper"]


def __getattr__(name: str) -> Any:
    if name == "ExtendedMetrics":  # a wrapper of Stoa, which Stoix looks for here
        return importlib.import_module("jaxarc.stoix_adapter").ExtendedMetrics
    raise AttributeError(f"module 'jaxarc.wrappers' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
