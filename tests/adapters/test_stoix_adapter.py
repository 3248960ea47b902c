"""Stoix calls our maker by its name and wraps what it gets; the wrapping here is that of Stoix at commit 8fff19c."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc

stoa = pytest.importorskip("stoa", reason="stoa-env is not installed; pip install stoa-env")
from stoa.core_wrappers.vmap import VmapWrapper  # noqa: E402

from jaxarc.stoix_adapter import make_jaxarc_env  # noqa: E402
from jaxarc.wrappers import ExtendedMetrics  # noqa: E402

KEY = jax.random.key(0)
METRICS = {"solved", "steps_to_solve", "best_similarity", "final_similarity", "was_truncated"}


def config_of(name="starter", mode="point", **env):
    """The group ``env`` as in ``env/jaxarc/default.yaml`` of Stoix's configs."""
    shown = {"answer_grid": True, "input_grid": True, "contextual": True}
    scenario = {"name": name, "task_name": "mini"}
    return {"env": {"scenario": scenario, "action": {"mode": mode}, "observation_wrappers": shown, **env}}


def wrapped(env):
    """What Stoix does with the first environment."""
    env = ExtendedMetrics(stoa.RecordEpisodeMetrics(stoa.AddRNGKey(stoa.FlattenObservationWrapper(env))))
    return VmapWrapper(stoa.AutoResetWrapper(env, next_obs_in_extras=True))


@pytest.mark.usefixtures("standard_promotion")
def test_what_it_makes_is_wrapped_and_scanned_as_stoix_does():
    train, evaluation = make_jaxarc_env(config_of(kwargs={"max_episode_steps": 3}))
    env = wrapped(train)
    num_actions = int(env.action_space().num_values)
    submit = num_actions - 1
    assert num_actions == 45
    # Target, input and grid take 11 channels each, the step count one.
    assert env.observation_space().generate_value().shape == (3 * 3 * 34,)
    assert evaluation.observation_space().shape == (3, 3, 34)

    def step(states, action):
        states, shown = env.step(states, jnp.full(2, action, jnp.int32))
        return states, shown

    states, first = jax.jit(env.reset)(jax.random.split(KEY, 2))
    actions = jnp.array([0, 0, 0, 0, submit], jnp.int32)
    _, shown = jax.jit(lambda states: jax.lax.scan(step, states, actions))(states)
    assert jax.tree.structure(shown) == jax.tree.structure(first)
    assert shown.observation.shape == shown.extras["next_obs"].shape == (5, 2, 306)
    metrics = {name: np.asarray(value)[:, 0] for name, value in shown.extras["episode_metrics"].items()}
    assert metrics.keys() - METRICS == {"episode_return", "episode_length", "is_terminal_step"}
    assert metrics["is_terminal_step"].tolist() == [False, False, True, False, True]
    assert metrics["was_truncated"].tolist() == [False, False, True, False, False]
    assert metrics["episode_length"].tolist() == [0, 0, 3, 0, 2]
    assert (metrics["best_similarity"] >= metrics["final_similarity"]).all()


@pytest.mark.usefixtures("standard_promotion")
def test_solving_is_reported_with_its_step():
    train, _ = make_jaxarc_env(config_of())
    env = ExtendedMetrics(stoa.RecordEpisodeMetrics(train))
    step = jax.jit(env.step)
    state, shown = env.reset(KEY)
    arc = state.base_env_state.base_env_state
    for cell, color in enumerate(np.asarray(arc.target_grid).ravel()):
        state, shown = step(state, jnp.int32(9 * color + cell))
        assert not shown.extras["episode_metrics"]["solved"]
    _, shown = step(state, jnp.int32(44))
    metrics = shown.extras["episode_metrics"]
    assert bool(metrics["solved"])
    assert (int(metrics["steps_to_solve"]), float(metrics["best_similarity"])) == (10, 1)


def test_names_of_stoix_and_ours_choose_tasks_and_rules():
    config = config_of("AGI1-train", kwargs={"max_grid_height": 30, "allowed_operations": [1, 34], "layout": "flat"})
    config["env"]["scenario"]["eval_name"] = "arc-agi-1/evaluation"
    environments = make_jaxarc_env(config)
    assert [env._params.tasks.num_tasks for env in environments] == [400, 400]
    names = [env._env.name for env in environments]
    assert names == [
        f"jaxarc/{jaxarc.datasets.load_tasks(name).name}" for name in ("arc-agi-1/training", "arc-agi-1/evaluation")
    ]
    assert environments[0].action_space().num_values == 2 * 900
    assert environments[0].observation_space().shape == (2 * 900 * 11 + 1,)


@pytest.mark.parametrize(
    ("config", "error", "name"),
    [
        (config_of("Mini-Colony_Expansion_2"), KeyError, "Mini-Colony_Expansion_2"),
        (config_of(mode="boxes"), ValueError, "boxes"),
        (config_of("AGI1-train", mode="bbox"), ValueError, "flat actions"),
        (config_of(kwargs={"speed": 3}), KeyError, "speed"),
    ],
)
def test_what_cannot_be_made_is_refused_by_name(config, error, name):
    with pytest.raises(error, match=name):
        make_jaxarc_env(config)[0].action_space()


def test_stoix_itself_makes_it():
    make_env = pytest.importorskip("stoix.utils.make_env", reason="Stoix is not installed; see docs/adapters.md")
    omegaconf = pytest.importorskip("omegaconf")
    config = config_of(env_name="jaxarc", wrapper={"_target_": "stoa.FlattenObservationWrapper"})
    env, evaluation = make_env.make(omegaconf.OmegaConf.create({**config, "arch": {"num_envs": 2}}))
    assert env.observation_space().shape == evaluation.observation_space().shape == (306,)
    _, first = env.reset(jax.random.split(KEY, 2))
    assert set(first.extras["episode_metrics"]) >= METRICS
