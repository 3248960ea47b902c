"""How many actions the painter takes for every pair, beside one fill for each wrong cell and the greedy painter.

python docs/measure_painter.py                      # all data sets that are here; a few minutes on one core
python docs/measure_painter.py mini-arc concept-arc  # some of them
"""

import sys
import time
from typing import get_args

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from jaxarc.agents.updates import make_params
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.evaluation import one_task_per_pair, play_every_task
from jaxarc.experts import ActionFormat, GreedyPainter, NotSolvedError, Pair
from jaxarc.experts.painter import Painter

SETS = (
    *("arc-agi-1/training", "arc-agi-1/evaluation", "arc-agi-2/training", "arc-agi-2/evaluation"),
    *("concept-arc", "mini-arc"),
)
RULES = JaxArcConfig().with_fields(
    selection_format="bbox", reveal_target=True, include_step_count=True, max_episode_steps=400, history_enabled=False
)


def naive_count(pair: Pair) -> int:
    """A resize if the sizes differ, a fill for each cell that is then wrong, and the submit."""
    start, answer = pair
    kept = np.zeros_like(answer)
    rows, columns = np.minimum(start.shape, answer.shape)
    kept[:rows, :columns] = start[:rows, :columns]
    return int(start.shape != answer.shape) + int((kept != answer).sum()) + 1


def painted(pairs: list[Pair], action_format: ActionFormat) -> tuple[list[int], float]:
    """Lengths of what the painter finds, 0 where it is not a solution, and milliseconds for a pair."""
    painter, lengths, start = Painter(), [], time.process_time()
    for pair in pairs:
        try:
            lengths.append(len(painter.solve(pair, action_format)))
        except NotSolvedError:
            lengths.append(0)
    return lengths, (time.process_time() - start) / len(pairs) * 1e3


def painted_greedily(tasks: TaskSet) -> list[int]:
    """The same for the greedy painter, which fills boxes."""
    painter, params = GreedyPainter(), make_params(tasks, RULES)
    played = jax.jit(lambda params: play_every_task(lambda task, seen, states: (painter.act(seen), None), params))(
        params
    )
    return np.where(np.asarray(played.solved), np.asarray(played.steps), 0).tolist()


def add_row(table: Table, who: str, lengths: list[int], milliseconds: float | None = None) -> None:
    solved = [length for length in lengths if length]
    figures = f"{np.mean(solved):.2f}", f"{np.median(solved):.0f}", str(max(solved))
    table.add_row(who, f"{len(solved)} of {len(lengths)}", *figures, f"{milliseconds:.1f}" if milliseconds else "")


def main() -> None:
    console = Console()
    for name in sys.argv[1:] or SETS:
        tasks = one_task_per_pair(load_tasks(name))
        pairs = [Pair(*(np.asarray(grid) for grid in task.train[0])) for task in tasks]
        table = Table("actions", "solved", "mean", "median", "worst", "ms a pair", title=name)
        for action_format in get_args(ActionFormat):
            add_row(table, f"painter, {action_format}", *painted(pairs, action_format))
        add_row(table, "greedy painter, bbox", painted_greedily(tasks))
        add_row(table, "a fill for each cell", [naive_count(pair) for pair in pairs])
        console.print(table)


if __name__ == "__main__":
    main()
