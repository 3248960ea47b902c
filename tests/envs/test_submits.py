"""What submits pay, end and leave behind."""

import jax
import pytest

from jaxarc.constants import NEXT_DEMO_PAIR, SUBMIT
from jaxarc.envs import BboxAction, arc_reset, arc_step
from jaxarc.tasks import create_task
from jaxarc.testing import create_test_config

CANVAS = (2, 3)
FILL = 2  # the whole grid, which solves both pairs
PAIRS = [([[1, 1]], [[2, 2]]), ([[3, 3]], [[2, 2]])]
RULES = {"allow_demo_switching": True, "max_submissions": 9, "similarity_weight": 0.0, "gamma": 1.0}


def play(operations, **fields):
    """Reward and ending of each step, and the last state."""
    config = create_test_config(selection_format="bbox", grid_shape=CANVAS, **{**RULES, **fields})
    state, _ = arc_reset(jax.random.key(0), config, create_task(PAIRS, PAIRS, CANVAS))
    steps = []
    for operation in operations:
        state, _, reward, done, _ = arc_step(state, BboxAction(operation, 0, 0, 1, 2), config)
        steps.append((float(reward) - config.reward.step_penalty, bool(done)))
    rewards, ends = zip(*steps, strict=True)
    return rewards, ends, state, config


def test_a_pair_that_is_solved_pays_once():
    rewards, ends, state, config = play([FILL, SUBMIT, SUBMIT, NEXT_DEMO_PAIR, FILL, SUBMIT])
    bonus = config.reward.success_bonus
    assert rewards == pytest.approx([0, bonus, 0, 0, 0, bonus], abs=1e-5)
    assert ends == (False,) * 5 + (True,)
    assert bool(state.is_solved)


def test_without_a_history_nothing_is_recorded():
    with_one, without = (play([FILL, SUBMIT], history_enabled=kept) for kept in (True, False))
    assert with_one[:2] == without[:2]
    assert without[2].action_records is None
    assert with_one[2].action_history[:2, 4].tolist() == [FILL, SUBMIT]  # behind the corners of the box
