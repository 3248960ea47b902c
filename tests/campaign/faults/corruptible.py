"""Every kind of file that we write and read again, small, with what a reader may say of a damaged one."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from campaign.faults.killed_files import write_tasks
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
from jaxarc.tasks import TaskFormatError
from jaxarc.training import CheckpointError, load_checkpoint
from jaxarc.training.checkpoint import CheckpointRecord, read_record, save_checkpoint


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
