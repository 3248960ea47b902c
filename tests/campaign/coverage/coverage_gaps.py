"""Tell what of ``src`` no test has run, from the report of ``make coverage``, and whether that is little enough.

``python -m campaign.coverage.coverage_gaps coverage.json`` lists the files with gaps, most missing first: lines that
never ran, and jumps from line to line that were never taken. Exit code 1: less is covered than asked for.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table


class Covered(NamedTuple):
    """How much of something ran."""

    lines: int
    lines_run: int
    branches: int
    branches_run: int

    @classmethod
    def of(cls, summary: dict[str, Any]) -> "Covered":
        names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
        return cls(*(summary[name] for name in names))

    @property
    def missing(self) -> int:
        """Number of lines and branches that did not run."""
        return self.lines - self.lines_run + self.branches - self.branches_run

    @property
    def line_percent(self) -> float:
        return 100 * self.lines_run / max(self.lines, 1)

    @property
    def branch_percent(self) -> float:
        return 100 * self.branches_run / max(self.branches, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the gaps and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="what coverage wrote as JSON, with branches")
    parser.add_argument("--lines", type=float, default=95.0, help="percent of lines that must run (default 95)")
    parser.add_argument("--branches", type=float, default=90.0, help="percent of branches (default 90)")
    parser.add_argument("--json", type=Path, help="write the summary here")
    asked = parser.parse_args(arguments)
    report = json.loads(asked.report.read_text(encoding="utf-8"))
    total, files = Covered.of(report["totals"]), report["files"]
    table = Table("file", "lines", "branches", "lines that never ran", "jumps that were never taken")
    for name in sorted(files, key=lambda name: -Covered.of(files[name]["summary"]).missing):
        covered = Covered.of(files[name]["summary"])
        if covered.missing:
            percents = f"{covered.line_percent:.1f} %", f"{covered.branch_percent:.1f} %"
            table.add_row(name, *percents, *_gaps(files[name]))
    console = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(table)
    enough = total.line_percent >= asked.lines and total.branch_percent >= asked.branches
    console.print(
        f"{total.lines_run} of {total.lines} lines ({total.line_percent:.2f} %, at least {asked.lines:g} asked for), "
        f"{total.branches_run} of {total.branches} branches ({total.branch_percent:.2f} %, at least "
        f"{asked.branches:g}), coverage {report['meta']['version']}: {'enough' if enough else 'NOT enough'}"
    )
    if asked.json:
        percents = {"lines": total.line_percent, "branches": total.branch_percent}
        asked.json.write_text(json.dumps({**total._asdict(), "percent": percents, "enough": enough}) + "\n")
    return 0 if enough else 1


def _gaps(file: dict[str, Any]) -> tuple[str, str]:
    spans: list[list[int]] = []
    for line in file["missing_lines"]:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    lines = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
    jumps = ", ".join(f"{start} to {end if end > 0 else 'the end'}" for start, end in file["missing_branches"])
    return lines, jumps


if __name__ == "__main__":
    sys.exit(main())
