"""The quick scorer: counts by bits against NumPy, worths against the expert, and what must not change a logit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_scorer import EXACT, exact_scorer
from small_tasks import tasks_of

import jaxarc
from jaxarc import constants as c
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.lookahead import look_ahead
from jaxarc.surrogate import bit_counts as bits
from jaxarc.surrogate.bit_counts import Boxes
from jaxarc.surrogate.candidate_features import describe_boxes, describe_grids
from jaxarc.surrogate.scorers import CountingScorer, Grids, choose_box

SHAPE, COUNT = (6, 7), 96
score = jax.jit(lambda model, grids, operation, boxes: model.score(grids, operation, boxes))


def draw_grid(draw, shape=SHAPE, num_colors=3):
    """Colors in an active area of random size."""
    grid = draw.integers(0, num_colors, shape).astype(np.int8)
    height, width = (draw.integers(1, side + 1) for side in shape)
    grid[height:], grid[:, width:] = -1, -1
    return grid


def draw_boxes(draw, shape=SHAPE, count=COUNT):
    rows, columns = (np.sort(draw.integers(0, side, (count, 2)), axis=1).astype(np.int32) for side in shape)
    return Boxes(*map(jnp.asarray, (rows[:, 0], columns[:, 0], rows[:, 1], columns[:, 1])))


def draw_model():
    """A scorer all of whose weights count."""
    model = CountingScorer(jax.random.key(0))
    leaves, tree = jax.tree.flatten(model)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    return jax.tree.unflatten(tree, [jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)])


def draw_situation(seed=0):
    draw = np.random.default_rng(seed)
    grids = Grids(*(jnp.asarray(draw_grid(draw)) for _ in range(3)))
    operation = jnp.asarray(draw.integers(0, c.NUM_GRID_OPERATIONS, COUNT), jnp.int32)
    return grids, operation, draw_boxes(draw)


@pytest.mark.parametrize("shape", [(1, 1), (6, 7), (3, 32), (9, 16)])
def test_bits_count_the_cells_that_numpy_counts(shape):
    draw = np.random.default_rng(0)
    grid, other, boxes = draw_grid(draw, shape), draw_grid(draw, shape), draw_boxes(draw, shape, 16)
    color = draw.integers(-1, 12, 16).astype(np.int32)
    packed, compared = bits.pack_colors(jnp.asarray(grid)), bits.pack_colors(jnp.asarray(other))
    of_color, active, equal = (np.zeros(16, np.int32) for _ in range(3))
    height, width = (int((grid >= 0).any(axis=axis).sum()) for axis in (1, 0))
    assert int(bits.covering_area(bits.active_cells(packed, shape[1]), shape[1])) == height * width
    inside, alike = bits.active_cells(packed, shape[1]), bits.equal_cells(packed, compared)
    for word in range(len(packed)):
        box = bits.cells_of_boxes(boxes, shape, word)
        of_color += np.asarray(bits.count_cells(bits.cells_of_color(packed, jnp.asarray(color), word) & box))
        active += np.asarray(bits.count_cells(inside[word] & box))
        equal += np.asarray(bits.count_cells(alike[word] & box))
    for place, (top, left, bottom, right) in enumerate(np.stack(boxes, axis=1)):
        cells = grid[top : bottom + 1, left : right + 1]
        wanted = (cells == color[place]).sum() if 0 <= color[place] <= 9 else 0
        assert of_color[place] == wanted
        assert active[place] == (cells >= 0).sum()
        assert equal[place] == (cells == other[top : bottom + 1, left : right + 1]).sum()


def test_called_as_other_scorers_it_says_the_same_as_of_boxes():
    model, (grids, operation, boxes) = draw_model(), draw_situation()
    actions = BboxAction(operation, *boxes)
    described = describe_boxes(actions, jnp.ones(COUNT, bool), SHAPE)
    assert described.rows.shape == (COUNT, SHAPE[0])
    told = jax.jit(lambda model, data, candidates: model(data, candidates))(model, describe_grids(*grids), described)
    np.testing.assert_allclose(told, score(model, grids, operation, boxes), rtol=1e-6)
    assert len(np.unique(np.asarray(told))) > 10


def test_candidates_that_change_places_take_their_logits_along():
    model, (grids, operation, boxes) = draw_model(), draw_situation()
    order = np.random.default_rng(5).permutation(COUNT)
    turned = score(model, grids, operation[order], jax.tree.map(lambda x: x[order], boxes))
    np.testing.assert_allclose(turned, np.asarray(score(model, grids, operation, boxes))[order], rtol=1e-6)


def test_colors_other_than_black_are_alike():
    model, (grids, operation, boxes) = draw_model(), draw_situation()
    new = np.array([0, 7, 4, 1, 2, 3, 5, 6, 9, 8])
    recolor = lambda grid: jnp.where(grid >= 0, jnp.asarray(new, jnp.int8)[grid], grid)
    paints = operation < c.MOVE_UP
    recolored = jnp.where(paints, operation // 10 * 10 + jnp.asarray(new, jnp.int32)[operation % 10], operation)
    before = score(model, grids, operation, boxes)
    after = score(model, Grids(*map(recolor, grids)), recolored, boxes)
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_what_is_no_candidate_changes_no_other_logit():
    model, (grids, operation, boxes) = draw_model(), draw_situation()
    fills = np.asarray(operation) < c.FLOOD_FILL
    best = int(np.flatnonzero(fills)[0])  # a fill that gains more than all others
    whole = Boxes(*(end.at[best].set(value) for end, value in zip(boxes, (0, 0, 5, 6), strict=True)))
    without = score(model, grids, operation.at[best].set(c.NO_OPERATION), whole)
    others = np.delete(np.arange(COUNT), best)
    again = score(model, grids, operation.at[best].set(c.NO_OPERATION), boxes)
    np.testing.assert_array_equal(np.asarray(without)[others], np.asarray(again)[others])


@functools.cache
def make_world():
    draw = np.random.default_rng(1)
    cut = lambda grid: grid[grid[:, 0] >= 0][:, grid[0] >= 0].astype(int)
    grid = lambda: cut(draw_grid(draw))
    pairs = [(grid(), grid()) for _ in range(7)]
    pairs.append((pairs[0][1], pairs[0][1]))  # solved from the start
    return jaxarc.make(
        tasks_of(*pairs), selection_format="bbox", reveal_target=True, include_input=True, history_enabled=False,
        max_grid_height=SHAPE[0], max_grid_width=SHAPE[1], invalid_action_policy="noop",
    )  # fmt: skip


def test_with_the_right_weights_its_logits_are_the_experts_worths():
    env, params = make_world()
    draw = np.random.default_rng(2)
    states, seen = jax.jit(jax.vmap(env.reset, (0, None, 0)))(
        jax.random.split(jax.random.key(0), 8), params, jnp.arange(8)
    )
    operation = jnp.asarray(draw.choice(EXACT, (8, COUNT)), jnp.int32)
    boxes = jax.tree.map(lambda *rows: jnp.stack(rows), *[draw_boxes(draw) for _ in range(8)])
    sizes = states.canvas.sizes.astype(jnp.int32)
    # A clear of the whole grid and a resize to the target's size are what the state is told of.
    for whole, (height, width) in ((c.CLEAR, (0, 1)), (c.RESIZE, (2, 3))):
        last = [jnp.zeros(8, jnp.int32)] * 2 + [sizes[:, height] - 1, sizes[:, width] - 1]
        is_it = operation == whole
        boxes = Boxes(*(jnp.where(is_it, end[:, None], box) for box, end in zip(boxes, last, strict=True)))
    actions = BboxAction(operation, *boxes)
    scores = jax.jit(jax.vmap(lambda state, actions: look_ahead(state, actions, params)))(states, actions)
    grids = Grids(seen["working_grid"], seen["target_grid"], seen["input_grid"])
    logits = jax.jit(jax.vmap(exact_scorer().score))(grids, operation, boxes)
    np.testing.assert_allclose(logits / 100, scores.score, atol=1e-5)
    assert scores.score.max() == 2


def test_the_choice_is_the_first_of_the_best_that_are_real():
    model, (grids, operation, boxes) = exact_scorer(), draw_situation()
    twice = jnp.concatenate([operation, operation])
    actions = BboxAction(twice, *(jnp.concatenate([end, end]) for end in boxes))
    logits = np.asarray(score(model, grids, twice, Boxes(actions.r1, actions.c1, actions.r2, actions.c2)))
    observation = {"working_grid": grids.working, "target_grid": grids.target, "input_grid": grids.source}
    choose = jax.jit(choose_box)
    best = int(np.argmax(logits))
    assert best < COUNT
    real = jnp.ones(2 * COUNT, bool)
    assert int(choose(model, observation, actions, real)) == best
    assert int(choose(model, observation, actions, real & (jnp.arange(2 * COUNT) >= COUNT))) == best + COUNT
