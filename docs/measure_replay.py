"""Measure the largest replay that the page is made for: 1,000 random episodes of 100 steps on 30x30.

Run ``python docs/measure_replay.py`` after a change to the page; it needs Playwright and a browser (``CHROMIUM`` names
one). It prints the size of the file, how long a browser takes to draw the first episode and then another one, and how
long its main thread works for both, which a busy machine does not lengthen as much.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

import jax
import numpy as np
from playwright.sync_api import Browser, Playwright, sync_playwright

import jaxarc
from jaxarc.constants import SUBMIT
from jaxarc.datasets import load_tasks
from jaxarc.envs.spaces import action_space
from jaxarc.evaluation import EpisodeSpec
from jaxarc.evaluation.agent import as_agent
from jaxarc.evaluation.episodes import record_episodes
from jaxarc.parallel import RandomPolicy
from jaxarc.render.replay_page import ReplayEpisode, ReplayPage, ReplayTask

NUM_EPISODES: Final = 1000
NUM_STEPS: Final = 100
DATASET: Final = "arc-agi-1/training"
EDITS: Final = tuple(range(SUBMIT))
DRAWN: Final = ".act[aria-current=step]"


def make_page(selection_format: str) -> str:
    """Play random actions without submits, and put all into a page."""
    rules = {"selection_format": selection_format, "allowed_operations": EDITS, "invalid_action_policy": "noop"}
    _, params = jaxarc.make(DATASET, max_episode_steps=NUM_STEPS, **rules)
    tasks = load_tasks(DATASET)
    indices = np.arange(NUM_EPISODES, dtype=np.int32) % len(tasks)
    places = EpisodeSpec(indices, np.zeros_like(indices), np.arange(NUM_EPISODES, dtype=np.int32))
    page = ReplayPage("random")
    agent = as_agent(RandomPolicy(action_space(params.config)))
    for trajectory in record_episodes(agent, params, places, jax.random.key(0)):
        task = tasks.tasks[trajectory.task_index]
        page.add(
            ReplayTask(task.task_id, task.train),
            ReplayEpisode("train 0", "random", selection_format, *trajectory[2:]),
        )
    return page.to_html()


def start_browser(driver: Playwright) -> Browser:
    """Start the browser that is here."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    return driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])


def seconds_to_open(path: Path) -> tuple[float, float, float]:
    """Return the seconds until the first episode is drawn, until another one is, and of work of the main thread."""
    with sync_playwright() as driver:
        page = start_browser(driver).new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        begun = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector(DRAWN)
        opened = time.perf_counter()
        page.keyboard.press("n")
        page.wait_for_selector("#player:has-text('episode 2 of')")
        drawn = time.perf_counter()
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return opened - begun, drawn - opened, metrics["TaskDuration"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replay.html"
        for selection_format in ("point", "bbox", "mask"):
            path.write_text(make_page(selection_format), encoding="utf-8")
            first, second, work = seconds_to_open(path)
            size = f"{path.stat().st_size / 2**20:.1f} MiB"
            times = f"opened in {first:.2f} s, the next episode in {second:.2f} s, {work:.2f} s of work"
            print(f"{selection_format}: {size}, {times}")
