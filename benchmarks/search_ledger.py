"""Count what solves a random part of the training outputs of ARC-AGI-1, and how fast, for docs/search.md.

    python benchmarks/search_ledger.py 100 --processes 2

The outputs are drawn with a fixed seed, so that two versions of the search are compared on the same ones.
"""

import argparse
import random
import time
from collections import Counter

import numpy as np

from jaxarc.config import SearchConfig
from jaxarc.datasets import load_tasks
from jaxarc.search import Question, search_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=100, help="test inputs")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--max-cost", type=int, default=SearchConfig.max_cost)
    arguments = parser.parse_args()
    tasks = {task.task_id: task for task in load_tasks("arc-agi-1/training")}
    drawn = [(task_id, index) for task_id, task in sorted(tasks.items()) for index in range(len(task.test))]
    random.Random(0).shuffle(drawn)
    questions = [
        Question(task_id, index, tasks[task_id].train, tasks[task_id].test[index][0])
        for task_id, index in drawn[: arguments.count]
    ]
    began = time.monotonic()
    tried, solved, functions, layers = Counter(), Counter(), Counter(), Counter()
    missed = []
    seconds = applied = 0
    config = SearchConfig(seconds=60.0, max_cost=arguments.max_cost)
    for question, result in search_all(questions, config, arguments.processes):
        seconds += result.seconds
        applied += result.num_applied
        answer = tasks[question.task_id].test[question.test_index][1]
        kind = "all demonstrations" if result.answers[0].fits_all else "only some"
        tried[kind] += 1
        right = [one for one in result.answers if np.array_equal(one.answer, answer)]
        if right and (program := right[0].program) is not None:
            solved[kind] += 1
            functions.update(program.functions)
            layers[len(program.layers)] += 1
        else:
            missed.append(f"{question.task_id}:{question.test_index}")
    print(f"{solved.total()} of {len(questions)} in two attempts, {time.monotonic() - began:.0f} s")
    print(f"{applied:,} words applied in {seconds:.0f} s of search: {applied / seconds:,.0f} a second and core")
    for kind, count in tried.items():
        print(f"the best program explains {kind}: {solved[kind]} of {count} right")
    print("layers:", ", ".join(f"{count} of {number}" for number, count in sorted(layers.items())))
    print("functions:", ", ".join(f"{name} {count}" for name, count in functions.most_common()))
    print("missed:", " ".join(sorted(missed)))


if __name__ == "__main__":
    main()
