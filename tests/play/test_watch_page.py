"""``jaxarc watch`` on runs that go on, in a real browser."""

import json
import re

import jax
import pytest
from local_pages import served
from page_checks import nameless, pale_texts

from jaxarc.agents import EditPolicy
from jaxarc.agents.experiment import Experiment
from jaxarc.config import JaxArcConfig, TaskConfig
from jaxarc.runs.checkpoint import CheckpointRecord, save_checkpoint
from jaxarc.runs.folder import RunFolder

pytest_plugins = ["browser"]

RULES = JaxArcConfig().with_fields(
    max_grid_height=3,
    max_grid_width=3,
    max_episode_steps=4,
    reveal_target=True,
    include_step_count=True,
    selection_format="bbox",
    invalid_action_policy="noop",
)


def moment(update, solved, **more):
    """A line for each of two seeds."""
    rows = [
        {"update": update, "environment_steps": 100 * update, "seconds": 0.5 * update, "seed": seed}
        | {"evaluation_solve_rate": rate, "value_loss": 1 / (1 + update)}
        | more
        for seed, rate in ((0, solved), (1, solved / 2))
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folders = [tmp_path_factory.mktemp(name) for name in ("learned", "measured")]
    for folder, colors in zip(folders, ((4, 5, 6), (1, 2, 3)), strict=True):
        pairs = [{"input": [[color, 0]], "output": [[0, color]]} for color in colors]
        (folder / "one.json").write_text(json.dumps({"train": pairs[:2], "test": pairs[2:]}))
    task = TaskConfig(*map(str, folders), max_side=3)
    return Experiment(environment=RULES, task=task)


@pytest.fixture
def run(tmp_path, experiment):
    folder = RunFolder(tmp_path / "small-run")
    folder.path.mkdir()
    folder.config.write_text(json.dumps(experiment.as_dict()))
    folder.metrics.write_text(moment(0, 0.0))
    return folder


def save_agent(folder, experiment, update):
    """Write a checkpoint of which only what plays is needed."""
    keys = jax.random.split(jax.random.key(update), 1)
    policies = jax.vmap(lambda key: EditPolicy.create(key, RULES, experiment.network))(keys)
    record = CheckpointRecord(update, 2, 1.0, None, experiment.as_dict(), {})
    save_checkpoint(folder.checkpoints.at(update), {"learner": {"policy": policies}}, record)


def told(page, name):
    """What a chart tells a screen reader."""
    return page.get_by_role("img", name=name).get_attribute("aria-label")


def waits(page, selector, words):
    page.locator(selector, has_text=words).wait_for(timeout=120_000)


def test_curves_grow_with_the_run_and_a_resume_takes_them_back(open_page, run):
    with served("watch", run.path, "--episodes", 0) as address:
        page = open_page(address)
        page.wait_for_selector("#curves svg")
        assert page.inner_text("#name") == "small-run"
        assert "now 0 %" in told(page, "Solve rate over")
        assert page.inner_text("#state") == "2 reports"
        with run.metrics.open("a") as file:
            file.write(moment(4, 0.5) + moment(8, 0.8, odd_new_column=3.0))
        page.get_by_role("img", name="Odd new column").wait_for()
        waits(page, "#state", "live, 6 reports")
        assert "now 60 %, lowest 0 %, highest 60 %" in told(page, "Solve rate over environment steps")
        assert "Evaluation solve rate\n60.0 %" in page.inner_text("#figures")
        assert page.locator("#curves figure.wide path.seed").count() == 2
        page.select_option("#axis", "seconds")
        page.get_by_role("img", name="Value loss over seconds").wait_for()
        run.metrics.write_text(moment(0, 0.0) + moment(4, 0.2))  # as after a kill and a resume
        waits(page, "#state", "live, 4 reports")
        assert "now 15 %" in told(page, "Solve rate over")
        assert page.get_by_role("img", name="Odd new column").count() == 0
        page.close()


def test_the_newest_checkpoint_plays_and_the_tables_come_at_the_end(open_page, run, experiment):
    with served("watch", run.path, "--episodes", 2, "--pause", 0.2) as address:
        page = open_page(address)
        waits(page, "#episodes-note", "waiting for the first")
        save_agent(run, experiment, 4)
        page.locator("#episodes li").nth(1).wait_for(timeout=120_000)
        assert page.inner_text("#episodes-note").startswith("update 4, ")
        assert page.get_attribute("#step", "max") in "1234"
        page.locator("#step").fill("0")
        assert page.locator("#episodes .last").first.inner_text() == "start, similarity 0 %"
        page.get_by_role("button", name="Play").click()
        page.locator("#episodes .last", has_text=re.compile(r"^\d+\. ")).first.wait_for()
        save_agent(run, experiment, 8)
        waits(page, "#episodes-note", "update 8")
        assert page.locator(".story tbody td").count() == 4  # two pairs, two checkpoints
        page.select_option("#palette", "safe")
        assert page.evaluate("document.documentElement.className") == "safe"
        assert nameless(page) == []
        assert pale_texts(page) == []
        table = [{"seed": 0, "task_id": f"t{i}", "success_rate": i / 2, "solved": i > 1} for i in range(3)]
        run.tasks.write_text("".join(json.dumps(row) + "\n" for row in table))
        page.get_by_role("img", name="Learned tasks").wait_for()
        assert "1 of 3 always solved, 2 with a success rate below 100 %" in told(page, "Learned tasks")
        assert page.locator(".squares span").count() == 2
        run.tasks.write_text(run.tasks.read_text() + "half a li\n")
        page.get_by_role("heading", name="Learned tasks, over the whole run, 1 line cannot be read").wait_for()
        run.tasks.write_text("half a li\n" * 2)
        page.get_by_role("heading", name="Learned tasks, over the whole run, 2 lines cannot be read").wait_for()
        page.close()
    assert sorted(path.name for path in run.path.iterdir()) == [
        "checkpoints",
        "config.json",
        "metrics.jsonl",
        "tasks.jsonl",
    ]


def test_a_run_without_an_agent_shows_its_numbers(open_page, run):
    run.config.write_text(json.dumps({"surrogate": {"problem": "lookahead"}}))
    run.metrics.write_text('{"update": 10, "examples": 640, "seed": 0, "kl": 0.5, "top1_agreement": null}\n')
    with served("watch", run.path) as address:
        page = open_page(address, phone=True)
        page.get_by_role("img", name="Kl over examples").wait_for()
        waits(page, "#episodes-note", "no agent")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.locator("summary").click()
        assert "surrogate.problem" in page.inner_text("#config")
        page.close()
