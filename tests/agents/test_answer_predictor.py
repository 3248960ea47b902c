"""A predictor of answers: what it says, what it may not know, and how it learns."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from edit_world import with_noise

from jaxarc.agents.answer_predictor import AnswerPredictor, Puzzle, _with_common_colors
from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.predictor import (
    PredictorState,
    answer_shown_config,
    learn_answers,
    predict_answer,
    puzzle_of,
    with_answer,
)
from jaxarc.config import AgentConfig, AnswerConfig, CloningConfig, JaxArcConfig, NetworkConfig, ScheduleConfig
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.tasks import uniform_weights
from jaxarc.tasks.procedural import procedural_tasks

SIDE, TASKS, SLOTS, HIDDEN = 4, 64, 3, 16  # the same in all tests: what they share is compiled once
RULES = JaxArcConfig().with_fields(
    max_grid_height=SIDE, max_grid_width=SIDE, selection_format="bbox", include_demonstrations=True, include_input=True
)
TRAIN_CONFIG = TrainConfig(
    AgentConfig(),
    NetworkConfig(),
    ScheduleConfig(),
    AnswerConfig("predicted", batch_size=16, batches_per_update=60, learning_rate=1e-2, hidden_size=HIDDEN),
    CloningConfig(),
    num_updates=1,
)
ENV = ArcEnvironment()
predict = jax.jit(AnswerPredictor.predict)
reset_all = jax.jit(jax.vmap(ENV.reset, (0, None, None)))


@jax.jit
def loss_of(predictor, puzzle, answer):
    """Of all cells, so that their keys do not matter."""
    return jax.vmap(predictor.loss)(puzzle, answer, jax.random.split(jax.random.key(5), len(answer)))


def params_of(*rules, least=2):
    tasks = procedural_tasks(rules, (SIDE, SIDE), num_train=SLOTS, side=(least, SIDE))
    return EnvParams(tasks, uniform_weights(tasks.num_tasks), RULES)


def drawn(seed, params, rule=0):
    """The first states of a rule's tasks, and what is observed."""
    return reset_all(jax.random.split(jax.random.key(seed), TASKS), params, rule)


@pytest.fixture(scope="module")
def fresh():
    """A predictor that has learned nothing, and the state of its optimizer."""
    with jax.numpy_dtype_promotion("standard"):
        return jax.jit(lambda key: PredictorState.create(key, TRAIN_CONFIG))(jax.random.key(0))


@pytest.fixture(scope="module")
def predictor(fresh):
    return with_noise(fresh.predictor, 0, 0.3)


@pytest.fixture(scope="module")
def puzzle():
    """Puzzles of grids that have nothing to do with each other; not every slot holds a demonstration."""
    random = np.random.default_rng(0)

    def draw(*shape):
        grids = np.full((*shape, SIDE, SIDE), -1, np.int8)
        for place in np.ndindex(*shape):
            height, width = random.integers(2, SIDE + 1, 2)
            grids[place][:height, :width] = random.integers(0, 5, (height, width))
        return jnp.asarray(grids)

    shown = jnp.asarray(random.random((TASKS, SLOTS)) < 0.6).at[:, 0].set(True)
    return Puzzle(draw(TASKS, SLOTS), draw(TASKS, SLOTS), shown, draw(TASKS))


@pytest.fixture(scope="module")
def answer(puzzle):
    return jnp.asarray(np.random.default_rng(1).permutation(np.asarray(puzzle.grid)))


@pytest.mark.parametrize("seed", range(2))
def test_permuting_the_colors_permutes_the_prediction(predictor, puzzle, answer, seed):
    colors = np.concatenate([[0], 1 + np.random.default_rng(seed).permutation(9)])  # black is a color of its own
    recolor = lambda grids: jnp.asarray(np.where(np.asarray(grids) >= 0, colors[grids], -1), jnp.int8)
    other = Puzzle(recolor(puzzle.inputs), recolor(puzzle.outputs), puzzle.shown, recolor(puzzle.grid))
    found = predict(predictor, puzzle)
    assert not np.array_equal(recolor(found), found)
    np.testing.assert_array_equal(predict(predictor, other), recolor(found))
    np.testing.assert_allclose(
        loss_of(predictor, other, recolor(answer)), loss_of(predictor, puzzle, answer), rtol=1e-4
    )


def test_a_loss_names_colors_by_how_common_they_are(puzzle, answer):
    one = jax.tree.map(lambda part: part[0], puzzle)
    renamed, renamed_answer = _with_common_colors(one, answer[0])
    np.testing.assert_array_equal(renamed.shown, one.shown)
    parts = lambda puzzle, answer: [puzzle.inputs[one.shown], puzzle.outputs[one.shown], puzzle.grid, answer]
    before, after = (
        np.concatenate([np.ravel(p) for p in parts(*both)]) for both in ((one, answer[0]), (renamed, renamed_answer))
    )
    pairs = set(zip(before.tolist(), after.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert {(-1, -1), (0, 0)} <= pairs
    counts = [int((after == color).sum()) for color in range(1, 10)]
    assert counts == sorted(counts, reverse=True)


def test_what_lies_in_empty_slots_changes_nothing(predictor, puzzle, answer):
    shown = puzzle.shown[..., None, None]
    spoiled = puzzle._replace(
        inputs=jnp.where(shown, puzzle.inputs, jnp.int8(7)), outputs=jnp.where(shown, puzzle.outputs, jnp.int8(-1))
    )
    np.testing.assert_array_equal(predict(predictor, spoiled), predict(predictor, puzzle))
    np.testing.assert_array_equal(loss_of(predictor, spoiled, answer), loss_of(predictor, puzzle, answer))


def test_the_order_of_the_demonstrations_changes_nothing(predictor, puzzle, answer):
    turned = Puzzle(puzzle.inputs[:, ::-1], puzzle.outputs[:, ::-1], puzzle.shown[:, ::-1], puzzle.grid)
    np.testing.assert_array_equal(predict(predictor, turned), predict(predictor, puzzle))
    np.testing.assert_allclose(loss_of(predictor, turned, answer), loss_of(predictor, puzzle, answer), rtol=1e-4)


def test_rules_that_one_reading_follows_are_fitted_by_a_fresh_predictor(fresh):
    names = ("rotate", "flip-left-right", "transpose", "gravity")
    params = params_of(*names)
    for rule, name in enumerate(names):
        states, observation = drawn(2, params, rule)
        right = (np.asarray(predict(fresh.predictor, puzzle_of(observation))) == states.target_grid).all(axis=(1, 2))
        assert right.mean() > 0.9, name


@pytest.fixture(scope="module")
def learned(fresh):
    """What a rule's tasks teach in a few batches."""
    params = params_of("fill-enclosed", least=3)
    learn = jax.jit(lambda predictor_state, key: learn_answers(predictor_state, key, params, TRAIN_CONFIG))
    with jax.numpy_dtype_promotion("standard"):
        after, loss = learn(fresh, jax.random.key(1))
    return params, after, loss


def test_a_rule_is_learned_from_its_tasks(fresh, learned):
    params, after, loss = learned
    states, observation = drawn(7, params)
    shown = puzzle_of(observation)
    right = lambda predictor_state: np.mean(
        (np.asarray(predict(predictor_state.predictor, shown)) == states.target_grid).all(axis=(1, 2))
    )
    mean_loss = lambda predictor_state: loss_of(predictor_state.predictor, shown, states.target_grid).mean()
    assert right(fresh) < 0.9
    assert right(after) > 0.95
    assert mean_loss(after) < loss < mean_loss(fresh)


def test_the_hidden_answer_never_enters(learned):
    params, after, _ = learned
    states, observation = drawn(3, params)
    before = predict(after.predictor, puzzle_of(observation))
    assert (np.asarray(before) == states.target_grid).all(axis=(1, 2)).mean() > 0.9
    assert "target_grid" not in observation
    other = eqx.tree_at(lambda states: states.canvas.target, states, jnp.full_like(states.canvas.target, 9))
    observed = jax.jit(jax.vmap(ENV.observe, (0, None)))(other, params)
    np.testing.assert_array_equal(predict(after.predictor, puzzle_of(observed)), before)


def test_a_predicted_answer_takes_the_place_of_a_shown_one():
    shown = {name: jnp.int32(place) for place, name in enumerate(("working_grid", "input_grid", "step_count"))}
    assert with_answer(shown, jnp.int8(5)) == {"working_grid": 0, "step_count": 2, "target_grid": 5}
    assert with_answer(shown, predict_answer(None, shown)) is shown


def test_the_editor_practices_on_shown_answers_by_rules_that_are_otherwise_the_same():
    practice = answer_shown_config(RULES)
    assert practice == RULES.with_fields(reveal_target=True, include_demonstrations=False, include_input=False)
