"""Tables of a run as lines of JSON: how each training task went, and how each evaluation pair."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxarc.evaluation import TaskResults
from jaxarc.files import write_whole
from jaxarc.tasks.curriculum import Curriculum, curriculum_weights


def write_table(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, whole or not at all; each row has in ``of`` the number of rows, so that a reader misses none.

    Raises:
        OSError: the file cannot be written.
    """
    rows = list(rows)
    write_whole(path, "".join(json.dumps({**row, "of": len(rows)}) + "\n" for row in rows).encode())


def read_table(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the rows, and how many are unreadable or missing; a missing file has no rows.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], 0
    # A file that was cut between two lines has only good ones, but they say how many there
    # should be: 3 good rows "of" 5 are 2 missing.
    rows = [row for line in lines if (row := read_row(line)) is not None]
    wanted = [row["of"] for row in rows if type(row.get("of")) is int]
    return rows, max([len(lines), *wanted]) - len(rows)


def read_row(line: bytes) -> dict[str, Any] | None:
    """Read a line of JSON; None if it is not an object."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


_weights = jax.jit(jax.vmap(curriculum_weights))


def write_task_table(path: Path, seeds: Sequence[int], task_ids: Sequence[str], curricula: Curriculum) -> None:
    """Write attempts, solves, success rates and the weight of the next draw, in the order of seeds and ``task_ids``.

    ``success_rate`` is that of all attempts, null where there was none; ``recent_success_rate`` is what the curriculum
    goes by, the prior where there was none.

    Args:
        path: of the file.
        seeds: of K agents.
        task_ids: of T tasks.
        curricula: leaves [K, T].
    """
    statistics = curricula.statistics
    columns = (statistics.attempts, statistics.solves, statistics.success_rate, _weights(curricula))
    table = []
    # Columns [K, T] are walked seed by seed, and then task by task.
    for seed, *of_seed in zip(seeds, *(np.asarray(column) for column in columns), strict=True):
        rows = zip(task_ids, *(column.tolist() for column in of_seed), strict=True)
        table += [
            {
                "seed": seed,
                "task_id": task_id,
                "attempts": attempts,
                "solves": solves,
                "success_rate": solves / attempts if attempts else None,
                "recent_success_rate": recent,
                "weight": weight,
            }
            for task_id, attempts, solves, recent, weight in rows
        ]
    write_table(path, table)


def write_measured_table(path: Path, seeds: Sequence[int], task_ids: Sequence[str], played: TaskResults) -> None:
    """Write whether the greedy policy of each seed solved each pair, and in how many steps, the submit included.

    Args:
        path: of the file.
        seeds: of K agents.
        task_ids: of T pairs.
        played: leaves [K, T].
    """
    solved = np.asarray(played.solved)
    steps = np.asarray(played.steps)
    write_table(
        path,
        [
            {"seed": seed, "task_id": task_id, "solved": bool(solved[k, t]), "steps": int(steps[k, t])}
            for k, seed in enumerate(seeds)
            for t, task_id in enumerate(task_ids)
        ],
    )
