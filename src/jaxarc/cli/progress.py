"""How a training run looks while it goes on."""

import statistics
import time
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from jaxarc.cli.spread import range_share
from jaxarc.training import Report

_SECONDS_BETWEEN_LINES: Final = 2.0  # where the output is no terminal
_WIDTH_FOR_A_BAR: Final = 100  # columns of the terminal


class TrainingProgress:
    """A live line in a terminal; elsewhere a plain line every now and then. A sink of reports, open from its start.

    The reports of several seeds come one after the other and make one line: means, and for rates also the range.
    """

    def __init__(self, console: Console, num_updates: int, num_seeds: int = 1):
        self.console, self.num_updates, self.num_seeds = console, num_updates, num_seeds
        self._last_line = 0.0
        bar = [BarColumn(bar_width=16)] if console.width >= _WIDTH_FOR_A_BAR else []
        columns = (TextColumn("{task.description}"), *bar, TimeElapsedColumn())
        self._live = Progress(*columns, console=console, disable=not console.is_terminal)
        self._bar = self._live.add_task("compiling ...", total=None)
        self._rates = ""
        self._gathered: list[Report] = []  # of one update, from the seeds so far
        self._live.start()
        if self._live.disable:
            self._print_line("compiling ...")

    def close(self) -> None:
        """Leave the last line as it is."""
        self._live.stop()

    def write(self, report: Report) -> None:
        """Show the newest report, when it is that of the last seed."""
        self._gathered.append(report)
        if len(self._gathered) == self.num_seeds:
            self._show(self._gathered)
            self._gathered = []

    def _show(self, reports: list[Report]) -> None:
        update = reports[0].update
        if reports[0].evaluation_solve_rate is not None:
            self._rates = f"solved: unseen {range_share(report.evaluation_solve_rate for report in reports)}"
        if reports[0].train_solve_rate is not None:
            self._rates += f", train {range_share(report.train_solve_rate for report in reports)}"
        parts = [f"{update}/{self.num_updates}"]
        if speeds := [report.steps_per_second for report in reports if report.steps_per_second is not None]:
            parts.append(f"{sum(speeds) / 1000:.0f}k steps/s")
        if returns := [report.mean_return for report in reports if report.mean_return is not None]:
            parts.append(f"return {statistics.fmean(returns):.2f}")
        line = "  ".join([*parts, self._rates])
        self._live.update(self._bar, description=line, completed=update, total=self.num_updates)
        is_due = time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES
        if self._live.disable and (is_due or update in (0, self.num_updates)):
            self._print_line(f"update {line}")

    def _print_line(self, line: str) -> None:
        self._last_line = time.monotonic()
        self.console.print(line, highlight=False, soft_wrap=True)
