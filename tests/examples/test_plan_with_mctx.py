"""The search of ``examples/plan_with_mctx.py`` on 2x2 grids: what it finds."""

import importlib.util
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_tasks import tasks_of

import jaxarc
from jaxarc import constants as c
from jaxarc.agents import EditPolicy
from jaxarc.config import NetworkConfig
from jaxarc.evaluation.solve_rate import first_state

pytest.importorskip("mctx", reason="mctx is not installed; pip install mctx")
PATH = Path(__file__).parents[2] / "examples" / "plan_with_mctx.py"
SPEC = importlib.util.spec_from_file_location("plan_with_mctx", PATH)
assert SPEC is not None
assert SPEC.loader is not None
planning = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = planning
SPEC.loader.exec_module(planning)

BLACK, RED = np.zeros((2, 2), int), np.full((2, 2), 2)
TASKS = tasks_of((RED, RED), (BLACK, RED))


@pytest.fixture(autouse=True)
def usual_promotion():
    """mctx adds integers and floats."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(scope="module")
def params():
    _, params = jaxarc.make(
        TASKS,
        max_grid_height=2,
        max_grid_width=2,
        max_episode_steps=5,
        selection_format="bbox",
        invalid_action_policy="noop",
        allowed_operations=(c.FILL, c.FILL + 2, c.SUBMIT),
        reward="editing",
        reveal_target=True,
        include_step_count=True,
        history_enabled=False,
    )
    return params


@pytest.fixture(scope="module")
def states(params):
    return jax.vmap(first_state, (None, 0))(params, jnp.arange(2, dtype=jnp.int32))


@pytest.fixture(scope="module")
def searched(params, states):
    """Candidates, and what a search over them found, from the solved and the black grid."""
    policy = EditPolicy.create(jax.random.key(0), params.config, NetworkConfig())
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        plan = planning.make_planner(params, policy, num_candidates=64, num_simulations=64)
        return jax.jit(plan)(jax.random.key(1), states)


def test_a_search_submits_what_is_right_and_nothing_else(searched):
    candidates, found = searched
    submits = np.asarray(candidates.operation) == c.SUBMIT
    share = (np.asarray(found.action_weights) * submits).sum(axis=1)
    assert submits.any(axis=1).all()
    assert share[0] > 0.5
    assert share[1] < 0.1
    np.testing.assert_array_equal(planning.chosen(candidates, found.action).operation, [c.SUBMIT, c.FILL + 2])


def test_an_edit_that_is_drawn_again_has_no_weight(searched):
    candidates, found = searched
    edits = np.stack(jax.tree.leaves(candidates), axis=-1)
    for row, weights in zip(edits, np.asarray(found.action_weights), strict=True):
        first = np.unique(row, axis=0, return_index=True)[1]
        repeats = np.setdiff1d(np.arange(len(row)), first)
        assert len(repeats) > 0
        assert weights[repeats].max() == 0
        assert weights.sum() == pytest.approx(1, rel=1e-5)
