"""How a surrogate's logits are compared with what the expert says."""

import numpy as np
import pytest

from jaxarc.training.surrogates.agreement import agreement

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


def test_the_first_five_are_asked_for_where_the_first_is_wrong():
    probs = np.eye(8)[[5, 0]]
    logits = -np.arange(8.0) * np.ones((2, 1))
    found = agreement(logits, probs, np.ones((2, 8), bool))
    assert (found.top1_agreement, found.top5_agreement) == (0.5, 0.5)


def test_regret_is_what_the_first_choice_is_worth_less_than_the_best_real_candidate():
    scores = np.array([[0.2, 0.9, 0.4, 0.0], [0.5, 0.5, 0.5, 9.0], [0.0, 0.3, 9.0, 9.0]])
    logits = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert agreement(logits, PROBS, IS_REAL, scores).regret == pytest.approx((0.7 + 0 + 0.3) / 3)


def test_who_is_too_sure_of_the_first_choice_is_not_calibrated():
    """It gives 0.95 to what the expert gives 0.5, and 0.05 to the other half: drawn by it, 0.95 of 0.45 and so on."""
    probs, logits = np.full((10, 2), 0.5), np.log([[0.95, 0.05]] * 10)
    found = agreement(logits, probs, np.ones((10, 2), bool))
    assert found.calibration_error == pytest.approx(0.45)
    assert [(each.size, round(each.predicted, 9), each.expected) for each in found.calibration] == [
        (10, 0.05, 0.5),
        (10, 0.95, 0.5),
    ]
