import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small_run import LEARNABLE

from jaxarc.agents import Edit, EditPolicy, LearnerState, Trajectories, make_optimizer
from jaxarc.agents.ppo import TrainConfig, UpdateBatch, make_update_batch, ppo_loss, shuffle_into_minibatches, update
from jaxarc.config import (
    AgentConfig,
    AnswerConfig,
    CloningConfig,
    NetworkConfig,
    ScheduleConfig,
)

STEPS, ENVS, SIDE = 4, 6, 3
AGENT = AgentConfig(num_envs=ENVS, rollout_steps=STEPS, num_minibatches=3, num_epochs=2)
TRAIN_CONFIG = TrainConfig(
    AGENT, NetworkConfig(), ScheduleConfig(learning_rate=1e-2), AnswerConfig(), CloningConfig(), num_updates=10
)
WEIGHT = jnp.float32(0.01)
losses_and_gradient = jax.jit(jax.value_and_grad(lambda *given: ppo_loss(*given[:2], AGENT, given[2]), has_aux=True))


def loss_of(policy, samples, entropy_weight=WEIGHT):
    return losses_and_gradient(policy, samples, entropy_weight)[0]


@pytest.fixture(scope="module")
def policy():
    config = LEARNABLE.with_fields(max_grid_height=SIDE, max_grid_width=SIDE)
    return jax.jit(lambda key: EditPolicy.create(key, config, NetworkConfig()))(jax.random.key(0))


@pytest.fixture(scope="module")
def trajectories(policy):
    """Every environment plays its own target; choosing its color pays 1."""
    keys = jax.random.split(jax.random.key(1), STEPS)
    observation = {
        "working_grid": jnp.zeros((STEPS, ENVS, SIDE, SIDE), jnp.int8),
        "target_grid": jnp.broadcast_to(jnp.arange(ENVS, dtype=jnp.int8)[:, None, None], (STEPS, ENVS, SIDE, SIDE)),
        "step_count": jnp.zeros((STEPS, ENVS), jnp.int32),
    }
    output = jax.jit(jax.vmap(policy.sample))(keys, observation)
    nothing = jnp.zeros((STEPS, ENVS), jnp.bool_)
    return Trajectories(
        observation=observation,
        choice=output.choice,
        log_prob=output.log_prob,
        value=output.value,
        reward=(output.choice.color == jnp.arange(ENVS, dtype=jnp.int32)[None]).astype(jnp.float32),
        terminated=~nothing,
        truncated=nothing,
        final_value=jnp.zeros((STEPS, ENVS), jnp.float32),
        last_value=jnp.zeros(ENVS, jnp.float32),
    )


@pytest.fixture(scope="module")
def flat(trajectories):
    """All samples of the trajectories in one batch."""
    samples = jax.jit(lambda x: make_update_batch(x, AGENT))(trajectories)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)


@pytest.fixture(scope="module")
def updated(policy, trajectories):
    """The learner before, the learner after one update, and its losses."""
    optimizer = make_optimizer(TRAIN_CONFIG)
    with jax.numpy_dtype_promotion("standard"):
        before = jax.jit(lambda: LearnerState(policy, optimizer.init(policy), jnp.int32(0)))()
        learn = jax.jit(lambda learner, key: update(learner, key, trajectories, TRAIN_CONFIG, optimizer))
        return before, *learn(before, jax.random.key(2))


def test_minibatches_hold_whole_trajectories_and_every_environment_once(trajectories):
    cut = lambda key, x: shuffle_into_minibatches(key, make_update_batch(x, AGENT), AGENT)
    batches = jax.jit(cut)(jax.random.key(0), trajectories)
    targets = np.asarray(batches.observation["target_grid"])
    assert targets.shape == (3, STEPS, 2, SIDE, SIDE)
    assert (targets == targets[:, :1]).all()
    np.testing.assert_array_equal(np.sort(targets[:, 0, :, 0, 0].reshape(-1)), np.arange(ENVS))


def test_advantages_are_normalized_over_the_whole_update_only_if_asked(trajectories):
    make = jax.jit(make_update_batch, static_argnums=1)
    normalized, plain = (make(trajectories, AGENT.replace(normalize_advantages=wanted)) for wanted in (True, False))
    np.testing.assert_allclose([normalized.advantage.mean(), normalized.advantage.std()], [0, 1], atol=1e-4)
    np.testing.assert_allclose(plain.advantage, trajectories.reward - trajectories.value, rtol=1e-5, atol=1e-6)
    for samples in (normalized, plain):  # every episode ends at once, so a value's target is the reward
        np.testing.assert_allclose(samples.value_target, trajectories.reward, rtol=1e-5, atol=1e-6)


def with_ratios(flat, advantage, ratio) -> UpdateBatch:
    """Samples that an older policy drew, whose probabilities the policy has multiplied by ``ratio`` since."""
    count = len(flat.log_prob)
    repeat = lambda x: jnp.asarray(np.resize(np.asarray(x, np.float32), count))
    return flat._replace(advantage=repeat(advantage), log_prob=flat.log_prob - jnp.log(repeat(ratio)))


def test_the_loss_is_the_clipped_one_of_the_paper_with_its_weights(policy, flat):
    advantage, ratio = np.array([1.0, 1.0, -1.0, -1.0, 2.0, -2.0]), np.array([1.5, 0.5, 1.5, 0.5, 1.1, 0.9])
    total, losses = loss_of(policy, with_ratios(flat, advantage, ratio), jnp.float32(0.3))
    np.testing.assert_allclose(losses.policy_loss, -np.mean([1.2, 0.5, -1.5, -0.8, 2.2, -1.8]), rtol=1e-4)
    np.testing.assert_allclose(losses.clip_fraction, 4 / 6, rtol=1e-5)
    np.testing.assert_allclose(losses.approx_kl, np.mean(ratio - 1 - np.log(ratio)), rtol=1e-3)
    errors = jax.jit(EditPolicy.value)(policy, flat.observation) - flat.value_target
    np.testing.assert_allclose(losses.value_loss, np.mean(np.square(errors)), rtol=1e-4)
    expected = losses.policy_loss + AGENT.value_weight * losses.value_loss - 0.3 * losses.entropy
    np.testing.assert_allclose(total, expected, rtol=1e-5)


def test_what_has_moved_far_enough_is_not_pushed_further(policy, flat):
    """The gradient of a clipped sample is zero; where the ratio went the wrong way it is not."""
    settled = flat._replace(value_target=jax.jit(EditPolicy.value)(policy, flat.observation))

    def size(advantage, ratio):
        _, gradient = losses_and_gradient(policy, with_ratios(settled, advantage, ratio), jnp.float32(0))
        return optax.tree.norm(gradient)

    assert size([1.0], [1.3]) < 1e-4
    assert size([-1.0], [0.7]) < 1e-4
    assert size([-1.0], [1.3]) > 1e-2
    assert size([1.0], [0.7]) > 1e-2


def test_an_update_makes_better_edits_likelier_and_values_closer(policy, flat, updated):
    _, after, losses = updated
    assert after.num_updates == 1
    change = jax.jit(EditPolicy.evaluate)(after.policy, flat.observation, flat.choice).log_prob - flat.log_prob
    assert np.corrcoef(change, flat.advantage)[0, 1] > 0.5
    assert loss_of(after.policy, flat)[1].value_loss < loss_of(policy, flat)[1].value_loss
    assert all(np.isfinite(part) for part in losses if part is not None)
    assert losses.gradient_norm > 0


def test_edits_of_a_kind_that_needs_no_color_do_not_teach_the_color_head(policy):
    observation = {
        "working_grid": jnp.zeros((1, SIDE, SIDE), jnp.int8),
        "target_grid": jnp.ones((1, SIDE, SIDE), jnp.int8),
        "step_count": jnp.zeros(1, jnp.int32),
    }
    gradient = jax.jit(jax.grad(lambda policy, edit: policy.evaluate(observation, edit).log_prob.sum()))

    def taught(name):
        place = [kind.name for kind in policy.kinds].index(name)
        told = gradient(policy, Edit(*(jnp.array([part], jnp.int32) for part in (place, 4, 4, 1)))).network
        heads = {
            "kind": told.kind_layers, "corner": told.cell_layers, "box": told.box_layers, "color": told.color_layers,
            "size": told.size_weights,
        }  # fmt: skip
        return {head for head, leaves in heads.items() if any(x.any() for x in jax.tree.leaves(leaves))}

    assert taught("submit") == {"kind"}
    assert taught("resize") == {"kind", "size"}
    assert taught("flood fill") == {"kind", "corner", "color"}
    assert taught("cut") == {"kind", "corner", "box"}
    assert taught("paint") == {"kind", "corner", "box", "color"}
