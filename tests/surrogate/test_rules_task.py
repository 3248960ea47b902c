"""Predicting the answers of unseen rules: what a batch holds, what is measured, and the model as a solver."""

import jax
import numpy as np
import pytest

from jaxarc.agents.answer_predictor import AnswerPredictor
from jaxarc.config import ConfigValidationError, RulesConfig
from jaxarc.datasets import TaskSet, UnknownDatasetError
from jaxarc.datasets.installed import install
from jaxarc.surrogate import RulesTask, solver_of
from jaxarc.surrogate.rules_task import Puzzles
from jaxarc.tasks.raw_task import RawTask, crop_padding

SYMMETRIES = [
    lambda grid, n=n: (lambda g: g.T if n & 4 else g)(grid[:: -1 if n & 1 else 1, :: -1 if n & 2 else 1])
    for n in range(8)
]


def tasks_of(name, rule, count, size=(3, 4), num_train=3):
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        grids = [random.integers(0, 4, size).astype(np.int8) for _ in range(num_train + 1)]
        pairs = [(grid, rule(grid)) for grid in grids]
        found.append(RawTask(f"{name}-{number}", tuple(pairs[:-1]), tuple(pairs[-1:])))
    return TaskSet(name, tuple(found))


@pytest.fixture(scope="module")
def rules():
    config = RulesConfig(side=5, puzzles_per_batch=16, hidden_size=8)
    return RulesTask(config, tasks_of("flips", np.flipud, 6), [tasks_of("turns", np.rot90, 5)])


def test_a_batch_has_puzzles_of_the_learned_rules_each_turned_alike(rules):
    batch = rules.batch(3, 7)
    assert batch.answer.shape == (16, 5, 5)
    turned = set()
    for place in range(16):
        grids = [*np.asarray(batch.puzzle.inputs[place]), np.asarray(batch.puzzle.grid[place])]
        grids = [crop_padding(grid) for grid in grids]
        fits = [
            (number, task)
            for task in range(6)
            for number, turn in enumerate(SYMMETRIES)
            if all(
                np.array_equal(turn(crop_padding(one)), grid)
                for one, grid in zip([*rules.train.inputs[task], rules.train.grids[task]], grids, strict=True)
            )
        ]
        ((number, task),) = fits
        turned.add(number)
        wanted = SYMMETRIES[number](crop_padding(rules.train.answers[task]))
        np.testing.assert_array_equal(crop_padding(np.asarray(batch.answer[place])), wanted)
    assert len(turned) > 4


def test_a_batch_depends_on_its_seed_and_step_alone(rules):
    same = lambda a, b: all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    assert same(rules.batch(0, 5), rules.batch(0, 5))
    assert not same(rules.batch(0, 5), rules.batch(0, 6))
    assert not same(rules.batch(0, 5), rules.batch(1, 5))


def test_the_share_of_solved_tasks_counts_answers_that_are_right_in_every_cell(rules):
    model = rules.make_model(jax.random.key(0))
    puzzles = rules.held_out["turns"]
    right = (np.asarray(jax.jit(AnswerPredictor.predict)(model, puzzles.puzzle)) == puzzles.answers).all(axis=(1, 2))
    measured = rules.evaluate(model)
    assert measured.by_set == {"turns": (pytest.approx(right.mean()), 5)}
    assert measured.numbers() == {"solved": pytest.approx(right.mean())}


def test_tasks_that_are_too_large_are_left_out_and_a_set_of_no_other_is_refused():
    small, large = tasks_of("small", np.flipud, 2), tasks_of("large", np.flipud, 2, (3, 6))
    assert len(Puzzles.of([*small, *large], 5, 3)) == 2
    assert len(Puzzles.of(tasks_of("many", np.flipud, 2, num_train=4), 5, 3)) == 0
    with pytest.raises(ConfigValidationError, match="no task of 'large' has up to 5 rows and columns"):
        RulesTask(RulesConfig(side=5), small, [large])


def test_sets_are_loaded_by_their_names(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path))
    install(tasks_of("rules/a", np.flipud, 2), "rules/a")
    config = RulesConfig(learned="rules/a", measured=("rules/b",), side=5)
    with pytest.raises(UnknownDatasetError, match="rules/b"):
        RulesTask.load(config)
    install(tasks_of("rules/b", np.fliplr, 3), "rules/b")
    assert len(RulesTask.load(config).held_out["rules/b"]) == 3
    with pytest.raises(ConfigValidationError, match="measured must name a set"):
        RulesConfig(measured=())


def test_a_solver_takes_any_grids_and_votes_in_all_turns():
    model = AnswerPredictor(jax.random.key(0), 8)
    solve = solver_of(model, attempts=2)
    for size in ((3, 4), (4, 11)):
        (task,) = tasks_of("flips", np.flipud, 1, size, num_train=2)
        ((test_input, answer),) = task.test
        attempts = solve(list(task.train), test_input)
        assert 1 <= len(attempts) <= 2
        np.testing.assert_array_equal(attempts[0], answer)
