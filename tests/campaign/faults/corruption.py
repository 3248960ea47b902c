"""Damage every kind of file that we read, at random places, and see that nobody takes it for another one.

``python -m campaign.faults.corruption --help``, with this folder's parent on the path; ``make corrupt`` does that.
"""

import argparse
import collections
import hashlib
import json
import platform
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from campaign.faults.killed_work import write_tasks
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.datasets.installed import install, read_installed
from jaxarc.envs import EnvironmentConfig, JaxArcConfig, UnifiedActionConfig, UnifiedDatasetConfig
from jaxarc.envs.functional import arc_reset
from jaxarc.evaluation import RecordingError, read_recordings, read_submission, write_submission
from jaxarc.evaluation.submission import SUBMISSION_DIGEST, SubmissionError
from jaxarc.experts import Painter, Pair
from jaxarc.experts.traces import Graph, Recording, TraceCache, pairs_by_id, record_traces
from jaxarc.experts.traces.cache import DamagedTraceWarning
from jaxarc.experts.traces.trace_file import (
    ShortTraceFileWarning,
    TraceFileError,
    read_trace_file,
    write_trace_file,
)
from jaxarc.io.serialization import StateFileError, load_state_efficiently, save_state_efficiently
from jaxarc.runs import CheckpointError, load_checkpoint
from jaxarc.runs.checkpoint import CheckpointRecord, read_record, save_checkpoint
from jaxarc.tasks import TaskFormatError


class Kind(NamedTuple):
    """Files of one kind."""

    name: str
    folder: Path  # with the files; each of them is damaged
    read: Callable[[], Any]  # returns what can be compared with ==
    errors: tuple[type[Exception], ...] = ()  # that name the file
    warnings: tuple[type[Warning], ...] = ()  # that name it: what was lost is made anew, or told of


def make_kinds(home: Path) -> list[Kind]:
    """Write a good file of every kind.

    Args:
        home: an empty folder.
    """
    tasks = load_tasks(str(write_tasks(home / "tasks", 4)))
    recording = record_traces(tasks, Painter())
    return [
        *_checkpoints(home),
        _installed_set(home, tasks),
        _trace_cache(home, tasks),
        *_trace_files(home, tasks, recording),
        _state(home, tasks),
        _submission(home, tasks),
    ]


def _checkpoints(home: Path) -> list[Kind]:
    """A checkpoint as a whole, and the part of it that a model is taken from."""
    chance = np.random.default_rng(0)
    weights = {"weights": chance.normal(size=(40, 30)).astype(np.float32), "steps": np.arange(3, dtype=np.int32)}
    tree = {"models": {"surrogate": weights}, "optimizers": {"moment": weights["weights"] / 2}}
    record = CheckpointRecord(7, 3, 1.5, 0.25, {"training": {"seed": 3}}, {"jax": "1"})

    def read(path: Path, like: Any, within: str) -> tuple:
        loaded = jax.tree.leaves(load_checkpoint(path, like, within))
        return (read_record(path), *[np.asarray(leaf).tobytes() for leaf in loaded])

    parts = {"checkpoint": (tree, ""), "surrogate checkpoint": (weights, "models.surrogate")}
    kinds = []
    for name, (like, within) in parts.items():
        path = home / name / "7"
        save_checkpoint(path, tree, record)
        call = lambda path=path, like=like, within=within: read(path, like, within)
        kinds.append(Kind(name, path, call, (CheckpointError,)))
    return kinds


def _installed_set(home: Path, tasks: TaskSet) -> Kind:
    folder = home / "installed"
    install(tasks, "tiny", folder)
    return Kind("installed task set", folder, lambda: _grids(read_installed("tiny", folder)), (TaskFormatError,))


def _trace_cache(home: Path, tasks: TaskSet) -> Kind:
    cache = TraceCache(home / "trace cache")
    record = lambda: record_traces(tasks, Painter(), cache=cache).traces
    record()
    return Kind("recorded traces (cache)", cache.folder, record, (), (DamagedTraceWarning,))


def _trace_files(home: Path, tasks: TaskSet, recording: Recording) -> list[Kind]:
    """A file of traces, read as such and as recorded actions, and a person's game."""
    graph = Graph.of_tasks(tasks)
    assert len(graph.pairs) == len(recording.hash_of_node)
    traces = {place: recording.traces[recording.hash_of_node[place.node]] for place in pairs_by_id(tasks)}
    tests = {place: trace for place, trace in traces.items() if place.split == "test"}
    files = {name: home / name / "traces.jsonl" for name in ("trace file", "recorded actions", "saved game")}
    write_trace_file(files["trace file"], traces)
    write_trace_file(files["recorded actions"], tests)
    place, trace = next(iter(traces.items()))
    write_trace_file(
        files["saved game"], {place: trace}, {"dataset": "tiny", "session": {"seconds": 1.5, "events": []}}
    )
    short, wrong = (ShortTraceFileWarning,), (TraceFileError,)
    return [
        Kind("trace file", files["trace file"].parent, lambda: read_trace_file(files["trace file"]), wrong, short),
        Kind(
            "trace file as recorded actions",
            files["recorded actions"].parent,
            lambda: read_recordings(files["recorded actions"]),
            (RecordingError,),
            short,
        ),
        Kind("game saved by play", files["saved game"].parent, lambda: _game(files["saved game"]), wrong, short),
    ]


def _game(file: Path) -> Any:
    lines = read_trace_file(file)
    if not lines:  # as every command says that is given such a file
        raise TraceFileError(f"{file} holds no trace; write some with jaxarc traces export")
    return lines


def _state(home: Path, tasks: TaskSet) -> Kind:
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=20),
        dataset=UnifiedDatasetConfig(max_grid_height=4, max_grid_width=4),
        action=UnifiedActionConfig(selection_format="bbox"),
    )
    state, _ = arc_reset(jax.random.key(0), config, tasks.get_task_by_id(tasks.task_ids[0]))
    file = save_state_efficiently(state, home / "state" / "state.bin")

    def read() -> list[bytes]:
        return [_bytes(leaf) for leaf in jax.tree.leaves(load_state_efficiently(file, tasks, state))]

    return Kind("state of an environment", file.parent, read, (StateFileError,))


def _submission(home: Path, tasks: TaskSet) -> Kind:
    attempts = {task.task_id: [[np.ones((2, 3), np.int8), np.zeros((1, 1), np.int8)]] for task in tasks}
    file = write_submission(home / "submission" / "submission.json", attempts)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (file.parent / "summary.json").write_text(json.dumps({SUBMISSION_DIGEST: digest}))
    read = lambda: {name: np.array(repr(grids)).item() for name, grids in read_submission(file).items()}
    return Kind("submission beside its summary", file.parent, read, (SubmissionError,))


def _grids(tasks: TaskSet) -> list:
    return [(task.task_id, task.title, [_list(pair) for pair in (*task.train, *task.test)]) for task in tasks]


def _list(pair: Any) -> list:
    return [grid.tolist() for grid in Pair(*pair)]


def _bytes(leaf: Any) -> bytes:
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf).tobytes()


DAMAGES: Final[dict[str, Callable[[bytes, random.Random], bytes]]] = {
    "bit": lambda content, chance: _changed(content, chance, 1 << chance.randrange(8)),
    "byte": lambda content, chance: _changed(content, chance, chance.randrange(1, 256)),
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
    "longer": lambda content, chance: content + chance.randbytes(chance.randrange(1, 17)),
    "zeros": lambda content, chance: _zeroed(content, chance),
}
OUTCOMES: Final = ("refused", "made anew", "the same")


@dataclass
class DamageCounts:
    """What became of the damaged files of a kind."""

    name: str
    outcomes: collections.Counter = field(default_factory=collections.Counter)
    findings: list[str] = field(default_factory=list)


def damage_often(
    kind: Kind, count: int, chance: random.Random, on_read: Callable[[], None] = lambda: None
) -> DamageCounts:
    """Damage a file of a kind again and again, and read it each time.

    Args:
        kind: of the files, which are put back each time.
        count: how often.
        chance: draws file, damage and place.
        on_read: called after each.
    """
    good = {file: file.read_bytes() for file in sorted(kind.folder.rglob("*")) if file.is_file()}
    expected, tally = kind.read(), DamageCounts(kind.name)
    names = list(DAMAGES)
    for number in range(count):
        file, name = chance.choice([file for file in good if good[file]]), names[number % len(names)]
        bad = DAMAGES[name](good[file], chance)
        file.write_bytes(bad)
        outcome = _outcome(kind, expected, file)
        if bad != good[file] and outcome not in OUTCOMES:
            tally.findings.append(f"{name} in {file.name}, first at byte {_first_change(good[file], bad)}: {outcome}")
        tally.outcomes[outcome if outcome in OUTCOMES else "wrong"] += 1
        _put_back(kind.folder, good)
        on_read()
    return tally


def _outcome(kind: Kind, expected: Any, file: Path) -> str:
    """Read, and say in one of the words of ``OUTCOMES`` how that went, or in others what was wrong with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = kind.read()
        except kind.errors as error:
            return "refused" if _is_named(kind, file, str(error)) else f"no file is named by {error!r}"
        except Exception as error:  # whatever it is, it is a finding
            return f"a reader fails with {error!r}"
    told = [warning for warning in caught if issubclass(warning.category, kind.warnings)] if kind.warnings else []
    if any(not _is_named(kind, file, str(warning.message)) for warning in told):
        return f"no file is named by {told[0].message!r}"
    if found == expected:
        return "made anew" if told else "the same"
    return "refused" if told else "other contents are read"  # what is lost was told of


def _is_named(kind: Kind, file: Path, message: str) -> bool:
    """Tell whether a message names the file, or a folder that is read as a whole."""
    return str(file) in message or str(kind.folder) in message


def _put_back(folder: Path, good: dict[Path, bytes]) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file not in good:
            file.unlink()
    for file, content in good.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _changed(content: bytes, chance: random.Random, bits: int) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]


def _zeroed(content: bytes, chance: random.Random) -> bytes:
    place, length = chance.randrange(len(content)), chance.randrange(1, 65)
    end = min(place + length, len(content))
    return content[:place] + bytes(end - place) + content[end:]


def _first_change(good: bytes, bad: bytes) -> int:
    pairs = enumerate(zip(good, bad, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(good), len(bad)))


def main(arguments: list[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="damaged files of each kind (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of files, damages and places (0)")
    parser.add_argument("--only", action="append", help="one kind; may be given several times")
    parser.add_argument("--json", type=Path, help="write the summary here")
    chosen = parser.parse_args(arguments)
    begun, tallies = time.monotonic(), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="jaxarc-corruption-") as home,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        kinds = [kind for kind in make_kinds(Path(home)) if kind.name in (chosen.only or [kind.name])]
        bar = progress.add_task("damages", total=chosen.count * len(kinds))
        for kind in kinds:
            progress.update(bar, description=kind.name)
            chance = random.Random(f"{chosen.seed} {kind.name}")
            tallies.append(damage_often(kind, chosen.count, chance, lambda: progress.advance(bar)))
    return _report(tallies, chosen, time.monotonic() - begun, Console())


def _report(tallies: list[DamageCounts], chosen: argparse.Namespace, seconds: float, console: Console) -> int:
    table = Table("file", "damages", *OUTCOMES, "findings")
    for tally in tallies:
        counts = [tally.outcomes.total(), *(tally.outcomes[outcome] for outcome in OUTCOMES), len(tally.findings)]
        table.add_row(tally.name, *(f"{count:,}" for count in counts))
    console.print(table)
    findings = [f"{tally.name}: {finding}" for tally in tallies for finding in tally.findings]
    for finding in findings[:40]:
        console.print(f"FINDING {finding}", markup=False, highlight=False, soft_wrap=True)
    total = sum(tally.outcomes.total() for tally in tallies)
    versions = {"python": platform.python_version(), **{name: version(name) for name in ("jax", "numpy")}}
    line = f"{total:,} damages, {len(findings)} findings, {seconds:.0f} s, seed {chosen.seed}, {versions}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    if chosen.json:
        summary = {
            "damages": {tally.name: dict(tally.outcomes) for tally in tallies},
            "findings": findings,
            "seconds": round(seconds, 1),
            "seed": chosen.seed,
            "versions": versions,
        }
        chosen.json.write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
