"""What one key gives a reset: random words, each for one use."""

from typing import NamedTuple

from jaxtyping import Array, UInt32

from jaxarc.prng import as_typed_key, split_words
from jaxarc.types import PRNGKey


class EpisodeKeys(NamedTuple):
    """Random words of one reset, each for one use."""

    task: UInt32[Array, ""]
    pair: UInt32[Array, ""]
    start: UInt32[Array, " words"]  # data of the key of the start grid
    state: UInt32[Array, " words"]  # data of the key of the next episode
    augmentation: UInt32[Array, " words"]  # data of the key of the augmentation
    generation: UInt32[Array, " words"]  # data of the key of a generated task


def split_for_episode(key: PRNGKey) -> EpisodeKeys:
    """Draw everything that a reset needs from one key."""
    words = split_words(as_typed_key(key), 6)
    return EpisodeKeys(words[0, 0], words[1, 0], *words[2:])
