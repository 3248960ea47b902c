"""The presentation of a run on the terminal, and its learning curves as a picture; it knows no kind of run."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from jaxarc.cli.console import LiveLine, escape, number_table
from jaxarc.runs import RunFolder, TrainResult
from jaxarc.runs.folder import RunReport
from jaxarc.runs.presentation import CalibrationPlot, Presentation, Table, said


def show_lines(lines: Iterable[str], console: Console) -> None:
    """Print sentences, each in one line however long it is; ``**these words**`` are bold."""
    for line in lines:
        marked = re.sub(r"\*\*(.+?)\*\*", r"[bold]\1[/]", escape(line))
        console.print(marked, highlight=False, soft_wrap=True)


def show_results(results: Iterable[str | Table | CalibrationPlot], folder: RunFolder, console: Console) -> None:
    """Print sentences and tables, and draw the calibration into the run folder."""
    for result in results:
        if isinstance(result, str):
            show_lines([result], console)
        elif isinstance(result, Table):
            table = number_table(*map(escape, result.headers), num_words=result.num_words)
            table.columns[0].no_wrap = result.keeps_names
            for row in result.rows:
                table.add_row(*map(escape, row))
            console.print(table)
        else:
            from jaxarc.render.figures import draw_calibration  # Matplotlib takes half a second

            draw_calibration(result.bins, folder.calibration, result.title, result.expected)


def show_closing(
    presentation: Presentation, result: TrainResult, folder: RunFolder, console: Console, seconds: float
) -> None:
    """Print how a run ended, its files, and what to look at next."""
    last = result.reports[-1]
    ending = "Stopped early, and kept what was learned," if result.interrupted else "Done"
    all_updates = presentation.num_updates
    share = "" if last.update == all_updates else f" after {last.update} of {all_updates} {presentation.unit}s"
    files = [path.name for path in sorted(folder.path.iterdir()) if not path.name.startswith(".")]
    closing = [
        f"{ending}{share} in {seconds:.0f} s: {result.compile_seconds:.0f} s compiling, {last.seconds:.0f} s "
        f"{presentation.learned.format(last.samples)}.",
        f"{folder.path}: {', '.join(files)}",
        *presentation.advice,
    ]
    show_lines(closing, console)


class LiveReports:
    """Shows reports on a live line; a writer of reports, open from its start.

    The reports of several seeds come one after the other and make one line.
    """

    def __init__(self, presentation: Presentation, num_seeds: int, console: Console):
        self._presentation = presentation
        self._num_seeds = num_seeds
        self._line = LiveLine(console, presentation.num_updates)
        self._measured = ""
        self._gathered: list[RunReport] = []  # of one update, from the seeds so far
        self.close = self._line.close

    def write(self, report: RunReport) -> None:
        """Show the newest reports, when that of the last seed is there."""
        self._gathered.append(report)
        if len(self._gathered) < self._num_seeds:
            return
        presentation = self._presentation
        if measured := ", ".join(said(presentation.measured, self._gathered)):
            self._measured = presentation.before_measured + measured
        parts = [*said(presentation.live, self._gathered), self._measured]
        if report.update == 0:  # a step is being compiled
            parts.append("compiling ...")
        self._line.show(presentation.unit, report.update, parts)
        self._gathered = []


def draw_curves(presentation: Presentation, reports: Sequence[Any], folder: RunFolder) -> None:
    """Draw the learning curves into the run folder; a line whose numbers were never measured is left out."""
    from jaxarc.render.figures import Panel, draw_panels  # Matplotlib takes half a second

    rows = [dataclasses.asdict(report) for report in reports]
    of_seeds = [[row for row in rows if row["seed"] == seed] for seed in dict.fromkeys(row["seed"] for row in rows)]
    panels = []
    for plot in presentation.plots:
        known = {name: field for name, field in plot.lines.items() if any(row[field] is not None for row in rows)}
        lines = {
            name: [[(row[presentation.x], row[field]) for row in of_seed] for of_seed in of_seeds]
            for name, field in known.items()
        }
        if lines:
            panels.append(Panel(plot.label, lines, plot.is_share))
    draw_panels(panels, folder.learning_curve, presentation.title, presentation.x_label)
