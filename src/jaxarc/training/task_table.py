"""How each task of a run went: one line for each seed and task."""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from jaxarc.tasks.curriculum import Curriculum, curriculum_weights
from jaxarc.training.table_file import write_table

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
