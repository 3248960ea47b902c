"""How a training run looks while it goes on."""

import time
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from jaxarc.training import Report

_SECONDS_BETWEEN_LINES: Final = 2.0  # where the output is no terminal
_WIDTH_FOR_A_BAR: Final = 100  # columns of the terminal


class TrainingProgress:
    """A live line in a terminal; elsewhere a plain line every now and then."""

    def __init__(self, console: Console, num_updates: int):
        self.console, self.num_updates = console, num_updates
        self._last_line = 0.0
        bar = [BarColumn(bar_width=16)] if console.width >= _WIDTH_FOR_A_BAR else []
        columns = (TextColumn("{task.description}"), *bar, TimeElapsedColumn())
        self._live = Progress(*columns, console=console, disable=not console.is_terminal)
        self._bar = self._live.add_task("compiling ...", total=None)
        self._rates = ""

    def __enter__(self) -> "TrainingProgress":
        self._live.start()
        if self._live.disable:
            self._print_line("compiling ...")
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, report: Report) -> None:
        """Show the newest report."""
        if report.train_solve_rate is not None:
            rates = f"train {_percent(report.train_solve_rate)}, unseen {_percent(report.evaluation_solve_rate)}"
            self._rates = f"solved: {rates}"
        parts = [f"{report.update}/{self.num_updates}"]
        if report.steps_per_second is not None:
            parts.append(f"{report.steps_per_second / 1000:.0f}k steps/s")
        if report.mean_return is not None:
            parts.append(f"return {report.mean_return:.2f}")
        line = "  ".join([*parts, self._rates])
        self._live.update(self._bar, description=line, completed=report.update, total=self.num_updates)
        is_due = time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES
        if self._live.disable and (is_due or report.update in (0, self.num_updates)):
            self._print_line(f"update {line}")

    def _print_line(self, line: str) -> None:
        self._last_line = time.monotonic()
        self.console.print(line, highlight=False, soft_wrap=True)


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.0f} %"
