"""How each task of a run went: one line of JSON a task."""

import json
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from jaxarc.tasks.curriculum import Curriculum, curriculum_weights
from jaxarc.training.checkpoint import write_whole

_weights = jax.jit(curriculum_weights)


def write_task_table(path: Path, task_ids: Sequence[str], curriculum: Curriculum) -> None:
    """Write attempts, solves, success rates and the weight of the next draw, in the order of ``task_ids``.

    ``success_rate`` is that of all attempts, null where there was none; ``recent_success_rate`` is what the curriculum
    goes by, the prior where there was none.
    """
    statistics = curriculum.statistics
    columns = (statistics.attempts, statistics.solves, statistics.success_rate, _weights(curriculum))
    rows = zip(task_ids, *(np.asarray(column).tolist() for column in columns), strict=True)
    lines = [
        json.dumps(
            {
                "task_id": task_id,
                "attempts": attempts,
                "solves": solves,
                "success_rate": solves / attempts if attempts else None,
                "recent_success_rate": recent,
                "weight": weight,
            }
        )
        for task_id, attempts, solves, recent, weight in rows
    ]
    write_whole(path, ("\n".join(lines) + "\n").encode())
