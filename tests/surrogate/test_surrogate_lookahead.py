"""Examples of the lookahead expert's opinion, and the problem that a surrogate learns from them."""

import functools
import json

import jax
import numpy as np
import pytest
from exact_scorer import EXACT, exact_scorer
from look_ahead_on_host import look_ahead_on_host

import jaxarc
from jaxarc import constants as c
from jaxarc.config import LookaheadConfig, TaskConfig
from jaxarc.experts.host_canvas import HostCanvas
from jaxarc.surrogate.lookahead_task import LookaheadTask

SIDE = 5
CONFIG = LookaheadConfig(num_candidates=32, num_examples=32, episode_steps=4, num_eval=40)


@functools.cache
def make_problem(folder):
    """Pairs of random grids of a few colors, read as users' own files are."""
    draw = np.random.default_rng(0)
    grid = lambda: draw.integers(0, 3, draw.integers(2, SIDE + 1, 2)).tolist()
    pair = lambda: {"input": grid(), "output": grid()}
    tiny = {"input": [[1]], "output": [[2]]}  # so few fills are possible that candidates repeat
    for name, first in (("learned", 0), ("measured", 3)):
        (folder / name).mkdir()
        for i in range(first, first + 3):
            (folder / name / f"{i:08x}.json").write_text(json.dumps({"train": [pair()], "test": [tiny]}))
    _, params = jaxarc.make(
        str(folder / "learned"), selection_format="bbox", start_grid="partial", reveal_target=True, include_input=True,
        max_grid_height=SIDE, max_grid_width=SIDE, history_enabled=False, invalid_action_policy="noop",
    )  # fmt: skip
    task = TaskConfig(str(folder / "learned"), str(folder / "measured"), max_side=SIDE)
    return LookaheadTask.load(task, params.config, CONFIG)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return make_problem(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def examples(problem):
    return jax.tree.map(np.asarray, problem.held_out()[0])


def test_probabilities_sum_to_one_and_leave_out_what_is_not_real(problem):
    batch, candidates = problem.batch(0, 0)
    probs, is_real = np.asarray(batch.expert_probs), np.asarray(candidates.is_real)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-6)
    assert (probs[~is_real] == 0).all()
    assert (~is_real).any()
    assert batch.observational_data.shape == (32, SIDE, SIDE, 3)


def test_the_accuracy_of_an_example_is_the_experts_probability_of_what_is_best(problem, examples):
    batch, _ = problem.batch(0, 0)
    accuracies = np.asarray(batch.expert_accuracies)
    best = np.asarray(batch.expert_probs).max(axis=1)
    assert (accuracies >= best * (1 - 1e-6)).all()  # several candidates may be best
    assert ((accuracies > 0) & (accuracies <= 1)).all()
    assert accuracies.std() > 0.01


def test_a_batch_depends_on_seed_and_step_alone(problem):
    same = LookaheadTask(problem.train_params, problem.eval_params, CONFIG)
    first, again = problem.batch(3, 5), same.batch(3, 5)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)
    for place in ((3, 6), (4, 5)):
        other = problem.batch(*place)
        assert (np.asarray(other.examples.expert_probs) != np.asarray(first.examples.expert_probs)).any()


def test_worths_are_what_plain_numpy_says(examples):
    cut = lambda grid: grid[grid[:, 0] >= 0][:, grid[0] >= 0].astype(np.int8)
    numbers = np.stack([getattr(examples.actions, name) for name in ("operation", "r1", "c1", "r2", "c2")], axis=-1)
    for row in range(0, len(numbers), 5):
        working, target, pair_input = (cut(examples.data[row, ..., channel]) for channel in range(3))
        canvas = HostCanvas(pair_input, (SIDE, SIDE))
        canvas.grid = working.copy()
        edits = examples.is_real[row] & (numbers[row, :, 0] != c.SUBMIT)
        told = look_ahead_on_host(canvas, target, [tuple(n) for n in numbers[row, edits].tolist()], "bbox")
        np.testing.assert_allclose(examples.scores[row, edits], told, rtol=1e-6)


def test_the_likeliest_candidates_are_the_worthiest_and_submits_are_for_solved_grids(examples):
    scores = np.where(examples.is_real, examples.scores, -np.inf)
    is_best = scores == scores.max(axis=1, keepdims=True)
    assert (examples.probs[is_best] > 0).all()
    assert (np.where(is_best, 0, examples.probs).max(axis=1) < examples.probs.max(axis=1)).all()
    submits = np.where(examples.actions.operation == c.SUBMIT, examples.probs, 0).max(axis=1)
    solved = (examples.data[..., 0] == examples.data[..., 1]).all(axis=(1, 2))
    assert ((submits > 0.5) == solved).all()


def test_held_out_pairs_are_those_of_the_other_data_set(problem, examples):
    wanted = {np.asarray(grid).tobytes() for grid in problem.eval_params.tasks.outputs}
    seen = {row.astype(np.int8).reshape(-1).tobytes() for row in examples.data[..., 1]}
    assert seen <= wanted
    assert sum(len(batch.probs) for batch in problem.held_out()) == CONFIG.num_eval


def test_pairs_that_are_learned_from_are_not_held_out(tmp_path):
    problem = make_problem(tmp_path)
    task = TaskConfig(str(tmp_path / "learned"), str(tmp_path / "learned"), max_side=SIDE)
    with pytest.raises(ValueError, match=r"6.*task\.train_dataset"):
        LookaheadTask.load(task, problem.train_params.config, CONFIG)
    few = CONFIG.replace(num_candidates=5)
    with pytest.raises(ValueError, match="5"):
        LookaheadTask.load(task, problem.train_params.config, few)


def test_the_expert_itself_agrees_and_a_fresh_model_does_not(problem):
    knows = problem.evaluate(exact_scorer())
    fresh = problem.evaluate(problem.make_model(jax.random.key(0)))
    held = [jax.tree.map(np.asarray, batch) for batch in problem.held_out()]
    known = np.concatenate([np.where(b.is_real & np.isin(b.actions.operation, EXACT), b.scores, -9) for b in held])
    best = np.concatenate([np.where(b.is_real, b.scores, -9) for b in held]).max(axis=1)
    assert knows.top1_agreement == pytest.approx((known.max(axis=1) == best).mean(), abs=0.02)
    assert knows.regret == pytest.approx((best - known.max(axis=1)).mean(), abs=1e-3)
    assert fresh.top1_agreement < knows.top1_agreement
    assert fresh.regret > knows.regret
