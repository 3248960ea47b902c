"""The limits of a program search."""

from dataclasses import dataclass
from typing import Final

from jaxarc.config.build import CheckedConfig, limited

MAX_COST: Final = 12  # of a state, whatever the budget


@dataclass(frozen=True)
class SearchConfig(CheckedConfig):
    """How far a search goes at one test input; one that reaches a limit answers with what it has."""

    max_cost: int = limited(6, low=0, high=MAX_COST)  # of a state: an image function costs 2, one of a list 1
    max_states: int = limited(400_000, low=1, high=5_000_000)  # different states of each naming of the colors
    megabytes: int = limited(1000, low=1)  # of images, about, for each process
    seconds: float = limited(30.0, low=0.0)  # after which no function is applied any more
    answers: int = limited(2, low=1, high=100)  # different answers at most
    sizes: int = limited(2, low=1, high=10)  # guesses of the answer's size
    guidance: str = "none"  # or the path of weights of jaxarc train surrogate=search, by which likely words come first
