"""What is killed while it writes files of its own: caches, checkpoints, downloads."""

import hashlib
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaign.faults.victim import Teller
from jaxarc.cli.main import main
from jaxarc.datasets import load_tasks
from jaxarc.datasets.archives import ARCHIVES, Archive, any_json
from jaxarc.datasets.installed import has_published_set, read_installed
from jaxarc.experts.traces import Graph, TraceCache, get_trace_hierarchical
from jaxarc.training.checkpoint import CheckpointRecord, Checkpoints, check_checkpoint, load_checkpoint


def write_tasks(folder: Path, count: int, side: int = 3, seed: int = 0) -> Path:
    """Write a folder of small tasks, in which no pair is like another."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(seed)
    for number in range(count):
        grids = chance.integers(0, 10, (3, 2, side, side)).tolist()
        pairs = [{"input": source, "output": target} for source, target in grids]
        (folder / f"task{number:02}.json").write_text(json.dumps({"train": pairs[:2], "test": pairs[2:]}))
    return folder


def contents(folder: Path, pattern: str = "*") -> dict[str, object]:
    """Return the hash of every file below a folder, but those that were never finished."""
    files = [file for file in sorted(folder.rglob(pattern)) if file.is_file() and not file.name.startswith(".")]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@dataclass(frozen=True)
class TraceRecording:
    """``jaxarc traces record``: each trace is kept as soon as it is recorded."""

    tasks: Path
    name: str = "traces record"

    def run(self, folder: Path, tell: Teller) -> None:
        _tell_of_traces(tell)
        options = ("--cache", str(folder / "traces"), "--processes", "0")
        main(["traces", "record", str(self.tasks), *options, "--chunk-size", "4"])

    def check(self, folder: Path, told: list[str]) -> None:
        _check_traces(folder / "traces", told)

    def result(self, folder: Path) -> dict[str, object]:
        return contents(folder)


@dataclass(frozen=True)
class HierarchicalCache:
    """The cache of a graph of pairs, filled by calls back from compiled code."""

    tasks: Path
    name: str = "hierarchical cache"

    def run(self, folder: Path, tell: Teller) -> None:
        _tell_of_traces(tell)
        graph = Graph.of_tasks(load_tasks(str(self.tasks)))
        get_trace_hierarchical(graph, "vmap", cache=TraceCache(folder / "traces"))

    def check(self, folder: Path, told: list[str]) -> None:
        _check_traces(folder / "traces", told)

    def result(self, folder: Path) -> dict[str, object]:
        return contents(folder)


@dataclass(frozen=True)
class Download:
    """``jaxarc tasks download`` from a server on this machine."""

    url: str
    digest: str
    name: str = "download"

    def run(self, folder: Path, tell: Teller) -> None:
        self._publish(folder)
        main(["tasks", "download", "tiny"])

    def check(self, folder: Path, told: list[str]) -> None:
        self._publish(folder)
        if (folder / "tasks" / "tiny.json").exists():
            read_installed("tiny", folder)
            assert has_published_set("tiny", folder)

    def result(self, folder: Path) -> dict[str, object]:
        return contents(folder, "*.json") | {"left": [file.name for file in folder.glob("downloads/*[!k]")]}

    def _publish(self, folder: Path) -> None:
        os.environ["JAXARC_DATA"] = str(folder)
        ARCHIVES["tiny"] = Archive(self.url, self.url, "MIT", 1, self.digest, any_json, "*.json")


@dataclass(frozen=True)
class CheckpointSaving:
    """Checkpoints that are written, kept and removed one after the other."""

    count: int = 5
    name: str = "checkpoint saving"

    def run(self, folder: Path, tell: Teller) -> None:
        checkpoints = Checkpoints(folder / "checkpoints")
        newest = checkpoints.newest()
        done = newest.update if newest else 0
        checkpoints.remove_after(done)
        for update in range(done + 1, self.count + 1):
            checkpoints.save(_tree(update), CheckpointRecord(update, update, 0.0, -abs(update - 2.0), {}, {}))
            tell(str(update))
            checkpoints.keep(2, 1)

    def check(self, folder: Path, told: list[str]) -> None:
        checkpoints = Checkpoints(folder / "checkpoints")
        for update in checkpoints.updates():
            check_checkpoint(checkpoints.at(update))
            loaded = load_checkpoint(checkpoints.at(update), _tree(0))
            assert all(np.array_equal(loaded[name], array) for name, array in _tree(update).items())
        newest = max(checkpoints.updates(), default=0)
        assert newest >= max(map(int, told), default=0), f"checkpoint {told[-1]} was saved, and the newest is {newest}"

    def result(self, folder: Path) -> dict[str, object]:
        checkpoints = Checkpoints(folder / "checkpoints")
        self.check(folder, [str(self.count)])
        return {"updates": checkpoints.updates(), "left": [entry.name for entry in checkpoints.path.glob(".*")]}


def _tree(update: int) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(update)
    return {"weights": chance.normal(size=(200, 100)).astype(np.float32), "steps": np.array(update, np.int32)}


def _tell_of_traces(tell: Teller) -> None:
    """Let the cache tell of each trace when it says that the trace is kept."""
    put = TraceCache.put

    def put_and_tell(cache: TraceCache, trace) -> None:
        put(cache, trace)
        tell(trace.unit_hash)

    TraceCache.put = put_and_tell


def _check_traces(folder: Path, told: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {trace.unit_hash for trace in TraceCache(folder).traces()}
    assert found >= set(told), f"{len(set(told) - found)} traces that were kept are gone"
