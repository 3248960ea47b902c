"""How each measured pair went at the end of a run: one line for each seed and pair."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxarc.evaluation import TaskResults
from jaxarc.training.table_file import write_table


def write_measured_table(path: Path, seeds: Sequence[int], task_ids: Sequence[str], played: TaskResults) -> None:
    """Write whether the greedy policy of each seed solved each pair, and in how many steps, the submit included.

    Args:
        path: of the file.
        seeds: of K agents.
        task_ids: of T pairs.
        played: leaves [K, T].
    """
    solved, steps = np.asarray(played.solved), np.asarray(played.steps)
    write_table(
        path,
        [
            {"seed": seed, "task_id": task_id, "solved": bool(solved[k, t]), "steps": int(steps[k, t])}
            for k, seed in enumerate(seeds)
            for t, task_id in enumerate(task_ids)
        ],
    )
