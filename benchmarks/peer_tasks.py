"""The tasks of all sides, written as the files that the peers read."""

import json
from pathlib import Path

from jaxarc.benchmarks.speed import DATASET, MINI_SIDE
from jaxarc.datasets import TaskSet, load_tasks


def write_tasks(folder: Path) -> None:
    """Write the ARC-AGI-1 training tasks, and those that fit 5x5, below ``folder/data``; what is there is kept."""
    tasks = load_tasks(DATASET)
    _write(tasks, folder / "data" / "ARC-AGI-1" / "data" / "training")
    _write(tasks.select(max_side=MINI_SIDE), folder / "data" / f"side-{MINI_SIDE}" / "data" / "training")
    (folder / ".here").touch()  # JaxARC looks for data/ in the folder that this file marks


def _write(tasks: TaskSet, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        pairs = {
            name: [{"input": source.tolist(), "output": target.tolist()} for source, target in part]
            for name, part in (("train", task.train), ("test", task.test))
        }
        path = folder / f"{task.task_id}.json"
        if not path.is_file():
            path.write_text(json.dumps(pairs), encoding="utf-8")
