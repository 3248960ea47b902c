"""Damage every kind of file that we read, at random places, and see that no reader takes it for another one."""

import collections
import hashlib
import json
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax
import numpy as np
from rich.progress import track

from campaign.faults.killed_work import write_tasks
from campaign.summary import finish, parser_of
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.datasets.installed import install, read_installed
from jaxarc.envs import EnvironmentConfig, JaxArcConfig, UnifiedActionConfig, UnifiedDatasetConfig
from jaxarc.envs.functional import arc_reset
from jaxarc.evaluation import read_submission, write_submission
from jaxarc.evaluation.submission import SUBMISSION_DIGEST, SubmissionError
from jaxarc.experts import Painter, Pair
from jaxarc.io.serialization import StateFileError, load_state_efficiently, save_state_efficiently
from jaxarc.runs import CheckpointError, load_checkpoint
from jaxarc.runs.checkpoint import CheckpointRecord, read_record, save_checkpoint
from jaxarc.tasks import TaskFormatError
from jaxarc.traces import DamagedCacheError, DamagedTraceWarning, Recording, TraceCache, pairs_by_id, record_traces
from jaxarc.traces.trace_files import ShortTraceFileWarning, TraceFileError, read_trace_file, write_trace_file


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
        _checkpoint(home),
        _installed_set(home, tasks),
        _trace_cache(home, tasks),
        *_trace_files(home, tasks, recording),
        _state(home, tasks),
        _submission(home, tasks),
    ]


def _checkpoint(home: Path) -> Kind:
    chance, path = np.random.default_rng(0), home / "checkpoint" / "7"
    weights = {"weights": chance.normal(size=(40, 30)).astype(np.float32), "steps": np.arange(3, dtype=np.int32)}
    tree = {"model": weights, "optimizers": {"moment": weights["weights"] / 2}}
    save_checkpoint(path, tree, CheckpointRecord(7, 3, 1.5, 0.25, {"training": {"seed": 3}}, {"jax": "1"}))

    def read() -> list:
        return [read_record(path), *map(_bytes, jax.tree.leaves(load_checkpoint(path, tree)))]

    return Kind("checkpoint", path, read, (CheckpointError,))


def _installed_set(home: Path, tasks: TaskSet) -> Kind:
    folder = home / "installed"
    install(tasks, "tiny", folder)
    return Kind("installed task set", folder, lambda: _grids(read_installed("tiny", folder)), (TaskFormatError,))


def _trace_cache(home: Path, tasks: TaskSet) -> Kind:
    folder = home / "trace cache"
    record = lambda: record_traces(tasks, Painter(), cache=TraceCache(folder)).traces  # it closes its file at the end
    record()
    return Kind("recorded traces (cache)", folder, record, (DamagedCacheError, OSError), (DamagedTraceWarning,))


def _trace_files(home: Path, tasks: TaskSet, recording: Recording) -> list[Kind]:
    """A file of traces, and a person's game."""
    traces = {place: recording.traces[recording.hash_of_node[place.node]] for place in pairs_by_id(tasks)}
    whole, game = (home / name / "traces.jsonl" for name in ("trace file", "saved game"))
    place, trace = next(iter(traces.items()))
    write_trace_file(whole, traces)
    write_trace_file(game, {place: trace}, {"dataset": "tiny", "session": {"seconds": 1.5, "events": []}})
    named = (TraceFileError,), (ShortTraceFileWarning,)
    return [
        Kind("trace file", whole.parent, lambda: read_trace_file(whole), *named),
        Kind("game saved by play", game.parent, lambda: _game(game), *named),
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
    read = lambda: repr(read_submission(file))
    return Kind("submission beside its summary", file.parent, read, (SubmissionError,))


def _grids(tasks: TaskSet) -> list:
    return [(task.task_id, task.title, [_list(pair) for pair in (*task.train, *task.test)]) for task in tasks]


def _list(pair: Any) -> list:
    return [grid.tolist() for grid in Pair(*pair)]


def _bytes(leaf: Any) -> bytes:
    return np.asarray(leaf).tobytes()


DAMAGES: Final[dict[str, Callable[[bytes, random.Random], bytes]]] = {
    "bit": lambda content, chance: _changed(content, chance, 1 << chance.randrange(8)),
    "byte": lambda content, chance: _changed(content, chance, chance.randrange(1, 256)),
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
    "longer": lambda content, chance: content + chance.randbytes(chance.randrange(1, 17)),
    "zeros": lambda content, chance: _zeroed(content, chance),
}
OUTCOMES: Final = ("refused", "made anew", "the same")


def damage_often(kind: Kind, count: int, chance: random.Random) -> tuple[collections.Counter, list[str]]:
    """Damage a file of a kind again and again, read it each time, and return the outcomes and what was wrong.

    Args:
        kind: of the files, which are put back each time.
        count: how often.
        chance: draws file, damage and place.
    """
    good = {file: file.read_bytes() for file in sorted(kind.folder.rglob("*")) if file.is_file()}
    expected, outcomes, findings = kind.read(), collections.Counter(), []
    for number in range(count):
        file, name = chance.choice([file for file in good if good[file]]), list(DAMAGES)[number % len(DAMAGES)]
        bad = DAMAGES[name](good[file], chance)
        file.write_bytes(bad)
        outcome = _outcome(kind, expected, file)
        if bad != good[file] and outcome not in OUTCOMES:
            findings.append(f"{name} in {file.name}: {outcome}")
        outcomes[outcome if outcome in OUTCOMES else "wrong"] += 1
        _put_back(kind.folder, good)
    return outcomes, findings


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


def main() -> int:
    """Run the campaign."""
    parser = parser_of(__doc__)
    parser.add_argument("--count", type=int, default=1000, help="damaged files of each kind (1000)")
    parser.add_argument("--only", nargs="+", help="some kinds")
    options, began = parser.parse_args(), time.monotonic()
    summary, findings = {}, []
    with tempfile.TemporaryDirectory(prefix="jaxarc-corruption-") as home:
        kinds = [kind for kind in make_kinds(Path(home)) if kind.name in (options.only or [kind.name])]
        for kind in track(kinds, "damaging"):
            chance = random.Random(f"{options.seed} {kind.name}")
            summary[kind.name], found = damage_often(kind, options.count, chance)
            findings += [f"{kind.name}: {finding}" for finding in found]
    return finish(options, began, {"damages": summary}, findings)


if __name__ == "__main__":
    sys.exit(main())
