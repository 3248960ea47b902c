"""A network that copies: it looks at places that hold every color an edit makes, and its mark spreads as floods do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxarc import constants as c
from jaxarc.agents.updates import make_params
from jaxarc.config import JaxArcConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.surrogate import (
    EditBatch,
    EditScorer,
    TransitionModel,
    choose_box,
    create_edit_train_step,
    init_optimizer,
)
from jaxarc.surrogate.candidates import describe_boxes
from jaxarc.surrogate.copying import Copied, CopiedCanvas, CopyingNetwork, spread
from jaxarc.tasks import RawTask
from jaxarc.training.surrogates.dynamics import random_trajectories

SIDE = 4
OPERATIONS = (1, 12, *range(c.MOVE_UP, c.SUBMIT))
NETWORK = SurrogateNetworkConfig(latent_size=8)


@pytest.fixture(scope="module")
def trajectories():
    """Steps of all kinds of operations from grids of several sizes, twelve in a row; operation b in column b first."""
    rules = JaxArcConfig().with_fields(
        selection_format="bbox", max_grid_height=SIDE, max_grid_width=SIDE, history_enabled=False,
        allowed_operations=(*OPERATIONS, c.SUBMIT),
    )  # fmt: skip
    draw = np.random.default_rng(0)
    grid = lambda: draw.integers(0, 3, draw.integers(2, SIDE + 1, 2))
    tasks = [RawTask(f"{i:08x}", ((grid(), grid()),), ((grid(), grid()),)) for i in range(6)]
    operations = jnp.asarray(draw.choice(OPERATIONS, (12, 48)), jnp.int32)
    return jax.jit(random_trajectories)(jax.random.key(0), operations, make_params(TaskSet("t", tuple(tasks)), rules))


@pytest.fixture(scope="module")
def copied(trajectories):
    """What a fresh network says of each step."""
    steps = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), trajectories)
    network = CopyingNetwork(jax.random.key(0), 8)
    return steps, jax.jit(jax.vmap(network))(steps.data, steps.action)


def test_every_color_of_the_next_canvas_stands_at_a_place_that_the_network_looks_at(copied):
    steps, canvas = copied
    for predicted, truth in ((canvas.grid, steps.next_grid), (canvas.clipboard, steps.next_clipboard)):
        is_there = np.asarray(predicted.colors == truth[..., None]).any(axis=-1).reshape(len(truth), -1).all(axis=-1)
        missed = {int(operation) for operation in np.asarray(steps.operation)[~is_there]}
        assert missed == set()
    assert set(np.asarray(steps.operation).tolist()) == set(OPERATIONS)
    assert (np.asarray(steps.next_clipboard) >= 0).any()


def test_shares_sum_to_one_and_logits_are_their_logarithms(copied):
    _, canvas = copied
    for predicted in canvas:
        np.testing.assert_allclose(predicted.shares.sum(axis=-1), 1, rtol=1e-5)
    one = jax.tree.map(lambda leaf: leaf[0], canvas.grid)
    np.testing.assert_allclose(jnp.exp(one.logits()).sum(axis=-1), 1, atol=2e-3)
    color = jnp.full((SIDE, SIDE), 2, jnp.int32)
    np.testing.assert_allclose(jnp.exp(one.logits())[..., 3], one.probability_of(color), atol=2e-4)


def test_the_similarity_of_a_certain_grid_is_that_of_the_environment():
    grid = np.full((SIDE, SIDE), -1)
    target = grid.copy()
    grid[:3, :2] = [[1, 2], [1, 1], [0, 0]]
    target[:2, :3] = [[1, 2, 3], [1, 5, 0]]
    similarity = Copied.certainly(jnp.asarray(grid, jnp.int32)).similarity(jnp.asarray(target, jnp.int32))
    assert float(similarity) == pytest.approx(3 / 9)  # three cells of the rectangle of 3 x 3 that holds both


def test_the_similarity_of_a_predicted_grid_counts_the_likeliest_colors():
    colors = jnp.array([[[3, 0], [3, 0], [3, 0], [3, -1]]], jnp.int32)
    shares = jnp.array([[[1, 0], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]]], jnp.float32)
    target = jnp.array([[3, 3, 3, -1]], jnp.int32)
    similarity = jax.jit(lambda colors, shares: Copied(colors, shares).similarity(target))
    assert float(similarity(colors, shares)) == np.float32(2 / 3)  # 3 3 0, whose last cell is outside
    assert float(similarity(colors, shares[..., ::-1])) == 1 / 4  # 0 0 3 3: only the third cell is right


def test_a_mark_spreads_along_a_corridor_and_not_through_walls():
    maze = np.array([[0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
    starts = np.zeros((4, 4), np.float32)
    starts[0, 0] = 1
    padded = np.pad(maze, 1, constant_values=-1)
    neighbors = np.stack([padded[2:, 1:-1], padded[:-2, 1:-1], padded[1:-1, 2:], padded[1:-1, :-2]])
    passes = np.where(neighbors == maze, 1.0, 0.0).astype(np.float32)
    np.testing.assert_array_equal(spread(jnp.asarray(starts), jnp.asarray(passes)), maze == 0)


class Painter(eqx.Module):
    """Takes the action's color in the whole grid, whatever the operation is."""

    def __call__(self, data, action):
        color = jnp.full(data.shape[:2], jnp.argmax(action.features) % c.NUM_COLORS, jnp.int32)
        return CopiedCanvas(Copied.certainly(color), Copied.certainly(color))


class Doubter(eqx.Module):
    """Keeps the whole grid, and is the surer of it the higher the operation's number is."""

    def __call__(self, data, action):
        grid = jnp.round(data[..., 0]).astype(jnp.int32)
        share = 0.6 + 0.01 * jnp.argmax(action.features).astype(jnp.float32)
        shares = jnp.broadcast_to(jnp.stack([share, 1 - share]), (*grid.shape, 2))
        kept = Copied(jnp.stack([grid, jnp.zeros_like(grid)], axis=-1), shares)
        return CopiedCanvas(kept, kept)


def make_edit_scorer(network, submit_weights):
    scorer = jax.jit(lambda key: EditScorer(key, NETWORK))(jax.random.key(0))
    parts = lambda scorer: (scorer.transition.network, scorer.submit_weights)
    return eqx.tree_at(parts, scorer, (network, jnp.array(submit_weights, jnp.float32)))


def test_an_edit_scorer_weighs_the_similarity_that_it_predicts_and_knows_what_a_submit_is_worth():
    target = jnp.full((SIDE, SIDE), 7, jnp.int32).at[0, 0].set(3)
    data = jnp.stack([jnp.zeros_like(target), target, target], axis=-1).astype(jnp.float32)
    corner = jnp.zeros(3, jnp.int32)
    actions = BboxAction(jnp.array([3, 7, c.SUBMIT], jnp.int32), corner, corner, corner, corner)
    candidates = describe_boxes(actions, jnp.ones(3, jnp.bool_), (SIDE, SIDE))
    scorer = make_edit_scorer(Painter(), [-2.0, 1.5])
    score = jax.jit(lambda data: scorer(data, candidates))
    share = 0.5 * 100 / SIDE**2  # of a right cell in a logit
    np.testing.assert_allclose(score(data), [share, 15 * share, -200], rtol=1e-5)
    solved = data.at[..., 0].set(data[..., 1])
    np.testing.assert_allclose(score(solved)[2], 150, rtol=1e-5)


def test_a_predicted_reward_is_linear_in_the_similarity_before_and_in_its_change():
    target = jnp.full((SIDE, SIDE), 7, jnp.int32)
    grid = target.at[1:].set(0)  # a row of four is right
    data = jnp.stack([grid, target, target, target], axis=-1).astype(jnp.float32)
    corner = jnp.zeros(1, jnp.int32)
    actions = describe_boxes(
        BboxAction(corner + 7, corner, corner, corner, corner), jnp.ones(1, jnp.bool_), (SIDE, SIDE)
    )
    model = jax.jit(lambda key: TransitionModel(key, NETWORK))(jax.random.key(0))
    parts = lambda model: (model.network, model.reward.weight)
    model = eqx.tree_at(parts, model, (Painter(), jnp.array([[2.0], [3.0]], jnp.float32)))
    predicted = jax.jit(lambda data: model(data, jax.tree.map(lambda leaf: leaf[0], actions)))(data)
    assert float(predicted.reward) == pytest.approx(2 * 0.25 + 3 * 0.75)


def test_an_edit_scorer_takes_the_first_of_the_edits_that_leave_the_same_grid():
    """Before a resize often no edit makes a cell right, and of equal ones the expert takes the first."""
    target = jnp.full((SIDE, SIDE), 7, jnp.int32)
    grids = dict.fromkeys(("working_grid", "target_grid", "input_grid"), target)
    corner = jnp.zeros(3, jnp.int32)
    actions = BboxAction(jnp.array([5, 17, 9], jnp.int32), corner, corner, corner, corner)
    scorer = make_edit_scorer(Doubter(), [0.0, 0.0])
    choose = jax.jit(lambda is_real: choose_box(scorer, grids, actions, is_real))
    assert int(choose(jnp.array([True, True, True]))) == 0
    assert int(choose(jnp.array([False, True, True]))) == 1


@pytest.mark.usefixtures("standard_promotion")
def test_the_expert_teaches_an_edit_scorer_its_weights_and_steps_teach_it_the_edits(trajectories):
    steps = jax.tree.map(lambda leaf: leaf[:2, :3], trajectories)  # two states with three steps each
    candidates = steps.action  # of the three candidates of each state
    config = SurrogateTrainingConfig(num_steps=9, warmup_steps=0)
    optimizer = optax.sgd(1.0)
    scorer = jax.jit(lambda key: EditScorer(key, NETWORK))(jax.random.key(0))
    train_step = create_edit_train_step(scorer, optimizer, config)
    models = []
    for best in (0, 1):
        probs = jax.nn.one_hot(jnp.full(2, best), 3)
        batch = EditBatch(steps.data[:, 0, ..., :3], candidates, probs, steps)
        model, _, metrics = train_step(jax.tree.map(jnp.copy, scorer), init_optimizer(optimizer, scorer), batch)
        assert set(metrics) == {"total_loss", "top1_agreement", "exact_grids", "gradient_norm"}
        models.append(model)
    # Another expert gives other weights and the same model of transitions, which learned all the same.
    one, other = models
    assert one.similarity_weight != other.similarity_weight
    assert eqx.tree_equal(one.transition, other.transition, rtol=1e-5, atol=1e-6)
    assert not eqx.tree_equal(one.transition, scorer.transition, rtol=1e-5, atol=1e-6)
