"""Which operations a config allows."""

import functools

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig

DEMO_SWITCHES = (c.NEXT_DEMO_PAIR, c.PREVIOUS_DEMO_PAIR, c.FIRST_UNSOLVED_DEMO_PAIR)
TEST_SWITCHES = (c.NEXT_TEST_PAIR, c.PREVIOUS_TEST_PAIR, c.FIRST_UNSOLVED_TEST_PAIR)


def switches_pairs(config: JaxArcConfig) -> bool:
    """Whether an episode may go from one pair to another."""
    episode = config.episode
    return episode.allow_demo_switching if episode.mode == "train" else episode.allow_test_switching


@functools.cache
def legal_operations(config: JaxArcConfig) -> tuple[int, ...]:
    """Operation ids that are legal, in ascending order: allowed by the action config, and possible in the mode."""
    switches = DEMO_SWITCHES if config.episode.mode == "train" else TEST_SWITCHES
    possible = {*range(c.NUM_GRID_OPERATIONS), c.RESET_PAIR, *(switches if switches_pairs(config) else ())}
    allowed = config.action.allowed_operations
    legal = tuple(sorted(possible if allowed is None else possible & set(allowed)))
    if not legal:
        raise ValueError(
            f"action.allowed_operations={allowed} leaves no legal operation: in {config.episode.mode} mode with "
            f"switching {'on' if switches_pairs(config) else 'off'} the possible ones are {sorted(possible)}"
        )
    return legal
