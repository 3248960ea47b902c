"""The history records an action as it was done; what did nothing, as it was asked, as near as a byte can."""

import jax
import numpy as np
import pytest
from compiling import EXECUTORS
from reference.observation import History
from small_tasks import tasks_of

import jaxarc
from jaxarc import BboxAction, PointAction
from jaxarc.constants import FILL
from jaxarc.testing import create_test_config

H, W = 3, 5
GRID = np.ones((H, W), int)
TASKS = tasks_of((GRID, GRID))
KINDS = {"point": (PointAction, [[2, 300], [-7, 2], [1, 2]]), "bbox": (BboxAction, [[2, 300, -1, 0], [0, 1, 2, 99]])}


@pytest.mark.parametrize(  # every two of them meet
    ("selection_format", "policy", "executor"),
    [
        ("point", "noop", "xla"),
        ("point", "clip", EXECUTORS[0]),
        ("bbox", "noop", EXECUTORS[0]),
        ("bbox", "clip", "xla"),
    ],
)
def test_a_record_has_the_coordinates_that_were_used(selection_format, policy, executor):
    kind, selections = KINDS[selection_format]
    operations = [FILL + 3, 300]  # one that exists, and one that does not
    rules = create_test_config(20, selection_format, (H, W), invalid_action_policy=policy, executor=executor)
    env, params = jaxarc.make(TASKS, rules.with_fields(history_enabled=True))
    state, _ = env.reset(jax.random.key(0), params)
    asked = [(operation, *selection) for operation in operations for selection in selections]
    count = len(selections[0])
    highest = [H - 1, W - 1] * (count // 2) if policy == "clip" else None
    wanted = History(1, state.action_history.shape[0], count, highest)
    for time, (operation, *selection) in enumerate(asked):
        state, _, _, _, info = env.step(state, kind(operation, *selection), params)
        valid = ~np.asarray(info["invalid_action"])[None]
        of_one = (np.array([selection]), np.array([operation]), np.array([time]), np.zeros(1, int), valid)
        wanted.remember(np.zeros(1, int), *of_one)
    np.testing.assert_array_equal(state.action_history, wanted.records[0])
    if policy == "clip":
        cells = state.action_history[: len(asked), :count]
        assert cells[:, ::2].max() == H - 1
        assert cells[:, 1::2].max() == W - 1
