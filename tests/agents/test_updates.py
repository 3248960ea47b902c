"""What a compiled call does, for several seeds at once."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scripted_policies import Mirroring, repairing_policy
from small_run import RULES_2X2, same
from small_tasks import tasks_of

from jaxarc import constants as c
from jaxarc.agents import updates
from jaxarc.agents.ppo import TrainConfig
from jaxarc.config import (
    AgentConfig,
    AnswerConfig,
    CloningConfig,
    CurriculumConfig,
    NetworkConfig,
    ScheduleConfig,
)
from jaxarc.prng import keys_of_seeds

RULES = RULES_2X2.with_fields(max_episode_steps=4, allowed_operations=(*range(c.NUM_COLORS), c.RESIZE, c.SUBMIT))
HIDDEN = RULES.with_fields(reveal_target=False, include_demonstrations=True, include_input=True)
CURRICULUM = CurriculumConfig()
SEEDS = (3, 4)


def train_config():
    """Of a policy that predicts answers: then all that can learn does."""
    return TrainConfig(
        AgentConfig(num_envs=4, rollout_steps=6, num_minibatches=2),
        NetworkConfig(hidden_size=4, submit_bias=-1.0),
        ScheduleConfig(),
        AnswerConfig("predicted", batch_size=4, batches_per_update=2, hidden_size=4),
        CloningConfig(num_updates=0),
        num_updates=4,
    )


TRAIN_CONFIG = train_config()


PAIRS = updates.make_params(tasks_of(([[0, 0]], [[1, 2]]), ([[5]], [[3, 3], [3, 3]]), ([[1]], [[1]])), RULES)
MIRRORS = updates.make_params(
    tasks_of(([[1, 2]], [[2, 1]]), ([[1, 2]], [[1, 2]]), ([[5, 0], [5, 5]], [[0, 5], [5, 5]]), ([[1]], [[1]])), HIDDEN
)


def start(*seeds):
    keys = keys_of_seeds(seeds)
    with jax.numpy_dtype_promotion("standard"):
        return updates.start_training(keys, MIRRORS, TRAIN_CONFIG, CURRICULUM)


def run(state, params=MIRRORS, train_config=TRAIN_CONFIG):
    with jax.numpy_dtype_promotion("standard"):
        return updates.run_updates(state, params, train_config, 2)


def seed_of(tree, place):
    return jax.tree.map(lambda x: x[place : place + 1], tree)


@pytest.fixture(scope="module")
def both():
    """Two seeds before and after a call, and its progress."""
    state = start(*SEEDS)
    return state, *run(state)


def test_what_a_seed_learns_does_not_depend_on_its_company_bit_for_bit(both):
    before, after, progress = both
    others = start(SEEDS[1], 9)
    assert same(seed_of(others, 0), seed_of(before, 1))
    others, told = run(others)
    assert same(seed_of(others, 0), seed_of(after, 1))
    assert same(seed_of(told, 0), seed_of(progress, 1))


def test_seeds_begin_and_go_different_ways(both):
    for state in both[:2]:
        first, second = (jax.tree.leaves(seed_of(state.learner.policy, place)) for place in range(2))
        assert not all(map(np.array_equal, first, second))
    before, after, progress = both
    assert not np.array_equal(before.key[0], before.key[1])
    assert not same(before.learner.policy, after.learner.policy)
    assert progress.losses.entropy[0] != progress.losses.entropy[1]


def test_calls_that_follow_each_other_compile_nothing_anew(both):
    _, after, _ = both
    compiled = updates.run_updates._cache_size()
    state, _ = run(after, train_config=train_config())
    run(state, dataclasses.replace(MIRRORS, weights=jnp.flip(MIRRORS.weights)))
    assert updates.run_updates._cache_size() == compiled


def test_a_compiled_call_moves_nothing_between_host_and_devices(both):
    before, after, _ = both
    with jax.transfer_guard("disallow"):
        jax.block_until_ready(run(after))
    with jax.transfer_guard("disallow"), pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device"):
        run(eqx.tree_at(lambda state: state.key, before, np.asarray(before.key)))


def test_accelerators_learn_the_seeds_side_by_side(both):
    """Only shapes are computed: the batched program exists and returns what it takes."""
    batched = jax.vmap(lambda state: updates.run_seed(state, MIRRORS, TRAIN_CONFIG, 2))
    # JAX's check for reused keys takes those that a batched scan goes through for used.
    with jax.numpy_dtype_promotion("standard"), jax.debug_key_reuse(False):
        after = jax.eval_shape(batched, both[0])
    describe = lambda x: (x.shape, x.dtype)
    assert jax.tree.map(describe, after) == jax.tree.map(describe, both[1:])


def test_policy_and_predictor_learn_side_by_side_where_the_answer_is_predicted(both):
    before, after, progress = both
    assert not same(before.predictor_state.predictor, after.predictor_state.predictor)
    assert not same(before.learner.policy, after.learner.policy)
    assert np.isfinite(progress.answer_loss).all()
    assert same(after.players, (after.learner.policy, after.predictor_state.predictor))


@pytest.fixture(scope="module")
def repairing():
    """A policy that edits any grid into any answer."""
    return repairing_policy(RULES)


def test_measuring_plays_every_pair_with_the_policy_of_each_seed(repairing):
    """The first knows how to repair grids; the second paints one cell for ever."""
    policies = jax.tree.map(lambda x: jnp.stack([x, jnp.zeros_like(x)]), repairing)
    played = updates.measure((policies, None), PAIRS)
    assert played.solved.tolist() == [[True, False, True], [False] * 3]  # the second takes a resize and four cells
    assert played.steps.tolist() == [[3, 4, 1], [4] * 3]


def test_measuring_a_predicting_policy_plays_towards_what_it_predicts_without_seeing_answers(repairing):
    players = jax.tree.map(lambda x: x[None], (repairing, Mirroring()))
    played = updates.measure(players, MIRRORS)
    assert played.solved.tolist() == [[True, False, True, True]]
    assert played.steps.tolist() == [[3, 3, 3, 1]]
