"""Heads that predict what just happened and what comes next."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from edit_world import config, create, observations, sample

from jaxarc.agents import EditPolicy, Trajectories
from jaxarc.agents.auxiliary import AuxiliaryLosses, Outcome, _box_of, weigh
from jaxarc.agents.edits import Edit
from jaxarc.agents.ppo import loss, make_samples
from jaxarc.config import AgentConfig, NetworkConfig

HEIGHT, WIDTH, BATCH = 2, 3, 64
AGENT = AgentConfig(last_reward_weight=0.5, reward_weight=2.0, next_grid_weight=3.0)
losses_of = jax.jit(EditPolicy.auxiliary_losses)


@pytest.fixture(scope="module")
def policy():
    return create(jax.random.key(0), config(HEIGHT, WIDTH), NetworkConfig(kind="cells"), True)


@pytest.fixture(scope="module")
def happened(policy):
    """Observations, edits and what came of them: painting pays, and paints."""
    observation = observations(BATCH, HEIGHT, WIDTH)
    edit = sample(policy, jax.random.key(1), observation).edit
    rows, columns = np.divmod(np.arange(HEIGHT * WIDTH), WIDTH)
    painted = np.array(observation["working_grid"]).reshape(BATCH, -1)
    for i, (kind, first, second, color) in enumerate(zip(*map(np.asarray, edit), strict=True)):
        (r1, c1), (r2, c2) = divmod(first, WIDTH), divmod(second, WIDTH)
        box = (min(r1, r2) <= rows) & (rows <= max(r1, r2)) & (min(c1, c2) <= columns) & (columns <= max(c1, c2))
        if kind == 0:
            painted[i, box & (painted[i] >= 0)] = color
    return (
        observation,
        edit,
        Outcome(
            last_reward=observation["step_count"].astype(jnp.float32) / 10,
            has_last=jnp.arange(BATCH, dtype=jnp.int32) % 4 > 0,
            reward=(edit.kind == 0).astype(jnp.float32),
            next_grid=jnp.asarray(painted.reshape(BATCH, HEIGHT, WIDTH)),
        ),
    )


@pytest.mark.usefixtures("standard_promotion")
def test_training_brings_every_auxiliary_loss_down(policy, happened):
    optimizer = optax.adam(1e-2)
    total = lambda policy: sum(policy.auxiliary_losses(*happened))

    def learn(carry, _):
        policy, state = carry
        change, state = optimizer.update(jax.grad(total)(policy), state)
        return (optax.apply_updates(policy, change), state), None

    start = policy, optimizer.init(policy)
    trained, _ = jax.jit(lambda carry: jax.lax.scan(learn, carry, None, 150)[0])(start)
    for name, before, after in zip(
        AuxiliaryLosses._fields, losses_of(policy, *happened), losses_of(trained, *happened), strict=True
    ):
        assert after < 0.3 * before, name


def test_an_unknown_last_reward_teaches_nothing(policy, happened):
    observation, edit, outcome = happened
    strange = jnp.where(outcome.has_last, outcome.last_reward, 1e6)
    before, after = (
        losses_of(policy, observation, edit, outcome._replace(last_reward=last_reward))
        for last_reward in (outcome.last_reward, strange)
    )
    assert before.last_reward_loss == after.last_reward_loss > 0


def test_the_box_of_an_edit_holds_the_cells_between_its_corners():
    cells = range(HEIGHT * WIDTH)
    firsts, seconds = map(np.ravel, np.meshgrid(cells, cells))
    zeros = jnp.zeros(len(firsts), jnp.int32)
    edit = Edit(zeros, jnp.asarray(firsts, jnp.int32), jnp.asarray(seconds, jnp.int32), zeros)
    boxes = np.asarray(_box_of(edit, (HEIGHT, WIDTH))).reshape(-1, HEIGHT, WIDTH)
    for first, second, box in zip(firsts, seconds, boxes, strict=True):
        (top, bottom), (left, right) = map(sorted, zip(divmod(first, WIDTH), divmod(second, WIDTH), strict=True))
        expected = np.zeros((HEIGHT, WIDTH), bool)
        expected[top : bottom + 1, left : right + 1] = True
        np.testing.assert_array_equal(box, expected)


def small_trajectories():
    """Three steps of two environments, of which the second one starts anew after the second step."""
    numbers = lambda x: jnp.asarray(x, jnp.float32)
    zeros, nothing = jnp.zeros((3, 2), jnp.float32), jnp.zeros((3, 2), jnp.bool_)
    return Trajectories(
        observation={},
        edit=Edit(*[jnp.zeros((3, 2), jnp.int32)] * 4),
        log_prob=zeros,
        value=zeros,
        reward=numbers([[1, 2], [3, 4], [5, 6]]),
        terminated=nothing,
        truncated=nothing.at[1, 1].set(True),
        final_value=zeros,
        last_value=jnp.zeros(2, jnp.float32),
        next_grid=jnp.arange(6, dtype=jnp.int8).reshape(3, 2, 1, 1),
    )


def test_the_last_reward_is_known_but_for_the_first_step_of_a_rollout_and_of_an_episode():
    trajectories = small_trajectories()
    outcome = make_samples(trajectories, AGENT).outcome
    assert outcome.has_last.tolist() == [[False, False], [True, True], [True, False]]
    np.testing.assert_array_equal(np.where(outcome.has_last, outcome.last_reward, 0), [[0, 0], [1, 2], [3, 0]])
    np.testing.assert_array_equal(outcome.reward, trajectories.reward)
    np.testing.assert_array_equal(outcome.next_grid, trajectories.next_grid)
    assert make_samples(trajectories._replace(next_grid=None), AGENT).outcome is None


def test_the_weighted_auxiliary_losses_are_part_of_the_loss(policy, happened):
    observation, edit, outcome = happened
    samples = make_samples(small_trajectories(), AGENT)._replace(
        observation=observation, edit=edit, outcome=outcome, **dict.fromkeys(("log_prob", "advantage", "value_target"),
        jnp.zeros(BATCH, jnp.float32))
    )  # fmt: skip
    totals, losses = {}, {}
    for agent in (AGENT, AGENT.replace(last_reward_weight=0.0, reward_weight=0.0, next_grid_weight=0.0)):
        totals[agent], losses[agent] = jax.jit(lambda x, agent=agent: loss(policy, x, agent, jnp.float32(0)))(samples)
    weighted = weigh(losses[AGENT].auxiliary, AGENT)
    last, now, following = losses_of(policy, *happened)
    np.testing.assert_allclose(weighted, 0.5 * last + 2 * now + 3 * following, rtol=1e-5)
    with_them, without = totals.values()
    np.testing.assert_allclose(with_them - without, weighted, rtol=1e-3)


def test_a_policy_without_the_heads_or_without_cells_has_no_auxiliary_losses(policy, happened):
    lacking = dataclasses.replace(policy, auxiliary=None)
    with pytest.raises(ValueError, match="need auxiliary heads and a network of kind cells or residual_cnn"):
        jax.eval_shape(EditPolicy.auxiliary_losses, lacking, *happened)
    make = lambda key: EditPolicy.create(key, config(HEIGHT, WIDTH), NetworkConfig(), has_auxiliary_heads=True)
    with pytest.raises(ValueError, match="need auxiliary heads and a network of kind cells or residual_cnn"):
        jax.eval_shape(lambda key: make(key).auxiliary_losses(*happened), jax.random.key(0))
