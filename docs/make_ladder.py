"""Write the results table and the picture of docs/learning.md from run folders, one for each rung.

python docs/make_ladder.py RUN...     # run folders of `jaxarc train experiment=ladder_...`, in the order of the table
"""

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt

from jaxarc.training import read_metrics
from jaxarc.training.pairs import rule_of

DOCS = Path(__file__).parent
PAGE = DOCS / "learning.md"
PICTURE = DOCS / "images" / "ladder.png"
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"


def training_seconds(reports):
    """Seconds that one seed learned, up to each of its reports: measuring and compiling left out."""
    times, steps, clock = [], 0, 0.0
    for report in reports:
        if report.steps_per_second:
            clock += (report.environment_steps - steps) / report.steps_per_second
        steps = report.environment_steps
        times.append(clock)
    return times


def spread(values, digits=1):
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


class Run:
    def __init__(self, folder: Path):
        config = json.loads((folder / "config.json").read_text())
        self.name = config["logging"]["run_name"]
        by_seed = defaultdict(list)
        for report in read_metrics(folder / "metrics.jsonl"):
            by_seed[report.seed].append(report)
        count = len(by_seed)
        # Seeds take turns on a CPU: of the time of a compiled call each has its share.
        self.curves = [
            [
                (seconds / count, report.evaluation_solve_rate)
                for seconds, report in zip(training_seconds(reports), reports, strict=True)
                if report.evaluation_solve_rate is not None
            ]
            for reports in by_seed.values()
        ]
        self.steps = max(report.environment_steps for reports in by_seed.values() for report in reports)
        lines = [json.loads(line) for line in (folder / "measured.jsonl").read_text().splitlines()]
        self.unseen = [line for line in lines if line["task_id"].startswith("evaluation/")]

    def row(self):
        rates = [100 * curve[-1][1] for curve in self.curves]
        seconds = [curve[-1][0] for curve in self.curves]
        actions = [line["steps"] for line in self.unseen if line["solved"]]
        mean_actions = f"{statistics.fmean(actions):.1f}" if actions else "-"
        pairs = len(self.unseen) // len(self.curves)
        command = f"`jaxarc train experiment={self.name} training.num_seeds={len(rates)}`"
        cells = [command, len(rates), f"{self.steps:,}", f"{statistics.fmean(seconds):.1f} s", f"{pairs:,}"]
        return [*cells, f"{spread(rates)} %", f"{min(rates):.1f} %", mean_actions]

    def rules(self):
        """Solve rates in percent of each rule, over all seeds."""
        solved = defaultdict(list)
        for line in self.unseen:
            if "procedural" in line["task_id"]:
                solved[rule_of(line["task_id"])].append(line["solved"])
        return {rule: 100 * statistics.fmean(values) for rule, values in solved.items()}


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    runs = [Run(folder) for folder in parser.parse_args().runs]
    heads = ["command", "seeds", "environment steps", "training time per seed", "unseen pairs"]
    text = table([*heads, "solved, greedy", "worst seed", "actions"], [run.row() for run in runs])
    for run in runs:
        if len(rules := run.rules()) > 1:
            text += f"\n`{run.name}` by rule, mean over seeds:\n\n"
            text += table(
                [rule.removeprefix("procedural/") for rule in rules], [[f"{r:.1f} %" for r in rules.values()]]
            )
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[-1]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    draw(runs)


def draw(runs):
    figure, axes = plt.subplots(1, len(runs), figsize=(3.2 * len(runs), 3), sharey=True, layout="constrained")
    for axis, run in zip(axes if len(runs) > 1 else [axes], runs, strict=True):
        for curve in run.curves:
            axis.plot(*zip(*[(x, 100 * y) for x, y in curve], strict=True), color="#1E93FF", alpha=0.5, linewidth=1)
        axis.set(title=run.name, xlabel="training time per seed, s", ylim=(-3, 103))
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    (axes[0] if len(runs) > 1 else axes).set_ylabel("unseen pairs solved, %")
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
