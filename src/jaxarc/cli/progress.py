"""How a training run looks while it goes on."""

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from jaxarc.cli.spread import range_share
from jaxarc.training import Report
from jaxarc.training.surrogates import SurrogateReport

_SECONDS_BETWEEN_LINES: Final = 2.0  # where the output is no terminal
_WIDTH_FOR_A_BAR: Final = 100  # columns of the terminal


class LiveLine:
    """One line that is renewed in a terminal; elsewhere a plain line every now and then."""

    def __init__(self, console: Console, total: int):
        self._console, self._total, self._last_line = console, total, 0.0
        bar = [BarColumn(bar_width=16)] if console.width >= _WIDTH_FOR_A_BAR else []
        columns = (TextColumn("{task.description}"), *bar, TimeElapsedColumn())
        self._live = Progress(*columns, console=console, disable=not console.is_terminal)
        self._bar = self._live.add_task("compiling ...", total=None)
        self._live.start()
        if self._live.disable:
            self._print("compiling ...")

    def close(self) -> None:
        """Leave the last line as it is."""
        self._live.stop()

    def show(self, unit: str, done: int, parts: Sequence[str]) -> None:
        """Show how many of all units are done, and what else there is to tell."""
        line = "  ".join([f"{done}/{self._total}", *parts])
        self._live.update(self._bar, description=line, completed=done, total=self._total)
        is_due = time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES
        if self._live.disable and (is_due or done in (0, self._total)):
            self._print(f"{unit} {line}")

    def _print(self, line: str) -> None:
        self._last_line = time.monotonic()
        self._console.print(line, highlight=False, soft_wrap=True)


class TrainingProgress:
    """How agents stand, on a live line. A writer of reports, open from its start.

    The reports of several seeds come one after the other and make one line: means, and for rates also the range.
    """

    def __init__(self, console: Console, num_updates: int, num_seeds: int = 1):
        self.num_seeds = num_seeds
        self._line = LiveLine(console, num_updates)
        self._rates = ""
        self._gathered: list[Report] = []  # of one update, from the seeds so far
        self.close = self._line.close

    def write(self, report: Report) -> None:
        """Show the newest report, when it is that of the last seed."""
        self._gathered.append(report)
        if len(self._gathered) == self.num_seeds:
            self._show(self._gathered)
            self._gathered = []

    def _show(self, reports: list[Report]) -> None:
        if reports[0].evaluation_solve_rate is not None:
            self._rates = f"solved: unseen {range_share(report.evaluation_solve_rate for report in reports)}"
        if reports[0].train_solve_rate is not None:
            self._rates += f", train {range_share(report.train_solve_rate for report in reports)}"
        parts = []
        if speeds := [report.steps_per_second for report in reports if report.steps_per_second is not None]:
            parts.append(f"{sum(speeds) / 1000:.0f}k steps/s")
        if returns := [report.mean_return for report in reports if report.mean_return is not None]:
            parts.append(f"return {statistics.fmean(returns):.2f}")
        self._line.show("update", reports[0].update, [*parts, self._rates])


class SurrogateProgress:
    """How a surrogate stands, on a live line. A writer of its reports, open from its start."""

    def __init__(self, console: Console, num_steps: int):
        self._line = LiveLine(console, num_steps)
        self._measured = ""
        self.close = self._line.close

    def write(self, report: SurrogateReport) -> None:
        """Show the newest report."""
        if report.score is not None:
            self._measured = f"held out: {', '.join(measured_parts(report))}"
        parts = []
        if report.examples_per_second is not None:
            parts.append(f"{report.examples_per_second:,.0f} examples/s")
        losses = [loss for loss in (report.total_loss, report.transition_total_loss) if loss is not None]
        if losses:
            parts.append(f"loss {' and '.join(f'{loss:.3f}' for loss in losses)}")
        self._line.show("step", report.update, [*parts, self._measured])


def measured_parts(report: SurrogateReport) -> Iterator[str]:
    """Tell what was measured of a surrogate, briefly."""
    if report.kl is not None:
        yield f"KL {report.kl:.3f}"
        yield f"top-1 {range_share([report.top1_agreement])}"
    if report.exact_grid_accuracy is not None:
        yield f"next grids {range_share([report.exact_grid_accuracy])}"
