import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.agents.networks import PAINT, RESIZE, SUBMIT
from jaxarc.agents.policy import Edit, EditPolicy, missing_for_editing
from jaxarc.config import JaxArcConfig, PPOConfig
from jaxarc.envs.spaces import action_space

LIMIT = 20


def config(height, width, **fields):
    return JaxArcConfig().with_fields(
        **{
            "max_grid_height": height,
            "max_grid_width": width,
            "selection_format": "bbox",
            "max_episode_steps": LIMIT,
            "reveal_target": True,
            "include_step_count": True,
            **fields,
        }
    )


create = jax.jit(EditPolicy.create, static_argnums=(1, 2))
evaluate = jax.jit(EditPolicy.evaluate)
sample = jax.jit(EditPolicy.sample)
greedy_of = jax.jit(EditPolicy.greedy)


@functools.cache
def policy_on(height, width, seed=0, scale=1.0):
    """A policy whose choices are far from uniform, but for the kind, which is nearly so."""
    fresh = create(jax.random.key(seed), config(height, width), PPOConfig(submit_bias=0.0, resize_bias=0.0))
    random = np.random.default_rng(seed)
    noise = lambda x: scale * 0.3 * random.normal(size=x.shape).astype(np.float32)
    noisy = jax.tree.map(lambda x: jnp.asarray(np.asarray(x) + noise(x)), fresh)
    return eqx.tree_at(lambda policy: policy.network.kind_layers[1], noisy, fresh.network.kind_layers[1])


def grids(random, batch, height, width):
    """Random grids of random size."""
    canvas = np.full((batch, height, width), c.PADDING, np.int8)
    for grid in canvas:
        h, w = random.integers(1, height + 1), random.integers(1, width + 1)
        grid[:h, :w] = random.integers(0, c.NUM_COLORS, (h, w))
    return canvas


def observations(batch, height, width, seed=0):
    random = np.random.default_rng(seed)
    return {
        "working_grid": jnp.asarray(grids(random, batch, height, width)),
        "target_grid": jnp.asarray(grids(random, batch, height, width)),
        "step_count": jnp.asarray(random.integers(0, LIMIT, batch), jnp.int32),
    }


def every_edit(active, cells):
    """All different edits of one observation."""
    inside = np.flatnonzero(active)
    paints = [
        (PAINT, first, second, color) for first, second in itertools.product(inside, inside) for color in range(10)
    ]
    resizes = [(RESIZE, 0, cell, 0) for cell in range(cells)]
    return Edit(*(jnp.asarray(part, jnp.int32) for part in np.array([*paints, *resizes, (SUBMIT, 0, 0, 0)]).T))


@pytest.mark.parametrize("seed", range(3))
def test_the_probabilities_of_all_edits_sum_to_one(seed):
    policy, observation = policy_on(2, 2, seed), observations(1, 2, 2, seed)
    edits = every_edit(np.asarray(observation["working_grid"][0] >= 0).reshape(-1), 4)
    repeated = jax.tree.map(lambda x: jnp.repeat(x, len(edits.kind), axis=0), observation)
    log_probs = evaluate(policy, repeated, edits).log_prob
    np.testing.assert_allclose(jnp.exp(log_probs).sum(), 1.0, rtol=1e-5)


def test_the_log_probability_of_a_sampled_edit_is_that_of_the_same_edit_evaluated():
    policy, observation = policy_on(3, 4), observations(512, 3, 4)
    sampled = sample(policy, jax.random.key(3), observation)
    evaluated = evaluate(policy, observation, sampled.edit)
    assert set(np.asarray(sampled.edit.kind).tolist()) == {PAINT, RESIZE, SUBMIT}
    for name in ("log_prob", "entropy", "value"):
        np.testing.assert_allclose(getattr(evaluated, name), getattr(sampled, name), rtol=1e-5, atol=1e-6)


def test_edits_are_drawn_as_often_as_their_probability_says():
    policy, observation, draws = policy_on(2, 2), observations(1, 2, 2, 4), 20_000
    edits = every_edit(np.asarray(observation["working_grid"][0] >= 0).reshape(-1), 4)
    repeated = jax.tree.map(lambda x: jnp.repeat(x, len(edits.kind), axis=0), observation)
    probability = np.exp(evaluate(policy, repeated, edits).log_prob)
    many = jax.tree.map(lambda x: jnp.repeat(x, draws, axis=0), observation)
    drawn = policy.to_action(sample(policy, jax.random.key(5), many).edit)
    listed = policy.to_action(edits)
    same = np.ones((draws, len(edits.kind)), bool)
    for name in ("operation", "r1", "c1", "r2", "c2"):
        same &= np.asarray(getattr(drawn, name))[:, None] == np.asarray(getattr(listed, name))[None]
    same[:, -1] = np.asarray(drawn.operation) == c.SUBMIT  # whose box says nothing
    frequency = same.mean(axis=0)
    assert frequency.sum() == pytest.approx(1.0)
    assert np.abs(frequency - probability).max() < 5 * np.sqrt(probability.max() / draws)


@pytest.mark.parametrize(("height", "width"), [(3, 4), (1, 1)])
def test_every_action_is_legal_and_paints_inside_the_working_grid(height, width):
    policy, observation = policy_on(height, width, scale=10.0), observations(512, height, width)
    space = action_space(config(height, width))
    for edit in (sample(policy, jax.random.key(7), observation).edit, greedy_of(policy, observation)):
        action = policy.to_action(edit)
        assert jax.vmap(space.contains)(action).all()
        active = np.asarray(observation["working_grid"]) >= 0
        paints = np.flatnonzero(np.asarray(action.operation) < c.NUM_COLORS)
        assert active[paints, action.r1[paints], action.c1[paints]].all()
        assert active[paints, action.r2[paints], action.c2[paints]].all()
        resizes = np.asarray(action.operation) == c.RESIZE
        assert not np.asarray(action.r1)[resizes].any()
        assert not np.asarray(action.c1)[resizes].any()


def test_an_edit_survives_the_way_to_an_action_and_back():
    policy = policy_on(3, 4)
    edits = every_edit(np.ones(12, bool), 12)
    back = policy.from_action(policy.to_action(edits))
    for name in Edit._fields:
        np.testing.assert_array_equal(getattr(back, name), getattr(edits, name), err_msg=name)


def prefer(policy, kind):
    bias = jnp.where(jnp.arange(3) == kind, 9.0, 0.0)
    return eqx.tree_at(lambda policy: policy.network.kind_layers[1].bias, policy, bias)


def test_the_greedy_edit_takes_the_likeliest_part_at_every_stage():
    policy, observation = policy_on(2, 2), observations(512, 2, 2)
    for kind in (PAINT, RESIZE, SUBMIT):
        inclined = prefer(policy, kind)
        greedy = greedy_of(inclined, observation)
        best = evaluate(inclined, observation, greedy).log_prob
        assert (greedy.kind == kind).all()
        others = [greedy._replace(color=jnp.full_like(greedy.color, color)) for color in range(c.NUM_COLORS)]
        if kind == RESIZE:
            others += [greedy._replace(second=jnp.full_like(greedy.second, cell)) for cell in range(4)]
        for other in others:
            assert (evaluate(inclined, observation, other).log_prob <= best + 1e-6).all()


def test_no_gradient_is_nan_where_cells_are_masked():
    policy, observation = policy_on(3, 4), observations(512, 3, 4)
    edit = sample(policy, jax.random.key(0), observation).edit

    def loss(policy):
        decision = policy.evaluate(observation, edit)
        return (decision.log_prob + decision.entropy + decision.value).sum()

    assert all(np.isfinite(x).all() for x in jax.tree.leaves(jax.jit(jax.grad(loss))(policy)))


def test_a_config_that_hides_the_target_or_forbids_needed_operations_is_refused_by_name():
    hidden = config(3, 3).with_fields(reveal_target=False)
    with pytest.raises(ValueError, match=r"observation\.reveal_target must be True, got False"):
        EditPolicy.create(jax.random.key(0), hidden, PPOConfig())
    few = config(3, 3, allowed_operations=(*range(10), c.SUBMIT))
    assert missing_for_editing(few) == [
        "the policy fills, resizes and submits, so action.allowed_operations must include [33]"
    ]
    assert missing_for_editing(config(3, 3)) == []
