"""The agreement of a surrogate with its expert in numbers, and policies that play held-out pairs."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from small_tasks import tasks_of

import jaxarc
from jaxarc import constants as c
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.surrogate.agreement import agreement
from jaxarc.surrogate.held_out import PlayedPairs, play_held_out


class PaintThenSubmit(eqx.Module):
    """Paints all cells with a color, and submits where they have it."""

    color: int

    def __call__(self, key, observation):
        operation = jnp.where((observation["working_grid"] == self.color).all(), c.SUBMIT, c.FILL + self.color)
        return BboxAction(operation, *(jnp.int32(place) for place in (0, 0, 1, 1)))


@pytest.mark.parametrize(("color", "solved", "mean_steps"), [(5, 0.5, 1.0), (7, 0.0, None)])
def test_each_held_out_pair_is_played_once_and_steps_count_where_it_is_solved(color, solved, mean_steps):
    # The second needs a submit alone; of the first two steps are wasted.
    tasks = tasks_of(*((np.full((2, 2), start), np.full((2, 2), output)) for start, output in ((0, 4), (5, 5))))
    rules = {"selection_format": "bbox", "max_grid_height": 2, "max_grid_width": 2, "max_episode_steps": 3}
    _, params = jaxarc.make(tasks, invalid_action_policy="noop", start_grid="input", include_step_count=True, **rules)
    assert play_held_out(PaintThenSubmit(color), params) == PlayedPairs(solved, mean_steps)


PROBS = np.array([[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0]])
IS_REAL = np.array([[True] * 4, [True] * 3 + [False], [True, True, False, False]])


def test_the_experts_own_opinion_agrees_in_everything():
    logits = np.log(np.maximum(PROBS, 1e-30))
    found = agreement(logits, PROBS, IS_REAL, PROBS)
    assert found.kl == pytest.approx(0, abs=1e-6)
    assert (found.top1_agreement, found.top5_agreement, found.regret) == (1, 1, 0)
    assert found.calibration_error == pytest.approx(0, abs=1e-6)
    assert sum(each.size for each in found.calibration) == IS_REAL.sum()


def test_equal_logits_are_as_far_away_as_the_entropy_says():
    found = agreement(np.zeros((3, 4)), PROBS, IS_REAL)
    entropy = [-(row[row > 0] * np.log(row[row > 0])).sum() for row in PROBS]
    expected = np.mean(np.log([4, 3, 2]) - entropy)
    assert found.kl == pytest.approx(expected, abs=1e-9)
    assert found.regret is None
    assert "regret" not in found.numbers()


def test_either_of_two_equal_favorites_is_right_and_padding_is_never_chosen():
    logits = np.array([[0.0, 9.0, 1.0, 2.0], [0.0, 0.0, 1.0, 99.0], [-5.0, -6.0, 99.0, 99.0]])
    found = agreement(logits, PROBS, IS_REAL)
    assert found.top1_agreement == 1


def test_regret_is_what_the_first_choice_is_worth_less_than_the_best_real_candidate():
    scores = np.array([[0.2, 0.9, 0.4, 0.0], [0.5, 0.5, 0.5, 9.0], [0.0, 0.3, 9.0, 9.0]])
    logits = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert agreement(logits, PROBS, IS_REAL, scores).regret == pytest.approx((0.7 + 0 + 0.3) / 3)
