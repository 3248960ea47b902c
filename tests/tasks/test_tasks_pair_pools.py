"""Tasks whose files list pairs without a split, as re-arc's do, and the pairs that a reset draws."""

import dataclasses
import json
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from run_command import run_command

import jaxarc
from jaxarc.datasets import load_tasks
from jaxarc.datasets.archives import ARCHIVES, read_archive
from jaxarc.datasets.installed import install, read_installed
from jaxarc.datasets.json_files import find_problems
from jaxarc.datasets.task_set import digest_of
from jaxarc.tasks import TaskFormatError
from jaxarc.tasks.pair_pool import draw_distinct

IDS = ("00d62c1b", "007bbfb7")


def pair(number):
    """A pair that no other number gives: the number in base 10, and the same backwards."""
    digits = [int(digit) for digit in f"{number:03d}"]
    return {"input": [digits], "output": [digits[::-1]]}


@pytest.fixture
def re_arc(tmp_path):
    """The layout of re-arc: twelve pairs of one task, seven of another, and the metadata."""
    tasks = tmp_path / "re_arc" / "tasks"
    tasks.mkdir(parents=True)
    (tasks / f"{IDS[0]}.json").write_text(json.dumps([pair(100 + i) for i in range(12)]))
    (tasks / f"{IDS[1]}.json").write_text(json.dumps([pair(200 + i) for i in range(7)]))
    metadata = {task_id: {"n_generations": 12, "runtime": 0.5, "rng_difficulties": [0.5]} for task_id in IDS}
    (tasks.parent / "metadata.json").write_text(json.dumps(metadata))
    return tasks.parent


def zipped(folder):
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*.json")):
            archive.write(file, file.relative_to(folder.parent))
    return path


def test_a_folder_and_a_zip_of_re_arc_hold_the_same_tasks(re_arc):
    folder = load_tasks(re_arc)
    assert folder.task_ids == tuple(sorted(IDS))
    assert [len(task.all_pairs) for task in folder] == [7, 12]
    assert {task.concept for task in folder} == {""}
    assert digest_of(load_tasks(str(zipped(re_arc)))) == digest_of(folder)
    assert find_problems(re_arc) == []


def test_of_a_list_of_pairs_three_are_shown_and_the_fourth_is_the_test(re_arc):
    (task,) = load_tasks(re_arc / "tasks" / f"{IDS[0]}.json")
    assert [grid.tolist() for grid, _ in task.train] == [pair(i)["input"] for i in (100, 101, 102)]
    assert [grid.tolist() for grid, _ in task.test] == [pair(103)["input"]]
    assert len(task.pool) == 8
    assert "+ 8 more" in repr(task)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([pair(1)], "needs 2 pairs or more, got 1"),
        ([pair(1), {"input": [[1]]}], "pair 1: the key 'output' is missing"),
        ([pair(1), [[[1]], [[2]]]], "pair 1: a pair is"),
    ],
    ids=["one-pair", "no-output", "no-names"],
)
def test_a_wrong_pair_is_named(tmp_path, content, words):
    file = tmp_path / "one.json"
    file.write_text(json.dumps(content))
    with pytest.raises(TaskFormatError) as caught:
        load_tasks(file)
    assert words in str(caught.value)
    assert [problem.message for problem in find_problems(file)] == [str(caught.value)]


def test_an_installed_set_keeps_its_pools_and_exports_them(re_arc, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "data"))
    tasks = load_tasks(re_arc)
    install(tasks, "mine")
    assert digest_of(read_installed("mine")) == digest_of(tasks)
    assert run_command("tasks", "export", "mine", tmp_path / "out").exit_code == 0
    assert digest_of(load_tasks(tmp_path / "out")) == digest_of(tasks)


def test_the_published_file_is_known_by_the_name_that_git_gives_it(re_arc, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "data"))
    path = zipped(re_arc)
    with pytest.raises(TaskFormatError, match="git names its content") as caught:
        read_archive(path, ARCHIVES["re-arc"], "re-arc")
    named = str(caught.value).split("content ")[1].split(",")[0]
    pinned = dataclasses.replace(ARCHIVES["re-arc"], git_blob=named)
    assert len(read_archive(path, pinned, "re-arc")) == 2
    with pytest.raises(TaskFormatError, match="known by its zip file"):
        read_archive(re_arc, pinned, "re-arc")


def test_drawn_numbers_are_different_and_every_order_comes_up():
    draw = jax.jit(jax.vmap(lambda key, count: draw_distinct(key, count, 3, 4), (0, None)))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(0), 6000), jnp.int32(4)))
    assert set(drawn.ravel().tolist()) == {0, 1, 2, 3}
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 24  # 4 * 3 * 2 orders, 250 each: five standard deviations
    assert abs(counts - 250).max() < 80


def test_numbers_of_a_large_pool_are_drawn_from_all_of_it_and_those_of_a_small_one_as_before():
    most = 200_000
    draw = jax.jit(
        jax.vmap(lambda key, count, most: draw_distinct(key, count, 4, most), (0, None, None)), static_argnums=2
    )
    keys = jax.random.split(jax.random.key(0), 40_000)
    drawn = np.asarray(draw(keys, jnp.int32(most), most))
    assert (np.sort(drawn, axis=1)[:, 1:] > np.sort(drawn, axis=1)[:, :-1]).all()
    # Each number of a draw comes up once in 5 draws; 16 bits reach every third or fourth one only.
    assert len(np.unique(drawn)) == pytest.approx(most * (1 - np.exp(-160_000 / most)), rel=0.01)
    counts = np.bincount(drawn.ravel() // 1000, minlength=200)
    assert ((counts - 800) ** 2 / 800).sum() < 200 + 5 * np.sqrt(2 * 200)  # five standard deviations
    np.testing.assert_array_equal(draw(keys, jnp.int32(50), most), draw(keys, jnp.int32(50), 50))


def test_a_reset_draws_pairs_of_its_task(re_arc):
    tasks = load_tasks(re_arc)
    env, params = jaxarc.make(tasks, max_grid_height=3, max_grid_width=3, mode="test", include_demonstrations=True)
    states, shown = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(1), 64), params)
    inputs = np.asarray(states.pairs.inputs)[:, :, :3]
    outputs = np.asarray(states.pairs.outputs)[:, :, :3]
    assert inputs.shape == (64, 4, 3)
    assert (outputs == inputs[..., ::-1]).all()
    families = np.where(np.asarray(states.task_index) == 0, 2, 1)  # 200s and 100s, in the order of ids
    assert (inputs[..., 0] == families[:, None]).all()
    assert all(len({tuple(row) for row in rows}) == 4 for rows in inputs.tolist())
    assert len({tuple(row) for rows in inputs.tolist() for row in rows}) == 19  # every pair is drawn
    # What is played is the fourth, and no demonstration shows its answer.
    assert (np.asarray(states.target_grid)[:, 0] == outputs[:, 3]).all()
    hidden = np.asarray(states.target_grid)[:, None]
    assert not (np.asarray(shown["demonstrations"]["outputs"]) == hidden).all((-2, -1)).any()


def test_the_number_of_demonstrations_can_be_chosen(re_arc):
    pool = load_tasks(re_arc).pair_pool((3, 3), num_train=5, num_test=2)
    assert (pool.num_train, pool.num_test, pool.num_tasks) == (5, 2, 2)
    env, params = jaxarc.make(pool, max_grid_height=3, max_grid_width=3)
    state, _ = env.reset(jax.random.key(0), params)
    assert state.pairs.inputs.shape == (7, 9)
    with pytest.raises(ValueError, match=r"'007bbfb7' has 7 .*7 \+ 1"):
        load_tasks(re_arc).pair_pool(num_train=7)


def test_pairs_that_do_not_fit_are_left_out_of_the_draw(re_arc):
    wide = [{"input": [[1, 2, 3, 4]], "output": [[1]]}, *(pair(300 + i) for i in range(4))]
    (re_arc / "tasks" / "11111111.json").write_text(json.dumps(wide))
    (re_arc / "tasks" / "22222222.json").write_text(json.dumps([wide[0], *wide[:4]]))
    tasks = load_tasks(re_arc)
    with pytest.raises(ValueError, match="does not fit the canvas 3x3"):
        jaxarc.make(tasks, max_grid_height=3, max_grid_width=3)
    _, params = jaxarc.make(tasks, max_grid_height=3, max_grid_width=3, too_large="skip")
    assert params.tasks.num_tasks == 3
    assert params.tasks.inputs.shape[0] == 23
    _, one = jaxarc.make(tasks, tasks=[IDS[0]], max_grid_height=3, max_grid_width=3)
    assert one.tasks.inputs.shape[0] == 12
