"""Play a recording of ARC-AGI-3 again."""

import numpy as np


def assert_plays_again(recording, game):
    """The game shows the frames of the recording after each of its actions."""
    assert recording.game == game.name
    for number, (action, x, y, seen) in enumerate(recording.steps, start=1):
        found = game.send(action, x, y)
        assert len(found.frames) == len(seen.frames), number
        assert all(map(np.array_equal, found.frames, seen.frames)), number
        assert (found.state, found.levels_completed) == (seen.state, seen.levels_completed), number
