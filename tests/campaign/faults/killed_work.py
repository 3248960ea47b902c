"""What is killed while it writes: downloads, caches, checkpoints, runs, evaluations, a person's game."""

import hashlib
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from killable_training import arrays_of, command
from small_run import reports_of, small_run

from campaign.faults.victim import Teller
from jaxarc.agents import read_metrics
from jaxarc.cli.main import main
from jaxarc.datasets import load_tasks
from jaxarc.datasets.archives import ARCHIVES, Archive, any_json
from jaxarc.datasets.installed import has_published_set, read_installed
from jaxarc.evaluation import read_submission
from jaxarc.play.play_site import PlayedTasks
from jaxarc.profiling import enable_compilation_cache
from jaxarc.runs import RunFolder
from jaxarc.runs.checkpoint import CheckpointRecord, Checkpoints, load_checkpoint, read_checkpoint
from jaxarc.traces import PairId, TraceCache
from jaxarc.traces.trace_files import read_trace_file


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
        put = TraceCache.put

        def put_and_tell(cache: TraceCache, trace) -> None:
            put(cache, trace)
            tell(trace.unit_hash)

        TraceCache.put = put_and_tell
        options = ("--cache", str(folder / "traces"), "--processes", "0")
        main(["traces", "record", str(self.tasks), *options, "--chunk-size", "4"])

    def check(self, folder: Path, told: list[str]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = {trace.unit_hash for trace in TraceCache(folder / "traces").traces()}
        assert found >= set(told), f"{len(set(told) - found)} traces that were kept are gone"

    def result(self, folder: Path) -> dict[str, object]:
        return {trace.unit_hash: trace.actions for trace in TraceCache(folder / "traces").traces()}


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
        if (folder / "tasks" / "tiny.tasks").exists():
            read_installed("tiny", folder)
            assert has_published_set("tiny", folder)

    def result(self, folder: Path) -> dict[str, object]:
        return contents(folder, "*.tasks") | {"left": [file.name for file in folder.glob("downloads/*[!k]")]}

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
        done = newest.record.update if newest else 0
        checkpoints.remove_after(done)
        for update in range(done + 1, self.count + 1):
            checkpoints.save(_tree(update), CheckpointRecord(update, update, 0.0, -abs(update - 2.0), {}, {}))
            tell(str(update))
            checkpoints.keep(2, 1)

    def check(self, folder: Path, told: list[str]) -> None:
        checkpoints = Checkpoints(folder / "checkpoints")
        for update in checkpoints.updates():
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


UPDATES: Final = 24
_GAMES: Final = 3
_FILL: Final = ((1, 0, 0, 0, 0), (2, 0, 1, 0, 1), (3, 1, 0, 1, 1), (4, 1, 1, 1, 1), (33, 0, 0, 1, 1), (24, 0, 0, 1, 1))


def training_overrides(tasks: Path) -> list[str]:
    """Return the choices of a run that learns in a second, and saves whenever it can."""
    choices = ("curriculum=replay", "training.num_seeds=2", "training.reports_per_evaluation=2")
    return small_run(tasks, UPDATES, *choices)


@dataclass(frozen=True)
class TrainCommand:
    """``jaxarc train``, resumed until its end."""

    tasks: Path
    compiled: Path  # what :func:`killable_training.prepare` wrote
    name: str = "training"

    def run(self, folder: Path, tell: Teller) -> None:
        os.environ["XDG_CACHE_HOME"] = str(self.compiled.parent)
        begun = [run.parent for run in (folder / "runs").glob("*/config.json")]
        if begun:
            arguments = ["--resume", str(begun[0])]
        else:
            arguments = [*training_overrides(self.tasks), f"logging.run_root={folder / 'runs'}"]
        command(self.compiled, Path(os.devnull), ["train", *arguments, "checkpoint.min_seconds=0"])

    def check(self, folder: Path, told: list[str]) -> None:
        for config in (folder / "runs").glob("*/config.json"):
            run = RunFolder(config.parent)
            json.loads(config.read_bytes())
            for update in run.checkpoints.updates():
                record = read_checkpoint(run.checkpoints.at(update)).record
                assert len(read_metrics(run.metrics)) >= record.num_lines, f"checkpoint {update} has lost reports"

    def result(self, folder: Path) -> dict[str, object]:
        (config,) = (folder / "runs").glob("*/config.json")
        run = RunFolder(config.parent)
        reports = reports_of(run)
        kept = arrays_of(run.checkpoints.at(UPDATES))
        arrays = {name: [str(kind), shape, data.hex()] for name, (kind, shape, data) in kept.items()}
        files = sorted(entry.name for entry in run.path.iterdir())
        tables = {file.name: file.read_text() for file in (run.tasks, run.measured)}
        left = [entry.name for entry in run.checkpoints.path.glob(".*")]
        return {"reports": reports, "arrays": arrays, "files": files, "left": left, **tables}


@dataclass(frozen=True)
class EvaluateCommand:
    """``jaxarc evaluate``, which writes a submission, a table, a picture and a summary."""

    tasks: Path
    compiled: Path | None = None  # folder of compiled programs
    seed: int = 0
    name: str = "evaluate"

    def run(self, folder: Path, tell: Teller) -> None:
        if self.compiled is not None:
            enable_compilation_cache(self.compiled)
        small = ("--canvas", "3", "--max-steps", "4", "--batch-size", "8", "--seed", str(self.seed))
        main(["evaluate", str(self.tasks), "--agent", "random", "--output", str(folder / "out"), *small])

    def check(self, folder: Path, told: list[str]) -> None:
        out = folder / "out"
        if (out / "submission.json").exists():
            read_submission(out / "submission.json")
        if (out / "summary.json").exists():
            json.loads((out / "summary.json").read_bytes())
            missing = {"submission.json", "tasks.jsonl", "attempts.html"} - set(contents(out))
            assert not missing, f"there is a summary, and no {missing}"

    def result(self, folder: Path) -> dict[str, object]:
        return contents(folder)


@dataclass(frozen=True)
class PlayCommand:
    """A person's game, saved after every action."""

    tasks: Path
    compiled: Path | None = None
    name: str = "play"

    def run(self, folder: Path, tell: Teller) -> None:
        if self.compiled is not None:
            enable_compilation_cache(self.compiled)
        tasks = load_tasks(str(self.tasks))
        game = PlayedTasks(tasks, "tasks", PairId(tasks.task_ids[0], "train", 0), "bbox", folder / "plays")
        for _ in range(_GAMES):
            for number, action in enumerate(_FILL, start=1):
                game.episode.act(action)
                board = game.episode.board()
                assert not board["file_problem"], board["file_problem"]
                tell(f"{number} {board['file']}")
            game.go("next")

    def check(self, folder: Path, told: list[str]) -> None:
        for line in told:
            number, file = line.split(" ", 1)
            (trace,) = read_trace_file(file)
            assert len(trace.actions) >= int(number), f"{file} has lost actions"
            assert trace.actions == _FILL[: len(trace.actions)]

    def result(self, folder: Path) -> dict[str, object]:
        games = [_is_whole_game(file) for file in (folder / "plays").glob("*.jsonl")]
        return {"has all games": sum(games) >= _GAMES}  # those of killed processes stay beside them


def _is_whole_game(file: Path) -> bool:
    (trace,) = read_trace_file(file)
    return trace.actions == _FILL
