"""A fresh policy that imitates the painter on random grids, before it learns by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_tasks import tasks_of

import jaxarc
from jaxarc import constants as c
from jaxarc.agents import EditPolicy
from jaxarc.agents.cloning import clone_expert, collect_examples
from jaxarc.config import AgentConfig, CloningConfig, NetworkConfig
from jaxarc.experts import GreedyPainter
from jaxarc.wrappers import AutoReset, EpisodeStatistics

SIDE, NUM_TASKS = 5, 64
RULES = {
    "selection_format": "bbox",
    "reveal_target": True,
    "include_step_count": True,
    "max_grid_height": SIDE,
    "max_grid_width": SIDE,
    "max_episode_steps": 2 * SIDE * SIDE,
    "allowed_operations": (*range(10), c.RESIZE, c.SUBMIT),
    "invalid_action_policy": "noop",
    "history_enabled": False,
}
AGENT = AgentConfig(num_envs=32, rollout_steps=8, num_minibatches=4)
CLONING = CloningConfig(num_updates=100, learning_rate=1e-2)
expert = GreedyPainter().act

pytestmark = pytest.mark.usefixtures("standard_promotion")


def random_pairs(seed):
    draw = np.random.default_rng(seed)
    pairs = [tuple(draw.integers(0, 10, (2, SIDE, SIDE))) for _ in range(NUM_TASKS)]
    return jaxarc.make(tasks_of(*pairs), **RULES)


BASE, LEARNED = random_pairs(0)
UNSEEN = random_pairs(1)[1]
ENV = EpisodeStatistics(AutoReset(BASE))


@pytest.fixture(scope="module")
def beginner():
    """A fresh policy and the first states of its environments."""

    @jax.jit
    def start(key):
        keys = jax.random.split(key, AGENT.num_envs)
        states, _ = jax.vmap(ENV.reset, (0, None))(keys, LEARNED)
        return EditPolicy.create(key, LEARNED.config, NetworkConfig()), states

    return start(jax.random.key(0))


@jax.jit
def solve_rate(policy):
    """Share of the unseen pairs that the greedy policy solves."""
    states, _ = jax.vmap(BASE.reset, (0, None, 0))(
        jax.random.split(jax.random.key(0), NUM_TASKS), UNSEEN, jnp.arange(NUM_TASKS)
    )
    act = lambda states: policy.act(BASE.observe(states, UNSEEN))
    step = lambda states: jax.vmap(BASE.step, (0, 0, None))(states, act(states), UNSEEN)[0]
    return jax.lax.while_loop(lambda states: (~states.done).any(), step, states).is_solved.mean()


def test_cloning_alone_teaches_to_solve_unseen_random_grids(beginner):
    policy, states = beginner
    cloned, after, losses = jax.jit(
        lambda policy, states, key: clone_expert(policy, expert, ENV, LEARNED, states, key, CLONING, AGENT)
    )(policy, states, jax.random.key(1))
    assert solve_rate(policy) == 0
    assert solve_rate(cloned) > 0.5
    assert losses.cloning_loss.shape == (CLONING.num_updates,)
    assert losses.cloning_loss[-10:].mean() < losses.cloning_loss[:10].mean()
    assert (after.last_length > 0).all()  # the environments went on: each has ended an episode


def test_the_expert_tells_what_it_would_do_wherever_somebody_plays(beginner):
    policy, states = beginner
    collect = lambda policy, states, key: collect_examples(policy, expert, ENV, LEARNED, states, key, 0.25, AGENT)
    _, examples = jax.jit(collect)(policy, states, jax.random.key(2))
    told = jax.jit(lambda policy, shown: policy.from_action(expert(shown)))(policy, examples.observation)
    for left, right in zip(examples.edit, told, strict=True):
        np.testing.assert_array_equal(left, right)

    over_time = lambda x: np.asarray(x).reshape(AGENT.rollout_steps, AGENT.num_envs, -1)
    shown = {name: over_time(x) for name, x in examples.observation.items()}
    right_cells = (shown["working_grid"] == shown["target_grid"]).sum(axis=2)
    next_episode = shown["step_count"][1:, :, 0] == 0
    by_expert = (np.diff(right_cells, axis=0) > 0) | next_episode  # it paints a wrong cell, or submits
    num_learners = AGENT.num_envs // 4
    assert by_expert[:, num_learners:].all()
    assert not by_expert[:, :num_learners].all()
    assert np.isfinite(examples.value_target).all()
