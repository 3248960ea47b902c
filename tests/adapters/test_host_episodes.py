"""A single Gymnasium environment on NumPy arrays shows what the compiled programs show."""

import copy
import pickle

import gymnasium
import jax
import numpy as np
import pytest
from adapter_world import SHOWN, assert_trees_equal, make_world
from compiling import EXECUTORS
from small_tasks import tasks_of

import jaxarc
from jaxarc.adapters import GymnasiumEnv, to_gymnasium
from jaxarc.adapters.host_episodes import HostEpisodes, plays_on_host
from jaxarc.wrappers import EpisodeStatistics

pytestmark = pytest.mark.skipif("native" not in EXECUTORS, reason="no C++ compiler is installed")

EVERY_OPERATION = {"allowed_operations": None}
ODD_REWARDS = {"gamma": 0.9, "similarity_weight": 0.7, "success_bonus": 0.3, "unsolved_submission_penalty": -0.07}
CASES = {
    "points": ("point", EVERY_OPERATION),
    "boxes, with a history": ("bbox", EVERY_OPERATION | {"history_enabled": True, "max_history_length": 3}),
    "masks": ("mask", EVERY_OPERATION | {"include_selection": True}),
    "flat boxes, tasks in turn": ("flat", {"task_order": "in_turn"}),
    "flat points": ("flat", EVERY_OPERATION | {"selection_format": "point", "layout": "stacked"}),
    "all entries": ("bbox", EVERY_OPERATION | SHOWN),
    "all entries, one-hot": ("bbox", SHOWN | {"grid_format": "one_hot"}),
    "all entries, stacked": ("mask", EVERY_OPERATION | SHOWN | {"layout": "stacked"}),
    "all entries, stacked tokens": ("bbox", SHOWN | {"layout": "stacked", "grid_format": "tokens"}),
    "all entries, flat": ("point", SHOWN | {"layout": "flat", "max_episode_steps": 3}),
    "flat tokens": ("point", {"layout": "flat", "grid_format": "tokens", "include_clipboard": True}),
    "odd rewards": ("bbox", EVERY_OPERATION | ODD_REWARDS),
    "no step penalty": ("bbox", ODD_REWARDS | {"step_penalty": 0.0}),
    "hidden pairs": ("bbox", EVERY_OPERATION | {"mode": "test"}),
    "hidden pairs that are scored": ("bbox", {"mode": "test", "score_on_submit": True, "max_submissions": 2}),
    "demonstrations, then a test": ("bbox", ODD_REWARDS | {"mode": "trials"}),
    "pairs that change": ("bbox", EVERY_OPERATION | {"allow_demo_switching": True, "reveal_target": True}),
    "changed tasks": ("bbox", EVERY_OPERATION | {"symmetries": "flips", "recolor": "all", "shuffle_demos": True}),
    "drawn starts": ("bbox", {"start_grid": "random"}),
}


def compiled(env, params, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(to_gymnasium, "plays_on_host", lambda *_: False)
        return GymnasiumEnv(env, params)


def assert_same(left, right):
    """Equal values of equal types, bit for bit, but for the reward."""
    (observation, *rest), (expected, *others) = left, right
    assert_trees_equal(observation, expected)
    if len(rest) > 1:  # of a step
        assert rest[0] == pytest.approx(others[0], rel=1e-6, abs=1e-6)
        assert type(rest[0]) is type(others[0]) is float
        rest, others = rest[1:], others[1:]
    assert [repr(value) for value in rest] == [repr(value) for value in others]


def play(env, other, steps=60, seed=0):
    """Step both, compare all that they return, and reset in each of the ways; return how many episodes ended."""
    generator = np.random.default_rng(seed)
    env.action_space.seed(seed)
    assert_same(env.reset(seed=seed), other.reset(seed=seed))
    ended = []
    for _ in range(steps):
        action = env.action_space.sample()
        step = env.step(action)
        assert_same(step, other.step(action))
        if step[2] or step[3]:
            ended.append(step[2:4])
            assert_same(env.step(action), other.step(action))  # it stays as it is
            options = (
                {"task_index": int(generator.integers(env._params.tasks.num_tasks))}
                if generator.random() < 0.2
                else None
            )
            new_seed = int(generator.integers(2**40)) if options or generator.random() < 0.2 else None
            assert_same(*(x.reset(seed=new_seed, options=options) for x in (env, other)))
    return ended


@pytest.mark.parametrize("name", CASES)
def test_random_episodes_are_those_of_the_compiled_programs(name, monkeypatch):
    action_format, fields = CASES[name]
    env, params = make_world(action_format, **fields)
    ours = GymnasiumEnv(env, params)
    assert isinstance(ours._episodes, HostEpisodes)
    ended = play(ours, compiled(env, params, monkeypatch))
    assert any(truncated for _, truncated in ended), "no episode reached the limit of steps"


def test_tasks_that_are_made_at_every_reset_are_played(monkeypatch):
    env, params = jaxarc.make("procedural/gravity", selection_format="bbox", max_episode_steps=5)
    ours = GymnasiumEnv(env, params)
    assert isinstance(ours._episodes, HostEpisodes)
    assert play(ours, compiled(env, params, monkeypatch))
    shown, _ = ours.reset()
    kept = copy.deepcopy(shown)
    assert not np.array_equal(ours.reset()[0], kept), "another task"
    assert_trees_equal(shown, kept)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copy_plays_on_by_itself(copied):
    env = GymnasiumEnv(*make_world("bbox", include_step_count=True))
    env.reset(seed=1)
    env.reset()
    env.step(np.array([0, 0, 0, 1, 1]))
    other = copied(env)
    third = copied(env)
    actions = [env.action_space.sample() for _ in range(3)]
    first = [env.step(action) for action in actions]
    for step, action in zip(first, actions, strict=True):
        assert_same(step, other.step(action))
    assert_same(env.reset(), other.reset())
    assert third.step(actions[0])[-1]["step_count"] == 2, "the steps of the others are not its own"


def test_pictures_and_masks_are_those_of_the_state(monkeypatch):
    env, params = make_world("bbox", **EVERY_OPERATION)
    ours = GymnasiumEnv(env, params, render_mode="rgb_array")
    other = compiled(env, params, monkeypatch)
    other.render_mode = "rgb_array"
    play(ours, other, steps=10)
    np.testing.assert_array_equal(ours.render(), other.render())
    np.testing.assert_array_equal(ours.action_masks(), other.action_masks())


def test_what_the_library_cannot_play_is_compiled():
    for fields in (
        {"executor": "xla"},
        {"mask_in_info": True},
        {"allow_demo_switching": True, "include_input": True, "allowed_operations": None},
    ):
        assert not plays_on_host(*make_world("bbox", **fields)), fields
    env, params = make_world()
    assert not plays_on_host(EpisodeStatistics(env), params)
    assert plays_on_host(env, params)


def test_no_array_goes_to_a_device_between_two_resets_by_seed(monkeypatch):
    env, params = make_world("bbox")
    ours, other = GymnasiumEnv(env, params), compiled(env, params, monkeypatch)
    for each in (ours, other):
        each.reset(seed=0)
    with jax.transfer_guard("disallow"):
        for _ in range(9):
            _, _, terminated, truncated, _ = ours.step(ours.action_space.sample())
            if terminated or truncated:
                ours.reset()
        with pytest.raises(jax.errors.JaxRuntimeError, match="transfer"):
            other.step(other.action_space.sample())


def test_vector_clients_of_single_environments_play_them():
    envs = gymnasium.vector.SyncVectorEnv([lambda: GymnasiumEnv(*make_world("bbox"))] * 2)
    envs.reset(seed=[1, 2])
    shown = [envs.step(envs.action_space.sample())[0] for _ in range(6)]
    assert np.shape(shown) == (6, 2, 3, 4)


@pytest.mark.parametrize("wrong", [np.zeros(900, np.int32), np.zeros(899, np.int8), np.zeros((900, 2), np.int8)[:, 0]])
def test_arrays_of_another_type_size_or_order_are_refused(wrong):
    env, params = jaxarc.make(tasks_of(([[1]], [[2]])), selection_format="point", invalid_action_policy="noop")
    episodes = HostEpisodes(env, params, GymnasiumEnv(env, params).action_space)
    episodes.start(np.zeros(2, np.uint32), {})
    episodes.step(np.zeros(3, np.int64))
    state = episodes.state
    object.__setattr__(state.canvas, "grid", wrong)

    def go_on():
        episodes._hold(episodes._held._replace(state=state))
        episodes.step(np.zeros(3, np.int64))

    with pytest.raises(TypeError, match=r"kernel reads 900 of type 2|reads contiguous arrays"):
        go_on()
