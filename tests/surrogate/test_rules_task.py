"""Predicting the answers of unseen rules: what a batch holds, what is measured, the model as a solver, the commands.

Models and canvases are of one size, so that the program of a prediction is compiled once for most of these tests.
"""

import json

import jax
import numpy as np
import pytest
from run_command import run_command
from small_run import only_folder

from jaxarc.agents.answer_predictor import AnswerPredictor
from jaxarc.config import ConfigValidationError, RulesConfig
from jaxarc.datasets import TaskSet, UnknownDatasetError, load_tasks
from jaxarc.datasets.installed import install
from jaxarc.surrogate import RulesTask, solver_of
from jaxarc.surrogate.rules_task import Puzzles, _predict
from jaxarc.tasks.raw_task import RawTask, crop_padding

HIDDEN, SIDE, SHOWN = 8, 10, 4
TINY = (
    "surrogate=rules",
    "rules.learned=rules/tiny",
    "rules.measured=[rules/tiny-words]",
    f"rules.hidden_size={HIDDEN}",
    "rules.puzzles_per_batch=4",
    "surrogate.steps_per_report=2",
    "surrogate_training.num_steps=4",
    "surrogate_training.warmup_steps=1",
)
SYMMETRIES = [
    lambda grid, n=n: (lambda g: g.T if n & 4 else g)(grid[:: -1 if n & 1 else 1, :: -1 if n & 2 else 1])
    for n in range(8)
]


def tasks_of(name, rule, count, size=(3, 4), num_train=SHOWN):
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        grids = [random.integers(0, 4, size).astype(np.int8) for _ in range(num_train + 1)]
        pairs = [(grid, rule(grid)) for grid in grids]
        found.append(RawTask(f"{name}-{number}", tuple(pairs[:-1]), tuple(pairs[-1:])))
    return TaskSet(name, tuple(found))


@pytest.fixture(scope="module")
def rules():
    config = RulesConfig(side=SIDE, puzzles_per_batch=16, hidden_size=HIDDEN)
    return RulesTask(config, tasks_of("flips", np.flipud, 6), [tasks_of("turns", np.rot90, 9)])


def test_a_batch_has_puzzles_of_the_learned_rules_each_turned_alike(rules):
    batch = rules.batch(3, 7)
    assert batch.answer.shape == (16, SIDE, SIDE)
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
    others = [puzzles.some(rows) for rows in (np.arange(8), np.arange(1, 9))]
    first, last = ((np.asarray(_predict(model, some.puzzle)) == some.answers).all(axis=(1, 2)) for some in others)
    right = np.append(first, last[-1])
    measured = rules.evaluate(model)
    assert measured.by_set == {"turns": (pytest.approx(right.mean()), 9)}
    assert measured.numbers() == {"solved": pytest.approx(right.mean())}


def test_tasks_that_are_too_large_are_left_out_and_a_set_of_no_other_is_refused():
    small, large = (tasks_of(name, np.flipud, 2, size, 3) for name, size in (("small", (3, 4)), ("large", (3, 6))))
    assert len(Puzzles.of([*small, *large], 5, 3)) == 2
    assert len(Puzzles.of(tasks_of("many", np.flipud, 2, num_train=4), 5, 3)) == 0
    with pytest.raises(ConfigValidationError, match="no task of 'large' has up to 5 rows and columns"):
        RulesTask(RulesConfig(side=5), small, [large])


def test_rules_that_are_learned_from_are_not_measured():
    tasks = tasks_of("few", np.flipud, 4)
    some = TaskSet("some", tasks.tasks[2:])
    with pytest.raises(ConfigValidationError, match=r"'some' and 'few', .* share 2 tasks, such as 'few-2'"):
        RulesTask(RulesConfig(side=SIDE), tasks, [some])


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
    model = AnswerPredictor(jax.random.key(0), HIDDEN)
    solve = solver_of(model, attempts=2)
    for size in ((3, 4), (4, 11)):
        (task,) = tasks_of("flips", np.flipud, 1, size, num_train=2)
        ((test_input, answer),) = task.test
        attempts = solve(list(task.train), test_input)
        assert 1 <= len(attempts) <= 2
        np.testing.assert_array_equal(attempts[0], answer)


def succeed(*arguments):
    result = run_command(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.usefixtures("standard_promotion")
def test_rules_are_drawn_learned_measured_and_the_model_answers_other_tasks(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    draw = ("--count", 20, "--held-out", 4, "--canvas", 6, "--processes", 1)
    succeed("tasks", "generate", "rules", "tiny", *draw)
    out = succeed("train", *TINY, "logging.run_root=runs")
    folder = only_folder(tmp_path / "runs")
    assert "20 rules of rules/tiny; measured on 4 of rules/tiny-words." in out
    share, count = json.loads(folder.evaluation.read_text())["rules"]["rules/tiny-words"]
    assert (count, share) in [(4, right / 4) for right in range(5)]
    (row,) = [line for line in out.splitlines() if line.startswith("│ rules/tiny-words")]
    assert f"{100 * share:.1f} %" in row

    scored = json.loads(succeed("evaluate", "rules/tiny-words", "--agent", folder.path, "-o", "out", "--json"))
    submission = json.loads((tmp_path / "out" / "submission.json").read_text())
    assert submission.keys() == {task.task_id for task in load_tasks("rules/tiny-words")}
    assert scored["score"]["num_tasks"] == 4
    for option in (("--votes", 3), ("--precision", "bfloat16"), ("--minutes", 1)):
        refused = run_command("evaluate", "rules/tiny-words", "--agent", folder.path, *option)
        assert (refused.exit_code, option[0] in refused.stderr) == (2, True)
