"""What a page is told of the episodes that a run's agent plays."""

import json

import numpy as np

from jaxarc import constants as c
from jaxarc.agents.editing_kind import episode_for_page
from jaxarc.evaluation.episodes import EpisodeTrajectory


def trajectory_of(rewards):
    """A trajectory of submits on a grid of one cell."""
    num_steps = len(rewards)
    no_color = -np.ones((num_steps + 1, 2, 2), np.int8)
    grids = no_color.copy()
    grids[:, 0, 0] = 4
    return EpisodeTrajectory(
        task_index=0,
        pair_index=0,
        actions=[(c.SUBMIT, 0, 0, 0, 0)] * num_steps,
        grids=grids,
        clipboards=no_color,
        target=grids[0],
        rewards=np.array(rewards, np.float32),
        similarities=np.ones(num_steps + 1, np.float32),
        invalid=np.zeros(num_steps, bool),
        is_solved=True,
    )


def test_rewards_that_are_no_finite_numbers_are_reported_as_unknown():
    told = episode_for_page(trajectory_of([0.123, np.inf, np.nan]), "one")
    assert told["rewards"] == [0.123, None, None]
    assert told["grids"][0] == told["target"] == [[4]]
    json.dumps(told, allow_nan=False)
