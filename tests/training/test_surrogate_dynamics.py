"""A model of the environment: what it learns from, how it is measured, and how it drifts on its own predictions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.agents.updates import make_params
from jaxarc.config import EditStepsConfig, JaxArcConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.datasets import TaskSet
from jaxarc.surrogate import CandidateSet, TransitionPrediction, init_optimizer, make_surrogate_optimizer
from jaxarc.surrogate.transition_model import TransitionBatch, create_transition_train_step, predict_steps
from jaxarc.tasks import RawTask
from jaxarc.training.surrogates.dynamics import (
    TransitionDataset,
    evaluate_steps,
    open_loop_error,
    trajectory_operations,
)

RULES = JaxArcConfig().with_fields(
    selection_format="bbox",
    max_grid_height=3,
    max_grid_width=3,
    max_episode_steps=6,
    reveal_target=True,
    include_input=True,
    history_enabled=False,
    allowed_operations=(c.FILL + 3, c.FLOOD_FILL + 2, c.FLIP_LEFT_RIGHT, c.SUBMIT),
)
CONFIG = EditStepsConfig(num_examples=48, episode_steps=3, num_eval=48, open_loop_steps=4, open_loop_trajectories=8)
NETWORK = SurrogateNetworkConfig(latent_size=8, num_layers=1, num_heads=1)


class Keeper(eqx.Module):
    """Expects that nothing changes, and pays nothing."""

    shift: jax.Array

    def __call__(self, data, action):
        colors = jnp.round(data[..., 0]).astype(jnp.int32) - c.PADDING
        logits = 5 * jax.nn.one_hot(colors, c.NUM_COLORS + 1) + self.shift
        return TransitionPrediction(logits, logits, self.shift)


class Linear(eqx.Module):
    """Sees the color of a cell, and whether it is in the box."""

    weights: jax.Array
    reward: jax.Array

    def __init__(self):
        self.weights = jnp.zeros((c.NUM_COLORS + 2, c.NUM_COLORS + 1), jnp.float32)
        self.reward = jnp.float32(0.5)

    def __call__(self, data, action):
        colors = jax.nn.one_hot(jnp.round(data[..., 0]).astype(jnp.int32) - c.PADDING, c.NUM_COLORS + 1)
        box = action.rows[:, None] * action.columns[None]
        outside = colors.astype(box.dtype) * (1 - box)[..., None]
        features = jnp.concatenate([outside, box[..., None]], axis=-1)
        return TransitionPrediction(features @ self.weights, features @ self.weights, self.reward)


class Filler(Keeper):
    """Knows fills with 3 exactly, where the box is inside of the grid."""

    def __call__(self, data, action):
        box = (action.rows[:, None] * action.columns[None] > 0) & (data[..., 0] >= 0)
        grid = jnp.where(box & (action.features[c.FILL + 3] > 0), 3.0, data[..., 0])
        return super().__call__(data.at[..., 0].set(grid), action)


@pytest.fixture(scope="module")
def steps():
    test = (np.zeros((3, 2), int), np.eye(2, dtype=int))
    tasks = [RawTask(f"task-{i}", ((np.full((2, 3), i), np.eye(3, dtype=int)),), (test,)) for i in (1, 2)]
    params = make_params(TaskSet("small", tuple(tasks)), RULES)
    return TransitionDataset(params, params, CONFIG, NETWORK)


def batch_of(kind, count=16, seed=0):
    """Steps that fill boxes with the color 3, or leave the grid as it is."""
    generator = np.random.default_rng(seed)
    rows, columns = (jnp.asarray(generator.random((count, 3)) < 0.5, jnp.float32) for _ in range(2))
    data = jnp.asarray(generator.integers(0, 10, (count, 3, 3, 4)), jnp.float32)
    features = jax.nn.one_hot(jnp.full((count,), kind), c.NUM_GRID_OPERATIONS)
    action = CandidateSet(rows, columns, features, jnp.ones((count,), jnp.bool_))
    box = (rows[:, :, None] * columns[:, None] > 0) & (kind == c.FILL + 3)
    after = jnp.where(box, 3, data[..., 0].astype(jnp.int32))
    return TransitionBatch(data, action, jnp.full((count,), kind, jnp.int32), after, after, jnp.zeros((count,)))


def test_a_batch_is_the_same_whenever_it_is_made_and_other_steps_have_others(steps):
    first, again, other, seeded = (steps.batch(*place) for place in ((0, 5), (0, 5), (0, 6), (1, 5)))
    assert eqx.tree_equal(first, again)
    assert not eqx.tree_equal(first, other)
    assert not eqx.tree_equal(first, seeded)
    assert first.data.shape == (48, 3, 3, 4)
    assert set(np.unique(first.operation)) <= set(trajectory_operations(RULES))


def test_a_fill_in_the_environment_is_what_the_description_of_its_box_says(steps):
    held_out = steps.held_out()
    fills = np.asarray(held_out.operation) == c.FILL + 3
    assert fills.sum() > 5
    found = evaluate_steps(Filler(jnp.float32(0)), jax.tree.map(lambda leaf: leaf[fills], held_out))
    assert (found.exact_grid_accuracy, found.cell_accuracy) == (1, 1)
    assert found.kept_grid_accuracy < 1


def test_steps_are_measured_by_operation_and_beside_a_model_that_expects_no_change(steps):
    held_out = steps.held_out()
    keeper, filler = (evaluate_steps(kind(jnp.float32(0)), held_out) for kind in (Keeper, Filler))
    assert keeper.exact_grid_accuracy == keeper.kept_grid_accuracy
    assert all(exact == kept for _, exact, kept in keeper.by_operation.values())
    assert sum(count for count, _, _ in keeper.by_operation.values()) == 48
    assert filler.exact_grid_accuracy > keeper.exact_grid_accuracy
    assert keeper.reward_error == pytest.approx(float(jnp.abs(held_out.reward).mean()))


def test_a_right_model_has_no_open_loop_error_and_one_that_keeps_the_grid_has_that_of_keeping(steps):
    mixed, *by_operation = steps.held_out_trajectories()
    assert open_loop_error(Keeper(jnp.float32(0)), mixed).operation is None
    trajectories = {int(each.operation[0, 0]): each for each in by_operation}
    assert set(trajectories) == set(trajectory_operations(RULES))
    fill = trajectories[c.FILL + 3]
    exact = open_loop_error(Filler(jnp.float32(0)), fill)
    assert (exact.exact, exact.wrong_cells) == ((1.0,) * 4, (0.0,) * 4)
    kept = open_loop_error(Keeper(jnp.float32(0)), fill)
    assert kept.exact == kept.kept
    assert kept.wrong_cells[-1] > 0


def test_the_open_loop_error_goes_on_from_predictions_and_not_from_what_was_seen(steps):
    """The first step is predicted wrong, all later ones right: their grids never become right again."""
    trajectories = steps.held_out_trajectories()
    flip = next(each for each in trajectories if (each.operation == c.FLIP_LEFT_RIGHT).all())
    blank = jnp.ones_like(flip.next_grid)
    expected = float((flip.data[0, ..., 0] == 1).all(axis=(1, 2)).mean())
    found = open_loop_error(Keeper(jnp.float32(0)), eqx.tree_at(lambda x: x.next_grid, flip, blank))
    assert found.exact == (expected,) * 4


@pytest.mark.usefixtures("standard_promotion")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_step_learns_fills_and_keeps_its_parameters_in_float32(precision):
    config = SurrogateTrainingConfig(num_steps=30, learning_rate=0.3, warmup_steps=2, precision=precision)
    model, optimizer = Linear(), make_surrogate_optimizer(config)
    step = create_transition_train_step(model, optimizer, config)
    state, metrics_of_steps = init_optimizer(optimizer, model), []
    for number in range(30):
        model, state, metrics = step(model, state, batch_of(c.FILL + 3, seed=number))
        metrics_of_steps.append({name: float(value) for name, value in metrics.items()})
    assert np.mean([each["total_loss"] for each in metrics_of_steps[-5:]]) < 0.3 * metrics_of_steps[0]["total_loss"]
    assert metrics_of_steps[-1]["exact_grids"] > metrics_of_steps[0]["exact_grids"]
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(model))


@pytest.mark.usefixtures("standard_promotion")
def test_accumulated_parts_give_the_gradient_of_the_whole_batch():
    metrics_of_steps = []
    for parts in (1, 4):
        config, model = SurrogateTrainingConfig(accumulation_steps=parts), Linear()
        optimizer = make_surrogate_optimizer(config)
        step = create_transition_train_step(model, optimizer, config)
        metrics = step(model, init_optimizer(optimizer, model), batch_of(c.FILL + 3))[2]
        metrics_of_steps.append({name: float(value) for name, value in metrics.items()})
    assert metrics_of_steps[0] == pytest.approx(metrics_of_steps[1], rel=1e-5)


def test_a_fresh_model_takes_what_batches_hold(steps):
    model = eqx.filter_eval_shape(steps.make_model, jax.random.key(0))
    predicted = eqx.filter_eval_shape(predict_steps, model, *(steps.batch(0, 0).data, steps.batch(0, 0).action))
    assert predicted.grid.shape == (48, 3, 3)


def test_a_model_of_transitions_has_a_learning_rate_of_its_own(steps):
    config = SurrogateTrainingConfig(learning_rate=0.5, num_steps=77)
    assert steps.training_config(config) == config.replace(
        learning_rate=CONFIG.learning_rate, final_learning_rate=CONFIG.final_learning_rate
    )
