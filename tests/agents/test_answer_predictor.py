"""A predictor of answers: what it says, what it may not know, and how it learns."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from edit_world import with_noise

from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.predictor import (
    NUM_CANDIDATES,
    NUM_COPIES,
    AnswerPredictor,
    PredictorState,
    Puzzle,
    answer_shown_config,
    learn_answers,
    line_readings,
    predict_answer,
    puzzle_of,
    symmetric_copies,
    with_answer,
)
from jaxarc.config import AgentConfig, AnswerConfig, CloningConfig, JaxArcConfig, NetworkConfig, ScheduleConfig
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.tasks import uniform_weights
from jaxarc.tasks.procedural import procedural_tasks

SIDE, TASKS, SLOTS = 4, 12, 3
RULES = JaxArcConfig().with_fields(
    max_grid_height=SIDE, max_grid_width=SIDE, selection_format="bbox", include_demonstrations=True, include_input=True
)
TRAIN_CONFIG = TrainConfig(
    AgentConfig(),
    NetworkConfig(),
    ScheduleConfig(),
    AnswerConfig("predicted", batch_size=16, batches_per_update=150, learning_rate=2e-2, hidden_size=16),
    CloningConfig(),
    num_updates=1,
)
ENV = ArcEnvironment()
predict, loss_of = jax.jit(AnswerPredictor.predict), jax.jit(AnswerPredictor.loss)


def params_of(*rules):
    tasks = procedural_tasks(rules, (SIDE, SIDE), side=(2, SIDE))
    return EnvParams(tasks, uniform_weights(tasks.num_tasks), RULES)


@pytest.fixture(scope="module")
def predictor():
    return with_noise(AnswerPredictor(jax.random.key(0), 8), 0, 0.3)


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
        loss_of(predictor, other, recolor(answer)), loss_of(predictor, puzzle, answer), rtol=1e-5
    )


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
    np.testing.assert_allclose(loss_of(predictor, turned, answer), loss_of(predictor, puzzle, answer), rtol=1e-5)


def sure_of(predictor, candidate):
    """A predictor that trusts one candidate everywhere."""
    last = predictor.choice_last
    sure = jnp.where(jnp.arange(NUM_CANDIDATES) == candidate, 60.0, 0.0)
    return eqx.tree_at(
        lambda p: (p.choice_last.weight, p.choice_last.bias), predictor, (jnp.zeros_like(last.weight), sure)
    )


def test_a_candidate_that_gets_all_the_weight_is_the_prediction(predictor, puzzle, answer):
    copies = np.concatenate([symmetric_copies(puzzle.grid), line_readings(puzzle.grid)], axis=1)
    assert copies.shape[1] == NUM_COPIES
    for candidate in range(NUM_COPIES):
        sure = sure_of(predictor, candidate)
        np.testing.assert_array_equal(predict(sure, puzzle), copies[:, candidate])
        np.testing.assert_allclose(loss_of(sure, puzzle, jnp.asarray(copies[:, candidate])), 0, atol=1e-5)
    black = predict(sure_of(predictor, NUM_CANDIDATES - 2), puzzle)
    assert not black.any()
    assert (np.asarray(predict(sure_of(predictor, NUM_CANDIDATES - 1), puzzle)) == -1).all()


@pytest.fixture(scope="module")
def learned():
    """What a rule's tasks teach in a few batches."""
    params = params_of("flip-up-down")
    learn = jax.jit(lambda predictor_state, key: learn_answers(predictor_state, key, params, TRAIN_CONFIG))
    with jax.numpy_dtype_promotion("standard"):
        start = jax.jit(lambda key: PredictorState.create(key, TRAIN_CONFIG))(jax.random.key(0))
        after, loss = learn(start, jax.random.key(1))
    return params, start, after, loss


def test_a_rule_is_learned_from_its_tasks(learned):
    params, start, after, loss = learned
    states, observation = jax.jit(jax.vmap(ENV.reset, (0, None)))(jax.random.split(jax.random.key(7), 64), params)
    shown = puzzle_of(observation)
    right = lambda predictor_state: np.mean(
        (np.asarray(predict(predictor_state.predictor, shown)) == states.target_grid).all(axis=(1, 2))
    )
    assert right(start) < 0.5
    assert right(after) > 0.95
    mean_loss = lambda predictor_state: loss_of(predictor_state.predictor, shown, states.target_grid).mean()
    assert mean_loss(after) < loss < mean_loss(start)


def test_the_hidden_answer_never_enters(learned):
    params, _, after, _ = learned

    @jax.jit
    def predict(state):
        observation = jax.tree.map(lambda x: x[None], ENV.observe(state, params))
        return predict_answer(after.predictor, observation)[0]

    state, observation = jax.jit(ENV.reset)(jax.random.key(3), params)
    before = predict(state)
    assert (np.asarray(before) == state.target_grid).all()
    assert "target_grid" not in observation
    other = eqx.tree_at(lambda state: state.canvas.target, state, jnp.full_like(state.canvas.target, 9))
    np.testing.assert_array_equal(predict(other), before)


def test_a_predicted_answer_takes_the_place_of_a_shown_one():
    shown = {name: jnp.int32(place) for place, name in enumerate(("working_grid", "input_grid", "step_count"))}
    assert with_answer(shown, jnp.int8(5)) == {"working_grid": 0, "step_count": 2, "target_grid": 5}
    assert with_answer(shown, predict_answer(None, shown)) is shown


def test_the_editor_practices_on_shown_answers_by_rules_that_are_otherwise_the_same():
    practice = answer_shown_config(RULES)
    assert practice == RULES.with_fields(reveal_target=True, include_demonstrations=False, include_input=False)
