"""Numbers that change over a run."""

import numpy as np
import pytest

from jaxarc.config import ScheduleConfig
from jaxarc.nn.update import entropy_weight_schedule, learning_rate_schedule

STEPS = 100


def rates(steps=STEPS, **fields):
    schedule = learning_rate_schedule(ScheduleConfig(learning_rate=0.8, final_learning_rate=0.2, **fields), steps)
    return np.array([float(schedule(step)) for step in (0, steps // 4, steps // 2, steps, 2 * steps)])


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("linear", [0.8, 0.65, 0.5, 0.2, 0.2]),
        ("cosine", [0.8, 0.2 + 0.3 * (1 + np.cos(np.pi / 4)), 0.5, 0.2, 0.2]),
        ("constant", [0.8] * 5),
    ],
)
def test_the_learning_rate_decays_as_its_name_says_and_stays_at_the_end(decay, expected):
    np.testing.assert_allclose(rates(decay=decay), expected, rtol=1e-5)


@pytest.mark.parametrize("decay", ["linear", "cosine", "constant"])
def test_a_warmup_rises_from_nothing_to_where_the_decay_begins(decay):
    schedule = learning_rate_schedule(
        ScheduleConfig(learning_rate=0.8, final_learning_rate=0.2, decay=decay, warmup_share=0.25), STEPS
    )
    rising = [float(schedule(step)) for step in (0, 5, 10, 25)]
    np.testing.assert_allclose(rising, [0.0, 0.16, 0.32, 0.8], rtol=1e-5)
    unwarmed = learning_rate_schedule(
        ScheduleConfig(learning_rate=0.8, final_learning_rate=0.2, decay=decay), STEPS - 25
    )
    for step in (25, 50, 99, 100):
        np.testing.assert_allclose(schedule(step), unwarmed(step - 25), rtol=1e-5)


def test_a_learning_rate_of_nothing_stays_nothing():
    for decay in ("linear", "cosine", "constant"):
        schedule = learning_rate_schedule(ScheduleConfig(0.0, 0.0, decay=decay), STEPS)
        assert [float(schedule(step)) for step in (0, 50, 100)] == [0.0] * 3


def test_the_entropy_weight_goes_straight_from_one_number_to_the_other():
    schedule = entropy_weight_schedule(ScheduleConfig(entropy_weight=0.1, final_entropy_weight=0.02), 8)
    np.testing.assert_allclose([float(schedule(step)) for step in (0, 4, 8, 9)], [0.1, 0.06, 0.02, 0.02], rtol=1e-5)
