"""What a user overrides counts behind every interface, and a class whose overrides would not count is refused."""

import dataclasses

import jax
import numpy as np
import pytest
from compiling import EXECUTORS
from small_tasks import tasks_of

import jaxarc
from jaxarc.adapters import GymnasiumEnv, GymnasiumVectorEnv
from jaxarc.constants import SUBMIT
from jaxarc.envs import BboxAction
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions, Trials, Wrapper

CANVAS = (2, 3)
LAST_TASK = 2
BONUS = 16.0  # a sum with it is exact
SUBMITS = BboxAction(SUBMIT, 0, 0, 0, 0)
TASKS = tasks_of(*((np.full((2, 2), color), np.full((2, 2), 9)) for color in (1, 2, 3)))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Mine(Wrapper):
    """Pays a bonus for each step, and goes on with the last task."""

    env: jaxarc.Environment

    def step(self, state, action, params):
        state, observation, reward, *rest = self.env.step(state, action, params)
        return state, observation, reward + BONUS, *rest

    def reset_next(self, state, params):
        return self.env.reset(jax.random.wrap_key_data(state.key), params, LAST_TASK)


def make(executor="auto"):
    config = create_test_config(5, "bbox", CANVAS, invalid_action_policy="noop", executor=executor)
    return jaxarc.make(TASKS, config)


@pytest.mark.parametrize("kind", [jaxarc.ArcEnvironment, AutoReset, EpisodeStatistics, FlatActions, Trials])
def test_a_class_of_this_package_is_final(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__}.*Derived.*Wrapper.*jaxarc\.Environment"):
        type("Derived", (kind,), {"step": lambda *_: None})
    with pytest.raises(TypeError, match=kind.__name__):
        type("Derived", (Mine, kind), {})


def test_a_class_of_a_user_can_be_derived_from():
    class Twice(Mine):
        def step(self, state, action, params):
            state, observation, reward, *rest = super().step(state, action, params)
            return state, observation, reward + BONUS, *rest

    env, params = make()
    state, _ = env.reset(jax.random.key(0), params)
    plain, twice = (one.step(state, BboxAction(1, 0, 0, 1, 1), params)[2] for one in (env, Twice(env)))
    assert twice == plain + 2 * BONUS


@pytest.mark.parametrize(("flat", "executor"), [(True, EXECUTORS[0]), (False, "xla")], ids=["True-native", "False-xla"])
def test_overrides_count_behind_auto_reset(flat, executor):
    env, params = make(executor)
    plain, mine = (AutoReset(FlatActions(one) if flat else one) for one in (env, Mine(env)))
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), 8), params)
    submit = FlatActions(env).to_flat(SUBMITS, params) if flat else SUBMITS
    step = lambda one: jax.vmap(one.step, (0, None, None))(states, submit, params)
    expected = step(plain)
    after, _, reward, done, _ = step(mine)
    assert done.all()
    np.testing.assert_array_equal(reward, expected[2] + BONUS)
    np.testing.assert_array_equal(after.task_index, np.full(8, LAST_TASK))
    assert (np.asarray(expected[0].task_index) != LAST_TASK).any()


@pytest.mark.parametrize(("flat", "executor"), [(True, EXECUTORS[0]), (False, "xla")], ids=["True-native", "False-xla"])
def test_overrides_count_behind_gymnasium(flat, executor):
    env, params = make(executor)
    dress = FlatActions if flat else lambda env: env
    submit = [params.config.legal_operations.index(SUBMIT), 0, 0, 0, 0]
    if flat:
        submit = int(FlatActions(env).to_flat(SUBMITS, params))
    for seed in range(3):
        plain, mine = (GymnasiumEnv(dress(one), params) for one in (env, Mine(env)))
        for single in (plain, mine):
            single.reset(seed=seed)
        assert mine.step(submit)[1] == pytest.approx(plain.step(submit)[1] + BONUS)
        assert mine.reset()[1]["task_index"] == LAST_TASK


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_overrides_count_behind_the_vector_environment(mode):
    env, params = make()
    plain, mine = (GymnasiumVectorEnv(one, params, 4, mode) for one in (env, Mine(env)))
    submit = np.array([[params.config.legal_operations.index(SUBMIT), 0, 0, 0, 0]] * 4)
    for batch in (plain, mine):
        batch.reset(seed=0)
    np.testing.assert_allclose(mine.step(submit)[1], plain.step(submit)[1] + BONUS)
    if mode == "NextStep":
        mine.step(submit)
    np.testing.assert_array_equal(mine._states.task_index, np.full(4, LAST_TASK))
