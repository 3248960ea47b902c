"""Which operations a config allows."""

import functools

from jaxarc import constants as c
from jaxarc.config.action import ActionConfig
from jaxarc.config.episode import EpisodeConfig

DEMO_SWITCHES = (c.NEXT_DEMO_PAIR, c.PREVIOUS_DEMO_PAIR, c.FIRST_UNSOLVED_DEMO_PAIR)
TEST_SWITCHES = (c.NEXT_TEST_PAIR, c.PREVIOUS_TEST_PAIR, c.FIRST_UNSOLVED_TEST_PAIR)


def switches_pairs(episode: EpisodeConfig) -> bool:
    """Whether an episode may go from one pair to another."""
    if episode.mode == "trials":
        return False
    return episode.allow_demo_switching if episode.mode == "train" else episode.allow_test_switching


def possible_operations(episode: EpisodeConfig) -> frozenset[int]:
    """Operation ids that the mode and the switching rules allow."""
    switches = DEMO_SWITCHES if episode.mode == "train" else TEST_SWITCHES
    return frozenset([*range(c.NUM_GRID_OPERATIONS), c.RESET_PAIR, *(switches if switches_pairs(episode) else ())])


@functools.cache
def legal_operations(action: ActionConfig, episode: EpisodeConfig) -> tuple[int, ...]:
    """Operation ids that are legal, in ascending order: possible in the episode, and allowed by the action config."""
    possible, allowed = possible_operations(episode), action.allowed_operations
    return tuple(sorted(possible if allowed is None else possible & set(allowed)))
