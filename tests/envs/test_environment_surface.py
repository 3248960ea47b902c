"""What users of gymnax look for on an environment, and what an interpreter prints of its parts."""

import jax
import jax.numpy as jnp
import pytest

import jaxarc
from jaxarc import BboxAction, MaskAction, PointAction
from jaxarc.datasets import TaskSet
from jaxarc.envs.action_masks import FlatActionCodec
from jaxarc.tasks.task import mock_raw_task
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions

TASKS = TaskSet("mock", (mock_raw_task(3, 4),))
STEPS = 6


def made(selection_format="bbox"):
    return jaxarc.make(TASKS, create_test_config(STEPS, selection_format, (3, 4)))


def wrapped(env):
    return EpisodeStatistics(AutoReset(FlatActions(env)))


def test_an_environment_knows_its_name_and_its_default_params_through_wrappers():
    env, params = made()
    assert [e.name for e in (env, wrapped(env))] == ["jaxarc/mock"] * 2
    assert all(e.default_params is params for e in (env, wrapped(env)))


def test_a_generator_is_named_as_it_was_asked_for():
    env, params = jaxarc.make("procedural/gravity", max_grid_height=5, max_grid_width=5)
    assert env.name == "jaxarc/procedural/gravity"
    assert env.default_params is params


def test_num_actions_is_the_size_of_a_flat_action_space():
    env, params = made("point")
    assert wrapped(env).num_actions == FlatActions(env).action_space(params).n == 36 * 3 * 4


@pytest.mark.parametrize("selection_format", ["point", "bbox", "mask"])
def test_structured_actions_have_no_number(selection_format):
    env, _ = made(selection_format)
    with pytest.raises(ValueError, match=rf"'{selection_format}'.*flat_actions=True"):
        env.num_actions  # noqa: B018


@pytest.mark.parametrize(("selection_format", "side"), [("point", 30), ("bbox", 9)])
def test_flat_actions_have_numbers_up_to_the_canvas_that_the_error_names(selection_format, side):
    codec = FlatActionCodec.of(create_test_config(STEPS, selection_format, (side, side)))
    assert codec.num_actions <= 100_000
    if side < 30:
        with pytest.raises(ValueError, match=r"108,900 .*the limit is 100,000"):
            FlatActionCodec.of(create_test_config(STEPS, selection_format, (side + 1, side + 1)))


def test_an_environment_without_params_says_which_to_pass():
    for env in (jaxarc.ArcEnvironment(), AutoReset(jaxarc.ArcEnvironment())):
        assert env.name == "jaxarc"
        with pytest.raises(AttributeError, match=r"default_params.*jaxarc\.make"):
            env.default_params  # noqa: B018


def test_default_params_are_no_part_of_what_is_compiled():
    traces = []

    @jax.jit
    def name_of(env):
        traces.append(env.name)
        return jnp.int32(0)

    name_of(made()[0])
    name_of(made()[0])
    assert traces == ["jaxarc"]
    assert jax.tree.leaves(made()[0]) == []


def test_environments_with_other_default_params_are_not_equal():
    # A function with the environment as a static argument may read its default params.
    one, other = made()[0], made()[0]
    assert one == one
    assert one != other


def test_params_replace_fields_of_their_own_and_of_the_config():
    _, params = made()
    other = params.replace(weights=jnp.array([2.0]), max_episode_steps=3)
    assert (other.weights.tolist(), other.config.environment.max_episode_steps) == ([2.0], 3)
    assert other.tasks is params.tasks
    assert params.config.environment.max_episode_steps == STEPS


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (PointAction(12, 3, 4), "PointAction(flood fill 2, row 3, column 4)"),
        (BboxAction(3, 2, 0, 0, 0), "BboxAction(fill 3, rows 0–2, column 0)"),
        (BboxAction(34, 0, 1, 0, 5), "BboxAction(submit, row 0, columns 1–5)"),
        (MaskAction(28, jnp.eye(3, dtype=bool)), "MaskAction(copy, 3 of 9 cells)"),
        (PointAction(99, -1, 0), "PointAction(operation 99, row -1, column 0)"),
    ],
)
def test_an_action_prints_its_operation_and_its_cells(action, text):
    assert repr(action) == text


def test_batches_and_traced_values_print_their_shapes():
    env, params = made("point")
    batch = PointAction(*[jnp.arange(8)] * 3)
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), 8), params)
    assert repr(batch) == "PointAction(operation=i32[8], row=i32[8], col=i32[8])"
    assert repr(states) == "ArcEnvState(3x4, point, batch of 8)"
    printed = []
    jax.jit(lambda tree: printed.append(repr(tree)))((batch, states))
    assert "i32[8]" in printed[0]
    assert "i32[8,5]" in printed[0]


def test_states_params_and_environments_print_on_one_short_line():
    env, params = made()
    state, _ = env.reset(jax.random.key(0), params, 0, 1)
    state, *_ = env.step(state, BboxAction(34, 0, 0, 0, 0), params)
    assert repr(env) == "ArcEnvironment('jaxarc/mock')"
    assert repr(params) == "EnvParams(1 task on 3x4, bbox actions, train mode, 6 steps)"
    assert repr(params.replace(layout="flat")).endswith(", 6 steps, observations (132,))")
    assert repr(state).startswith("ArcEnvState(3x4, bbox, task 0, pair 1, step 1, similarity 0.")
    assert repr(state).endswith(", terminated)")


def test_grids_and_counters_of_a_state_are_replaced_by_their_names():
    env, params = made()
    action = BboxAction(5, 0, 0, 0, 1)
    start, _ = env.reset(jax.random.key(0), params)
    later, *_ = env.step(start, action, params)
    assert not (later.working_grid == start.working_grid).all()
    back = later.replace(working_grid=start.working_grid, step_count=0)
    assert (back.working_grid == start.working_grid).all()
    assert back.similarity_score == start.similarity_score
    assert (back.grid_size == start.grid_size).all()
    again, *_ = env.step(back, action, params)
    assert (again.working_grid == later.working_grid).all()
    assert again.similarity_score == later.similarity_score
    small = jnp.full((3, 4), -1).at[:1, :2].set(7)
    shrunk = start.replace(working_grid=small, target_grid=small, pair_index=1)
    assert shrunk.grid_size.tolist() == [1, 2]
    assert (shrunk.similarity_score, int(shrunk.pair_index)) == (1.0, 1)
