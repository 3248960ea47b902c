"""Measure what the learned posterior gains the program search: five folds over training tasks, for docs/results.md.

    python benchmarks/search_guidance.py search searched.jsonl             # unguided; begins where it was stopped
    python benchmarks/search_guidance.py learn searched.jsonl weights      # without each fold in turn
    python benchmarks/search_guidance.py guide searched.jsonl guided.jsonl --weights weights
    python benchmarks/search_guidance.py guide searched.jsonl all.jsonl --weights weights --likely 1
    python benchmarks/search_guidance.py draw docs/images/search/guidance.png guided.jsonl all.jsonl

An output counts as solved after as many words as the search applied until it ended with the right answer among two.
Where the guided stage finds no sure program, the words of the unguided search are added.
"""

import argparse
import hashlib
import importlib
import json
from pathlib import Path

import numpy as np
from search_ledger import draw_curves

from jaxarc.config import SearchConfig, SearchExpertConfig, SurrogateConfig, SurrogateTrainingConfig
from jaxarc.datasets import load_tasks
from jaxarc.search import GridProgram, guidance
from jaxarc.search.guidance import Guide
from jaxarc.search.word_examples import ExpertExamples, dreams, fold_of, gathered, posterior

search = importlib.import_module("jaxarc.search.solve")  # the function of this name hides the module
CONFIG = SearchConfig(max_cost=4, max_states=25_000, seconds=600.0)
DREAMS = 4  # of each task
STEPS = 300
BUDGETS = (8_000, 26_000, 79_000, 237_000)  # words of an output: in ten minutes of 416 outputs, a tenth, a third, 1, 3


def tasks():
    """Return the training tasks by a hash of their ids."""
    return sorted(load_tasks("arc-agi-1/training"), key=lambda task: hashlib.sha256(task.task_id.encode()).hexdigest())


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def search_unguided(path: Path) -> None:
    known = {row["task"] for row in read(path)}
    with path.open("a") as file:
        for task in tasks():
            if task.task_id in known:
                continue
            source, target = task.test[0]
            result = search.solve(task.train, source, CONFIG)
            programs = {str(one.program): one for one in result.found if one.fits_all and one.program is not None}
            row = {
                "task": task.task_id,
                "applied": result.num_applied,
                "right": [bool(np.array_equal(one.answer, target)) for one in result.answers],
                "programs": [
                    [one.cost, bool(np.array_equal(one.answer, target)), text]
                    for text, one in list(programs.items())[:40]
                ],
            }
            file.write(json.dumps(row) + "\n")
            file.flush()


def learn(path: Path, folder: Path) -> None:
    from jaxarc.surrogate import SurrogateExperiment, train_surrogate
    from jaxarc.surrogate.search_task import SearchExpertTask

    folder.mkdir(exist_ok=True)
    known, rows = {task.task_id: task for task in tasks()}, []
    for row in read(path):
        task = known[row["task"]]
        source, target = task.test[0]
        wrong = np.zeros((1, 1), np.int8) if target.size > 1 else 9 - target
        found = [
            search.Found(target if right else wrong, GridProgram.parse(text), (True,), 1.0, cost)
            for cost, right, text in row["programs"]
        ]
        example = posterior(found, target) if found else None
        if example is not None:
            rows.append((task.task_id, False, search.described(task.train, source), *example))
        random = np.random.default_rng(list(task.task_id.encode()))
        for (*pairs, (asked, _)), probs in dreams(random, [grid for grid, _ in (*task.train, *task.test)], DREAMS):
            rows.append((task.task_id, True, search.described(pairs, asked), probs, 1.0))
    gathered(rows).save(folder / "examples.npz")
    recorded = ExpertExamples.load(folder / "examples.npz")
    print(f"{(~recorded.is_dreamed).sum()} examples of tasks, {recorded.is_dreamed.sum()} dreams", flush=True)
    for fold in range(5):
        experiment = SurrogateExperiment(
            surrogate=SurrogateConfig(problem="search", steps_per_report=STEPS, reports_per_evaluation=1),
            surrogate_training=SurrogateTrainingConfig(
                num_steps=STEPS,
                learning_rate=5e-3,
                final_learning_rate=1e-4,
                warmup_steps=20,
                weight_decay=1e-2,
                weight_by_accuracy=True,
            ),
            search_expert=SearchExpertConfig(fold=fold),
        )
        task = SearchExpertTask(recorded, experiment.search_expert)
        result = train_surrogate(experiment, task, None, lambda report: None)
        task.guide(result.state.model).save(folder / f"{fold}.npz")
        measured = task.evaluate(result.state.model)
        mean = task.train.probs[~task.train.is_dreamed].mean(0) + 1e-4
        print(fold, len(task.held_out.probs), measured, "mean posterior:", *_baseline(mean, task.held_out), flush=True)


def _baseline(mean: np.ndarray, held_out: ExpertExamples) -> tuple[float, float]:
    """Return KL of the mean posterior, and the expert's probability of its first ten words."""
    probs = np.where(held_out.is_tried, mean, 0)
    probs /= probs.sum(1, keepdims=True)
    there = held_out.probs > 0
    ratios = np.log(np.where(there, held_out.probs, 1)) - np.log(np.where(there, probs, 1))
    ten = np.take_along_axis(held_out.probs, np.argsort(-probs, 1)[:, :10], 1)
    return float((held_out.probs * ratios).sum(1).mean()), float(ten.sum(1).mean())


def search_guided(path: Path, out: Path, folder: Path, likely: float) -> None:
    guidance._LIKELY = likely
    guides = [Guide.load(folder / f"{fold}.npz") for fold in range(5)]
    config = SearchConfig(max_states=CONFIG.max_states, seconds=2000.0)
    known = {task.task_id: task for task in tasks()}
    with out.open("w") as file:
        for row in read(path):
            task = known[row["task"]]
            source, target = task.test[0]
            guided = search.TaskSearch(task.train, source, config)
            guided._clock.start(config.seconds)
            guided._look_guided(guides[fold_of(task.task_id)])
            applied, right = sum(view.graph.num_applied for view in guided._views.values()), row["right"]
            if search._is_sure(guided._found):
                answers = search._different(sorted(guided._found, key=search._rank), task.train, source, 2)
                right = [bool(np.array_equal(one.answer, target)) for one in answers]
            else:
                applied += row["applied"]
            file.write(json.dumps({**row, "programs": [], "applied": applied, "right": right, "alone": row}) + "\n")
            file.flush()


def draw(path: Path, guided: Path, *same_order: Path) -> None:
    rows = {"unguided": [row["alone"] for row in read(guided)], "guided": read(guided)}
    rows.update(("the same order, all words", read(one)) for one in same_order)
    curves = {
        name: [(row["task"], row["applied"] if any(row["right"]) else np.inf) for row in some]
        for name, some in rows.items()
    }
    for name, some in rows.items():
        costs = np.array([words for _, words in curves[name]])
        total = sum(min(row["applied"], 10**9) for row in some)
        print(f"{name}: solved {(costs < np.inf).sum()} of {len(some)}; {total:,} words")
        print("  ", ", ".join(f"{budget:,}: {(costs <= budget).sum()}" for budget in (1_000, *BUDGETS)))
        solved = {row["task"] for row in rows["unguided"] if any(row["right"])}
        spent = sum(row["applied"] for row in some if row["task"] in solved)
        print(f"   {spent:,} words at what the unguided search solves")
    draw_curves(path, curves)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("search", "learn", "guide", "draw"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--weights", type=Path, help="folder of the weights of all folds")
    parser.add_argument("--likely", type=float, default=1 / 3, help="share of the words of the guided stage")
    given = parser.parse_args()
    first, *rest = given.paths
    if given.step == "search":
        search_unguided(first)
    elif given.step == "learn":
        learn(first, rest[0])
    elif given.step == "guide":
        search_guided(first, rest[0], given.weights, given.likely)
    else:
        draw(first, *rest)


if __name__ == "__main__":
    main()
