"""Write the results table and the figure of docs/experiments.md from run folders, one for each setting.

    python docs/make_ladder.py RUN...     # of `jaxarc train experiment=ladder_...`, in the order of the table
    python docs/make_ladder.py            # the figure again, from the curves of the last table in docs/ladder.json

In the first ``ladder.json`` the curves of ``ladder_l1``, ``ladder_l1_plain`` and ``ladder_l2_small`` were read off an
older figure, within 1 %.
"""

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from jaxarc.agents import read_metrics
from jaxarc.datasets.training_pairs import rule_of

DOCS = Path(__file__).parent
PAGE = DOCS / "experiments.md"
CURVES = DOCS / "ladder.json"  # the worst and the best seed of each setting, in percent, at each report
PICTURE = DOCS / "images" / "ladder.png"
COLORS = ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#cc79a7")  # Okabe and Ito
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
        # The preset ends when all is solved; the table is of runs that take their whole schedule.
        self.is_whole_schedule = self.name == "ladder_l2_small" and config["training"].get("stop_at_solve_rate") is None
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
        whole = " training.stop_at_solve_rate=null" if self.is_whole_schedule else ""
        command = f"`jaxarc train experiment={self.name} training.num_seeds={len(rates)}{whole}`"
        cells = [command, len(rates), f"{self.steps:,}", f"{statistics.fmean(seconds):.1f} s", f"{pairs:,}"]
        return [*cells, f"{spread(rates)} %", f"{min(rates):.1f} %", mean_actions]

    def envelope(self):
        """Rates in percent of the worst and the best seed, at the mean time of each report."""
        reports = list(zip(*self.curves, strict=True))
        return {
            "seconds": [round(statistics.fmean(time for time, _ in seeds), 3) for seeds in reports],
            "worst": [round(100 * min(rate for _, rate in seeds), 1) for seeds in reports],
            "best": [round(100 * max(rate for _, rate in seeds), 1) for seeds in reports],
        }

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
    parser.add_argument("runs", nargs="*", type=Path)
    runs = [Run(folder) for folder in parser.parse_args().runs]
    if runs:
        write_table(runs)
        lines = (f"  {json.dumps(run.name)}: {json.dumps(run.envelope())}" for run in runs)
        CURVES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    draw(json.loads(CURVES.read_text()))


def write_table(runs):
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


def draw(curves):
    """Draw all settings in one panel over log time: the best seed as a line, and a band down to the worst."""
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for color, (name, curve) in zip(COLORS, curves.items(), strict=True):
        seconds = curve["seconds"]
        # Between two reports a rate is interpolated in time, which is no straight line over its logarithm.
        fine = np.geomspace(max(seconds[0], 0.1), seconds[-1], 400)
        worst, best = (np.interp(fine, seconds, curve[of]) for of in ("worst", "best"))
        axes.fill_between(fine, worst, best, color=color, alpha=0.25, linewidth=0)
        axes.plot(fine, best, color=color, linewidth=2, label=name)
        axes.plot(fine, worst, color=color, linewidth=0.8)
    axes.set(xscale="log", xlabel="training time of a seed, seconds", ylabel="unseen pairs solved, %", ylim=(-3, 103))
    axes.set_xticks([0.1, 0.3, 1, 3, 10, 30, 100], ["0.1", "0.3", "1", "3", "10", "30", "100"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
