"""The gymnax environment plays what ours plays, and gymnax's own wrappers and a PPO loop take it."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapter_world import (
    CANVAS,
    FORMATS,
    OPERATIONS,
    SHOWN,
    SUBMIT_PLACE,
    TASKS,
    assert_trees_equal,
    make_world,
    world_fields,
)
from ppo_loop import train

from jaxarc.adapters.conversion import choice_of_id
from jaxarc.envs import JaxArcConfig, PointAction
from jaxarc.envs.action_masks import flat_action_mask

gymnax = pytest.importorskip("gymnax", reason="gymnax is not installed; pip install gymnax six")
from gymnax.environments import spaces  # noqa: E402
from gymnax.wrappers import (  # noqa: E402
    FlattenObservationWrapper,
    GymnaxToDmEnvWrapper,
    GymnaxToGymWrapper,
    GymnaxToVectorGymWrapper,
    LegacyStepAPIWrapper,
    LogWrapper,
    StickyActionWrapper,
)

from jaxarc.adapters import GymnaxEnvironment, register_gymnax  # noqa: E402

KEY = jax.random.key(0)
ID = "jaxarc/arc-agi-1-training-v1"


def action(place, row=0, col=0):
    return {"operation": jnp.int32(place), "row": jnp.int32(row), "col": jnp.int32(col)}


PAINT, HAND_IN = action(0, 1, 1), action(SUBMIT_PLACE)


def make_gymnax(action_format="point", legacy_step=False, **fields):
    rules = world_fields(action_format, **fields)
    return GymnaxEnvironment(TASKS, legacy_step=legacy_step, flat_actions=action_format == "flat", **rules)


@pytest.fixture(scope="module")
def gymnax_env():
    return make_gymnax()


@pytest.fixture(scope="module")
def flat_env():
    return make_gymnax("flat")


def test_its_episodes_are_those_of_our_environment(gymnax_env):
    ours, params = make_world(history_enabled=False)
    theirs = gymnax_env.default_params
    state, expected = ours.reset(KEY, params)
    observation, gymnax_state = gymnax_env.reset(KEY, theirs)
    assert_trees_equal(observation, expected)
    for number, choice in enumerate((PAINT, HAND_IN, PAINT, PAINT, PAINT, PAINT, HAND_IN)):
        key = jax.random.fold_in(KEY, number)
        point = PointAction(OPERATIONS[int(choice["operation"])], choice["row"], choice["col"])
        state, expected, reward, done, told = ours.step(state, point, params)
        observation, gymnax_state, gained, terminated, truncated, info = gymnax_env.step(
            key, gymnax_state, choice, theirs
        )
        assert_trees_equal(info.pop("final_observation"), expected)
        assert_trees_equal((gained, terminated, truncated, info), (reward, state.terminated, state.truncated, told))
        if done:
            state, expected = ours.reset(jax.random.split(key)[1], params)
        assert_trees_equal((observation, gymnax_state.arc), (expected, state))
        assert int(gymnax_state.time) == int(state.step_count)


def test_the_time_limit_of_the_params_truncates_and_changes_without_a_recompilation(gymnax_env):
    params = gymnax_env.default_params
    assert params.max_steps_in_episode == 4
    ended = []
    for limit in (2, 3, 9):
        limited = params.replace(max_steps_in_episode=jnp.int32(limit), arc=params.arc.only(task_index=1))
        _, state = gymnax_env.reset(KEY, limited)
        flags = []
        for _ in range(4):
            *_, terminated, truncated, info = (out := gymnax_env.step(KEY, state, PAINT, limited))
            state = out[1]
            flags.append((bool(terminated), bool(truncated), float(info["discount"])))
        ended.append(flags)
    going, over = (False, False, 1.0), (False, True, 1.0)
    assert ended == [[going, over] * 2, [going, going, over, going], [going, going, going, over]]
    submitted = gymnax_env.step(KEY, gymnax_env.reset(KEY, params)[1], HAND_IN, params.replace(max_steps_in_episode=1))
    assert [bool(flag) for flag in submitted[3:5]] == [True, False]
    assert float(submitted[5]["discount"]) == 0


def test_params_are_kept_over_auto_resets(gymnax_env):
    params = gymnax_env.default_params
    params = params.replace(arc=params.arc.only(task_index=2))

    def step(state, key):
        _, state, *_, info = gymnax_env.step(key, state, HAND_IN, params)
        return state, info["task_index"]

    _, state = gymnax_env.reset(KEY, params)
    assert (jax.lax.scan(step, state, jax.random.split(KEY, 10))[1] == 2).all()


def test_params_may_be_a_static_argument_of_a_compiled_function(gymnax_env):
    """ajax-rl evaluates so."""
    first, second = (
        gymnax_env.default_params.replace(arc=gymnax_env.default_params.arc.only(task_index=index)) for index in (0, 2)
    )
    assert first != second
    play = jax.jit(lambda params: gymnax_env.reset(KEY, params)[1].arc.task_index, static_argnames="params")
    assert [int(play(params)) for params in (first, second, first)] == [0, 2, 0]


@pytest.mark.parametrize("action_format", FORMATS)
def test_every_action_of_the_space_is_taken(action_format):
    env = make_gymnax(action_format, **(SHOWN if action_format == "point" else {}))
    params = env.default_params
    space, shown = env.action_space(params), env.observation_space(params)

    def step(state, key):
        choice = space.sample(key)
        observation, state, *_, info = env.step(key, state, choice, params)
        return state, (choice, space.contains(choice) & shown.contains(observation), info["invalid_action"])

    state = env.reset(KEY, params)[1]
    choices, inside, invalid = jax.lax.scan(step, state, jax.random.split(KEY, 200))[1]
    assert inside.all()
    assert not invalid.any()
    if action_format == "mask":
        assert 0.4 < choices["selection"].mean() < 0.6
    if action_format == "flat":
        assert isinstance(space, spaces.Discrete)
        assert env.num_actions == space.n == 3 * 6 * 10
    else:  # boxes on 30x30 would be 29 million outputs of a network
        with pytest.raises(ValueError, match=rf"'{action_format}'.*flat_actions=True"):
            env.num_actions  # noqa: B018


def test_an_operation_beyond_the_legal_ones_is_invalid(gymnax_env):
    params = gymnax_env.default_params
    _, state = gymnax_env.reset(KEY, params)
    infos = [gymnax_env.step(KEY, state, action(place), params)[5] for place in (-1, 0, 2, 3)]
    assert [bool(info["invalid_action"]) for info in infos] == [True, False, False, True]


def test_default_params_of_an_environment_that_is_made_inside_jit_are_no_tracers():
    made = []

    @jax.jit
    def first_observation():
        made.append(make_gymnax())
        return made[0].reset(KEY)[0]

    with jax.checking_leaks():
        observation = first_observation()
    env = made[0]
    assert isinstance(env.default_params.arc.weights, jax.Array)
    assert not isinstance(env.default_params.arc.weights, jax.core.Tracer)
    assert_trees_equal(observation, env.reset(KEY, env.default_params)[0])


def test_ids_are_registered_once_and_make_the_environment():
    assert ID in register_gymnax()
    assert register_gymnax() == register_gymnax()
    env, params = gymnax.make("jaxarc-procedural-gravity-v1", layout="dict", flat_actions=True, **world_fields("flat"))
    assert env.name == "jaxarc/procedural/gravity"
    assert env.reset(KEY, params)[0].shape == CANVAS


@pytest.mark.parametrize("dataset", ["procedural-gravity", "starter"])
def test_an_id_alone_shows_one_array_and_takes_one_integer(dataset):
    register_gymnax()
    env, params = gymnax.make(f"jaxarc/{dataset}-v1", max_grid_height=3, max_grid_width=3)
    shown = env.observation_space(params)
    assert isinstance(shown, spaces.Box)
    assert shown.dtype == jnp.float32
    assert shown.shape[:2] == (3, 3)
    assert isinstance(env.action_space(params), spaces.Discrete)
    assert env.num_actions == env.action_space(params).n


def test_what_an_id_is_given_by_name_is_not_changed():
    assert choice_of_id({"selection_format": "bbox"}) == {"selection_format": "bbox", "layout": "stacked"}
    point = {"selection_format": "point", "flat_actions": True, "invalid_action_policy": "noop"}
    assert choice_of_id({"layout": "dict"}) == {"layout": "dict", **point}
    assert choice_of_id({"config": JaxArcConfig()}) == {"config": JaxArcConfig()}


def test_five_values_are_those_of_six_and_a_copy_steps_alike():
    """rejax copies every environment that it is given, deeply."""
    six, five = make_gymnax("flat"), make_gymnax("flat", legacy_step=True)
    params = five.default_params
    state = six.reset(KEY, params)[1]
    for env in (five, copy.deepcopy(five)):
        for number in (0, six.num_actions - 1):  # the last one ends the episode
            observation, after, reward, terminated, truncated, info = six.step(KEY, state, number, params)
            assert_trees_equal(
                env.step(KEY, state, number, params), (observation, after, reward, terminated | truncated, info)
            )


@pytest.mark.parametrize("legacy_step", [False, True])
def test_a_step_without_reset_ends_by_time_too_where_steps_are_those_of_before_gymnax_1(legacy_step):
    env = make_gymnax("flat", legacy_step=legacy_step)
    shorter = env.default_params.replace(max_steps_in_episode=2)
    for params, limit in ((env.default_params, 4), (shorter, 2)):
        state = env.reset(KEY, params)[1]
        ends = []
        for _ in range(5):
            _, state, _, done, _ = env.step_env(KEY, state, 0, params)
            ends.append(bool(done))
        assert ends == [legacy_step and step >= limit for step in range(1, 6)]
    *_, done, _ = env.step_env(KEY, env.reset(KEY, shorter)[1], env.num_actions - 1, shorter)
    assert bool(done)  # a submit, by the rules


def test_clients_of_before_gymnax_1_show_a_state(gymnax_env):
    observation, state = gymnax_env.reset(KEY)
    assert_trees_equal(gymnax_env.get_obs(state), observation)
    assert_trees_equal(gymnax_env.get_obs(state, gymnax_env.default_params), observation)
    assert_trees_equal(gymnax_env.observe(KEY, state, 0, gymnax_env.default_params), observation)


def test_spaces_have_the_names_of_those_of_gymnax(gymnax_env):
    masks = make_gymnax("mask", **SHOWN)
    assert type(masks.action_space()).__name__ == type(masks.observation_space()).__name__ == "Dict"
    assert type(masks.action_space().spaces["selection"]).__name__ == "Box"
    assert repr(gymnax_env.observation_space()) == repr(spaces.Box(-1, 9, CANVAS, jnp.int8))


def test_nothing_looks_like_a_wrapper_around_another_environment(gymnax_env):
    assert not {"_env", "env"} & vars(gymnax_env).keys()


def test_a_batch_steps_as_its_rows_do_and_resets_those_that_ended(flat_env):
    params = flat_env.default_params
    keys = jax.random.split(KEY, 4)
    states = jax.vmap(flat_env.reset, (0, None))(keys, params)[1]
    actions = jnp.array([0, flat_env.num_actions - 1, 0, flat_env.num_actions - 1], jnp.int32)
    together = jax.vmap(flat_env.step, (0, 0, 0, None))(keys, states, actions, params)
    assert together[1].time.tolist() == [1, 0, 1, 0]
    rows = [
        flat_env.step(keys[row], jax.tree.map(lambda leaf, row=row: leaf[row], states), actions[row], params)
        for row in range(4)
    ]
    assert_trees_equal(together, jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows))


def test_the_action_mask_is_of_the_observation_that_is_returned():
    env = make_gymnax("flat", mask_in_info=True)
    params = env.default_params
    state = env.reset(KEY, params)[1]
    for _ in range(5):
        _, state, *_, info = env.step(KEY, state, 0, params)
        assert_trees_equal(info["action_mask"], flat_action_mask(state.arc, params.arc.config))


@pytest.mark.usefixtures("standard_promotion")
def test_wrappers_of_gymnax_take_it(flat_env):
    params = flat_env.default_params
    env = LogWrapper(StickyActionWrapper(FlattenObservationWrapper(flat_env), 0.1))
    _, state = env.reset(KEY, params)

    def step(state, key):
        observation, state, *_, info = env.step(key, state, jnp.int32(0), params)
        return state, (observation, info)

    observations, info = jax.lax.scan(step, state, jax.random.split(KEY, 9))[1]
    assert observations.shape == info["final_observation"].shape == (9, 12)
    assert info["returned_episode_lengths"][info["returned_episode"]].tolist() == [4, 4]
    dm_env = GymnaxToDmEnvWrapper(flat_env)
    hand_in = flat_env.num_actions - 1
    assert float(dm_env.step(KEY, dm_env.reset(KEY, params), hand_in, params).discount) == 0


@pytest.mark.usefixtures("standard_promotion")
def test_gymnax_turns_it_into_gymnasium_environments(flat_env):
    single = GymnaxToGymWrapper(flat_env, flat_env.default_params)
    assert single.reset(seed=1)[0].shape == CANVAS
    assert len(single.step(single.action_space.sample())) == 5
    vector = GymnaxToVectorGymWrapper(flat_env, 3, flat_env.default_params)
    assert vector.reset(seed=1)[0].shape == (3, *CANVAS)
    assert vector.step(jnp.zeros(3, jnp.int32))[1].shape == (3,)


@pytest.mark.usefixtures("standard_promotion")
def test_a_ppo_loop_in_the_style_of_purejaxrl_learns_to_submit():
    """On the task whose input is its output, handing in at once is the best that can be done."""
    env = make_gymnax("flat")
    params = env.default_params.replace(arc=env.default_params.arc.only(task_index=0))
    info = train(LegacyStepAPIWrapper(LogWrapper(env)), params, env.num_actions, KEY, num_updates=30)
    returns = np.asarray(info["returned_episode_returns"]).mean(axis=(1, 2))
    assert np.isfinite(returns).all()
    assert returns[-1] > returns[0] + 0.1
