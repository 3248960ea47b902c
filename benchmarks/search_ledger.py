"""Count what solves the training outputs of ARC-AGI-1, by halves and folds of the tasks.

    python benchmarks/search_ledger.py look --json look.json
    python benchmarks/search_ledger.py check --json check.json --against before.json
    python benchmarks/search_ledger.py draw solved.png before.json now.json

Words are chosen by what the half ``look`` misses; the half ``check`` tells what they are worth on other tasks. A hash
of the name says which half and which of five folds a task is in. The budget is CPU time, so that two versions of the
search are compared on a busy machine, too.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from jaxarc.config import SearchConfig
from jaxarc.datasets import load_tasks
from jaxarc.search import solve

FOLDS = 5


def fold_of(task_id: str) -> tuple[int, str]:
    """Return the fold and the half of a task."""
    half, fold = divmod(int(hashlib.sha256(task_id.encode()).hexdigest(), 16) % (2 * FOLDS), FOLDS)
    return fold, ("look", "check")[half]


def count_cpu_time() -> None:
    """Let the modules of the search look at the CPU time of this process in the place of the clock."""
    clock = SimpleNamespace(monotonic=time.process_time)
    for name, module in sys.modules.items():
        if name.startswith("jaxarc.search") and vars(module).get("time") is time:
            vars(module)["time"] = clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=("look", "check", "all", "draw"))
    parser.add_argument("files", nargs="*", type=Path, help="of draw: a picture, and files of versions, by their names")
    parser.add_argument("--count", type=int, help="test inputs, drawn with a fixed seed; by default all")
    parser.add_argument("--seconds", type=float, default=1.5, help="CPU time of each")
    parser.add_argument("--dataset", default="arc-agi-1/training")
    parser.add_argument("--json", type=Path, help="file for what each one gets")
    parser.add_argument("--against", type=Path, help="such a file of another version: what is won and lost")
    arguments = parser.parse_args()
    if arguments.half == "draw":
        picture, *files = arguments.files
        draw_curves(picture, {file.stem.replace("_", " "): _curve(json.loads(file.read_text())) for file in files})
        return
    tasks = {task.task_id: task for task in load_tasks(arguments.dataset)}
    questions = [
        (task_id, index)
        for task_id, task in sorted(tasks.items())
        for index in range(len(task.test))
        if arguments.half in ("all", fold_of(task_id)[1])
    ]
    random.Random(0).shuffle(questions)
    before = json.loads(arguments.against.read_text()) if arguments.against else {}
    config = SearchConfig(seconds=arguments.seconds)
    count_cpu_time()
    rows: dict[str, dict] = {}
    for task_id, index in questions[: arguments.count]:
        source, target = tasks[task_id].test[index]
        result = solve(tasks[task_id].train, source, config)
        right = [one for one in result.answers if np.array_equal(one.answer, target)]
        shown = (right or result.answers)[0]
        name = f"{task_id}:{index}"
        rows[name] = {
            "solved": bool(right),
            "fits": result.answers[0].fits_all,
            "program": str(shown.program),
            "functions": [] if shown.program is None else shown.program.functions,
            "applied": result.num_applied,
            "seconds": result.seconds,
        }
        if name in before and before[name]["solved"] != rows[name]["solved"]:
            print(
                "won " if right else "lost", name, (rows[name] if right else before[name])["program"][:160], flush=True
            )
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    for title, table in (("before", {name: row for name, row in before.items() if name in rows}), ("now", rows)):
        if table:
            _print_counts(title, table)


def _curve(rows: dict[str, dict]) -> list[tuple[str, float]]:
    """Return the task of each output, and the words that were applied until it was solved; infinite if it was not."""
    return [(name.partition(":")[0], row["applied"] if row["solved"] else np.inf) for name, row in rows.items()]


def draw_curves(path: Path, curves: dict[str, list[tuple[str, float]]]) -> None:
    """Draw the share of outputs that are solved, by the words applied; the bands are lowest and highest of five folds.

    Args:
        path: of the picture.
        curves: by name: the task of each output, and its words.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    places = np.geomspace(100, 1_000_000, 200)
    for name, outputs in curves.items():
        words = np.array([applied for _, applied in outputs])
        folds = np.array([fold_of(task_id)[0] for task_id, _ in outputs])
        shares = np.array([[(words[folds == fold] <= place).mean() for place in places] for fold in range(FOLDS)])
        (line,) = axes.plot(places, [(words <= place).mean() for place in places], label=name)
        axes.fill_between(places, shares.min(0), shares.max(0), alpha=0.12, color=line.get_color(), linewidth=0)
    axes.set(
        xscale="log", xlabel="words applied to states, for one output", ylabel="share of outputs solved", ylim=(0, 1)
    )
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def _print_counts(title: str, rows: dict[str, dict]) -> None:
    solved = [name for name, row in rows.items() if row["solved"]]
    seconds, applied = (sum(row[key] for row in rows.values()) for key in ("seconds", "applied"))
    print(f"{title}: {len(solved)} of {len(rows)} in two attempts; {applied:,} words in {seconds:.0f} s of CPU time")
    places = Counter(place for name in rows for place in fold_of(name.partition(":")[0]))
    right = Counter(place for name in solved for place in fold_of(name.partition(":")[0]))
    print(", ".join(f"{place}: {right[place]} of {places[place]}" for place in sorted(places, key=str)))
    fitting = [name for name, row in rows.items() if row["fits"]]
    print(f"a program explains all demonstrations of {len(fitting)}, {len({*fitting} & {*solved})} of them right")
    functions = Counter(function for name in solved for function in rows[name]["functions"])
    print("functions:", ", ".join(f"{name} {count}" for name, count in functions.most_common()))
    print("missed:", " ".join(sorted({*rows} - {*solved})))


if __name__ == "__main__":
    main()
