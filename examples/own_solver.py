"""Write a solver of grids in plain Python, and score it by the rules of ARC.

    python examples/own_solver.py

The command writes files to look at as well; run it in the folder of this file:

    jaxarc evaluate arc-agi-1/training --agent own_solver:solve
"""

import itertools

import numpy as np

from jaxarc.datasets import load_tasks
from jaxarc.evaluation import best_first, evaluate_solver

CHANGES = (
    lambda grid: grid,
    np.fliplr,
    np.flipud,
    np.rot90,
    np.transpose,
    lambda grid: np.hstack([grid, grid]),
    lambda grid: np.vstack([grid, grid]),
    lambda grid: np.hstack([grid, np.fliplr(grid)]),
    lambda grid: np.vstack([grid, np.flipud(grid)]),
    lambda grid: np.kron(grid, np.ones((2, 2), int)),
    lambda grid: np.kron(grid, np.ones((3, 3), int)),
)


def solve(train, test_input):
    """Return the grids of the two pairs of changes that explain the most demonstrations, the best first."""

    def num_right(chain):
        first, second = chain
        return sum(np.array_equal(second(first(source)), target) for source, target in train)

    chains = sorted(itertools.product(CHANGES, repeat=2), key=num_right, reverse=True)
    return [second(first(test_input)) for first, second in chains[:2]]


def main() -> None:
    result = evaluate_solver(solve, load_tasks("arc-agi-1/training:max_side=12"))
    assert result.score is not None  # the answers of this set are known
    print(f"{result.score.solved_outputs} of {result.score.num_outputs} test outputs solved")
    for row in best_first(result.rows)[:5]:
        print(f"{row.task_id}: {row.solved_outputs} of {row.num_outputs}")
    failed = [row for row in result.rows if row.error]  # an error is kept, and the run goes on
    print(f"errors at {len(failed)} tasks")


if __name__ == "__main__":
    main()
