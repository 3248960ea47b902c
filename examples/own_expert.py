"""An expert of your own: recorded, checked against the answers, and replayed in the environment.

    python examples/own_expert.py --dataset arc-agi-1/training:max_side=5

This one repaints cell by cell and cannot change the size of a grid. It says so where it would have to, and the
recording keeps the reason. ``jaxarc traces record --expert own_expert:Repainter`` records it from the command line.
"""

import argparse
from collections import Counter
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from jaxarc.datasets import load_tasks
from jaxarc.experts import Action, ActionFormat, CannotSolveError, Pair
from jaxarc.traces import record_traces
from jaxarc.traces.replay import replay

SUBMIT = 34


class Repainter:
    """Fills single cells until the grid is right; it never changes the size."""

    name = "repainter"
    version = 1  # raise it when the actions change: its traces are then recorded anew

    def solve(self, pair: Pair, action_format: ActionFormat) -> Sequence[Action]:
        if action_format != "point":
            raise CannotSolveError("it only points; ask with action_format='point'")
        if pair.input.shape != pair.output.shape:
            raise CannotSolveError("the output has another size")
        wrong = np.argwhere(pair.input != pair.output)
        return [(int(pair.output[row, col]), int(row), int(col)) for row, col in wrong] + [(SUBMIT, 0, 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="arc-agi-1/training:max_side=5")
    options = parser.parse_args()
    console = Console()

    tasks = load_tasks(options.dataset)
    recording = record_traces(tasks, Repainter(), action_format="point")
    reasons = Counter(failure.message for failure in recording.failures.values())
    table = Table("outcome", "pairs", title=f"{len(tasks)} tasks of {options.dataset}")
    table.add_row("solved, and proven so on the host", str(len(recording.traces)))
    for reason, count in reasons.items():
        table.add_row(reason, str(count))
    console.print(table)

    pairs, actions = [], []
    for task in tasks:
        for part, of_part in (("train", task.train), ("test", task.test)):
            for place, (source, output) in enumerate(of_part):
                if (trace := recording.trace_of(f"{task.task_id}/{part}/{place}")) is not None:
                    pairs.append(Pair(source, output))
                    actions.append(trace.actions)
    solved = replay(pairs, actions, "point")
    console.print(f"replayed in the environment: {int(solved.sum())} of {len(pairs)} solved")
    lengths = sorted(len(trace) for trace in actions)
    console.print(f"actions: {lengths[0]} to {lengths[-1]}, {lengths[len(lengths) // 2]} in the median")


if __name__ == "__main__":
    main()
