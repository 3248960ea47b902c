"""A policy's choices as one distribution over edits."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from edit_world import EVERY, config, evaluate, greedy_of, observations, policy_on, repeated, sample

from jaxarc import constants as c
from jaxarc.agents.edits import Edit
from jaxarc.agents.policy import missing_for_editing
from jaxarc.envs.action_space import action_space

NETWORKS = ["relational", "residual_cnn"]
HEIGHT, WIDTH, BATCH = 2, 3, 1024  # one shape, so that all tests share compiled functions
FEW_COLORS = (2, 5, c.FLOOD_FILL + 7, c.CUT, c.RESIZE, c.SUBMIT)


def policy_with(network="relational", operations=EVERY, **fields):
    return policy_on(HEIGHT, WIDTH, network=network, operations=operations, **fields)


def one_observation(seed):
    """One of a grid that leaves a part of the canvas free."""
    observation = observations(1, HEIGHT, WIDTH, seed)
    assert observation["working_grid"][0].min() < 0
    return observation


def every_edit(policy, active):
    """All different edits of one observation."""
    inside = np.flatnonzero(active).tolist()
    edits = []
    for place, kind in enumerate(policy.kinds):
        firsts = inside if kind.selects in ("box", "cell") else [0]
        seconds = {"box": inside, "size": range(active.size)}.get(kind.selects, [0])
        colors = np.flatnonzero(policy.colors[place]).tolist() if kind.colored else [0]
        edits += itertools.product([place], firsts, seconds, colors)
    return Edit(*(jnp.asarray(part, jnp.int32) for part in np.array(edits).T))


def log_probs(policy, observation):
    """Every edit of one observation, and how likely it is."""
    edits = every_edit(policy, np.asarray(observation["working_grid"][0] >= 0))
    count = len(edits.kind)
    padded = jax.tree.map(lambda x: jnp.pad(x, (0, BATCH - count)), edits)
    return edits, evaluate(policy, repeated(observation, BATCH), padded).log_prob[:count]


@pytest.mark.parametrize("operations", [EVERY, FEW_COLORS])
@pytest.mark.parametrize("seed", [2, 0])
def test_the_probabilities_of_all_edits_sum_to_one(seed, operations):
    _, chances = log_probs(policy_with(operations=operations), one_observation(seed))
    np.testing.assert_allclose(jnp.exp(chances).sum(), 1.0, rtol=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_log_probability_of_a_sampled_edit_is_that_of_the_same_edit_evaluated(network):
    policy, observation = policy_with(network), observations(BATCH, HEIGHT, WIDTH)
    sampled = sample(policy, jax.random.key(3), observation)
    evaluated = evaluate(policy, observation, sampled.choice)
    assert set(np.asarray(sampled.choice.kind).tolist()) == set(range(len(policy.kinds)))
    for name in ("log_prob", "entropy", "value"):
        np.testing.assert_allclose(getattr(evaluated, name), getattr(sampled, name), rtol=1e-5, atol=1e-6)
    again = evaluate(policy, observation, policy.from_action(policy.to_action(sampled.choice)))
    np.testing.assert_allclose(again.log_prob, sampled.log_prob, rtol=1e-5, atol=1e-6)


def draw_often(policy, observation, times):
    """Batches of draws from one observation."""
    many = repeated(observation, BATCH)
    drawn = [sample(policy, key, many) for key in jax.random.split(jax.random.key(5), times)]
    return jax.tree.map(lambda *parts: np.concatenate(parts), *drawn)


def test_edits_are_drawn_as_often_as_their_probability_says():
    policy, observation = policy_with(), one_observation(2)
    edits, chances = log_probs(policy, observation)
    probability, drawn = np.exp(chances), draw_often(policy, observation, 20)
    draws = len(drawn.log_prob)
    numbers = [number_of(policy.to_action(edit)) for edit in (drawn.choice, edits)]
    frequency = np.array([(numbers[0] == number).mean() for number in numbers[1]])
    assert frequency.sum() == pytest.approx(1.0)
    assert (np.abs(frequency - probability) < 5 * np.sqrt(probability / draws) + 5 / draws).all()
    # And the entropy of the parts is, on average, that of the whole.
    np.testing.assert_allclose(drawn.entropy.mean(), -(probability * chances).sum(), rtol=0.01)


def number_of(action):
    """One number for each action; the box of a submit or a copied input says nothing."""
    operation = np.asarray(action.operation)
    says = ~np.isin(operation, (c.SUBMIT, c.COPY_INPUT))
    box = sum(np.asarray(part) * 10**i for i, part in enumerate((action.r1, action.c1, action.r2, action.c2)))
    return operation * 10**4 + np.where(says, box, 0)


def test_every_action_is_legal_and_its_box_lies_inside_the_working_grid():
    policy, observation = policy_with(scale=10.0), observations(BATCH, HEIGHT, WIDTH)
    space = action_space(config(HEIGHT, WIDTH))
    for edit in (sample(policy, jax.random.key(7), observation).choice, greedy_of(policy, observation)):
        action = policy.to_action(edit)
        assert jax.vmap(space.contains)(action).all()
        active, resizes = np.asarray(observation["working_grid"]) >= 0, np.asarray(action.operation) == c.RESIZE
        boxes = np.flatnonzero(~resizes & (np.asarray(action.operation) < c.COPY_INPUT))
        assert active[boxes, action.r1[boxes], action.c1[boxes]].all()
        assert active[boxes, action.r2[boxes], action.c2[boxes]].all()
        assert not np.asarray(action.r1)[resizes].any()
        assert not np.asarray(action.c1)[resizes].any()


def test_with_few_colors_no_other_is_ever_painted():
    policy, observation = policy_with(operations=FEW_COLORS), observations(BATCH, HEIGHT, WIDTH)
    drawn = sample(policy, jax.random.key(1), observation).choice
    assert set(np.asarray(policy.to_action(drawn).operation).tolist()) == set(FEW_COLORS)


@pytest.mark.parametrize("name", ["paint", "flood fill", "cut", "resize", "submit"])
def test_the_greedy_edit_takes_the_likeliest_part_at_every_stage(name):
    policy, observation = policy_with(), observations(BATCH, HEIGHT, WIDTH)
    place = [kind.name for kind in policy.kinds].index(name)
    bias = jnp.where(jnp.arange(len(policy.kinds)) == place, 9.0, 0.0)
    inclined = eqx.tree_at(lambda policy: policy.network.kind_layers.last.bias, policy, bias)
    greedy = greedy_of(inclined, observation)
    best = evaluate(inclined, observation, greedy).log_prob
    assert (greedy.kind == place).all()
    others = [greedy._replace(color=jnp.full_like(greedy.color, color)) for color in range(c.NUM_COLORS)]
    if name == "resize":
        cells = range(HEIGHT * WIDTH)
        others += [greedy._replace(second=jnp.full_like(greedy.second, cell)) for cell in cells]
    for other in others:
        assert (evaluate(inclined, observation, other).log_prob <= best + 1e-6).all()


@pytest.mark.parametrize("network", NETWORKS)
def test_no_gradient_is_nan_where_cells_are_masked(network):
    policy, observation = policy_with(network), observations(BATCH, HEIGHT, WIDTH)
    edit = sample(policy, jax.random.key(0), observation).choice

    def loss(policy):
        output = policy.evaluate(observation, edit)
        return (output.log_prob + output.entropy + output.value).sum()

    assert all(np.isfinite(x).all() for x in jax.tree.leaves(jax.jit(jax.grad(loss))(policy)))


def test_a_policy_that_hands_in_needs_the_submit():
    endless = config(3, 3, (*range(10), c.RESIZE))
    assert missing_for_editing(endless) == [
        "the policy hands in its grid, so action.allowed_operations must include 34 (submit)"
    ]
    assert missing_for_editing(config(3, 3, (c.SUBMIT,))) == []
