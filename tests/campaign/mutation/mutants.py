"""Break the source in one place at a time, and see whether the tests notice.

``make mutants`` makes an environment for the tool first; ``docs/reliability.md`` has the results. Cosmic Ray makes the
mutants and keeps the session, a file from which a stopped campaign goes on, and which ``cr-report`` and ``cr-html``
read. Each mutant is tried with the tests of its file, in a fork, on a copy of the tree. The order is drawn by lot, so
what has been tried at any moment is a fair sample. Exit code 1: a mutant survived that ``known_mutants.toml`` does not
explain, or tests fail without any.
"""

import argparse
import hashlib
import importlib.metadata
import json
import math
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from campaign.mutation.known_mutants import known_mutants
from campaign.mutation.mutant_sites import PACKAGE, changed_lines, list_mutants, mutated_code, place
from campaign.mutation.mutant_targets import TARGETS
from campaign.mutation.mutant_workshop import Workshop

_ROOT: Final = Path(__file__).parents[3]
_SLACK, _FACTOR = 8.0, 3.0  # a mutant may take so many seconds more than so many times what the tests take
_OUTCOMES: Final = {
    "passed": TestOutcome.SURVIVED,
    "failed": TestOutcome.KILLED,
    "timeout": TestOutcome.INCOMPETENT,
}
_COLUMNS: Final = ("tried", "killed", "timeout", "explained", "unexplained")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try mutants and tell what became of them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"some of: {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N mutants of a file (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and the order (default 0)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no mutant after so long")
    parser.add_argument(
        "--session", type=Path, default=_usual_session(), help="file to go on with (default: %(default)s)"
    )
    parser.add_argument("--anew", action="store_true", help="forget what the session holds")
    parser.add_argument("--again", action="store_true", help="try those again that survived and are not explained")
    parser.add_argument("--python", default=str(_ROOT / ".venv/bin/python"), help="interpreter that runs the tests")
    parser.add_argument("--json", type=Path, help="write the summary here")
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.files) - set(TARGETS)):
        parser.error(f"no file {unknown[0]!r}; give some of {', '.join(TARGETS)}")
    console, started = Console(soft_wrap=True), time.monotonic()
    if asked.anew:
        asked.session.unlink(missing_ok=True)
    with use_db(str(asked.session), WorkDB.Mode.create) as session:
        if not session.num_work_items:
            list_mutants(session, _ROOT, tuple(TARGETS))
        campaign = _Campaign(session, asked.files or tuple(TARGETS), asked.sample, asked.seed)
        with Workshop(_ROOT, asked.python) as workshop:
            failing = campaign.go_on(workshop, asked.minutes, asked.again, console)
        summary = {**campaign.summary(), "failing": failing, "seconds": round(time.monotonic() - started)}
    _tell(summary, console)
    if asked.json is not None:
        asked.json.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return 1 if summary["failing"] or summary["unexplained"] else 0


class _Campaign:
    """The mutants that are to be tried, in their order, and what became of them so far."""

    def __init__(self, session: WorkDB, files: Sequence[str], sample: int | None, seed: int):
        self.session, self.seed = session, seed
        self.known = {(known.file, f"- {known.was}\n+ {known.becomes}") for known in known_mutants()}
        self.items: list[WorkItem] = []
        skipped = {job_id for job_id, result in session.results if result.worker_outcome == WorkerOutcome.SKIPPED}
        items = sorted((item for item in session.work_items if item.job_id not in skipped), key=place)
        for file in files:  # a larger sample holds a smaller one, whatever other files are asked for
            ours = [item for item in items if place(item).file == file]
            self.items += random.Random(f"{seed} {file}").sample(ours, len(ours))[:sample]
        random.Random(seed).shuffle(self.items)

    def go_on(self, workshop: Workshop, minutes: float, again: bool, console: Console) -> list[str]:
        """Try the mutants that have no result yet; return what fails without a mutant."""
        began, results = time.monotonic(), dict(self.session.results)
        waiting = [
            item
            for item in self.items
            if item.job_id not in results or (again and self._kind(item, results[item.job_id]) == "unexplained")
        ]
        limits, failing = {}, []
        for file in sorted({place(item).file for item in waiting}):
            trial = workshop.try_tests(file, TARGETS[file], seconds=300)
            console.print(f"{file}: {trial['outcome']} without a mutant, {trial['seconds']} s of processor time")
            limits[file] = _SLACK + _FACTOR * trial["seconds"]
            if trial["outcome"] != "passed":
                failing.append(f"{file}: {trial['outcome']} without a mutant: {trial['by']}")
        columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
        with Progress(*columns, console=console) as bar:
            row = bar.add_task("", total=len(self.items), completed=len(self.items) - len(waiting))
            for item in waiting if not failing else ():
                if time.monotonic() - began > minutes * 60:
                    break
                where = place(item)
                bar.update(row, description=f"{where.file}:{where.line}")
                result = _tried(item, workshop, limits[where.file])
                self.session.set_result(item.job_id, result)
                if self._kind(item, result) == "unexplained":
                    console.print(f"survived: {where.file}:{where.line}\n{result.diff}", markup=False, highlight=False)
                bar.advance(row)
        return failing

    def summary(self) -> dict[str, Any]:
        """Return what became of the mutants so far."""
        results, rows, unexplained = dict(self.session.results), {}, []
        for item in self.items:
            if item.job_id not in results:
                continue
            kind, where = self._kind(item, results[item.job_id]), place(item)
            rows.setdefault(where.file, Counter()).update(("tried", kind))
            if kind == "unexplained":
                unexplained.append(f"{where.file}:{where.line}\n{results[item.job_id].diff}")
        total = sum(rows.values(), Counter())
        caught = total["killed"] + total["timeout"]
        return {
            "files": {file: {name: rows[file][name] for name in _COLUMNS} for file in TARGETS if file in rows},
            "total": {name: total[name] for name in _COLUMNS},
            "chosen": len(self.items),
            "caught_share": caught / max(total["tried"], 1),
            "interval_95": _wilson(caught, total["tried"]),
            "unexplained": unexplained,
            "seed": self.seed,
            "versions": {"python": platform.python_version(), "cosmic-ray": importlib.metadata.version("cosmic-ray")},
        }

    def _kind(self, item: WorkItem, result: WorkResult) -> str:
        if result.test_outcome == TestOutcome.SURVIVED:
            return "explained" if (place(item).file, result.diff) in self.known else "unexplained"
        return "killed" if result.test_outcome == TestOutcome.KILLED else "timeout"


def _tried(item: WorkItem, workshop: Workshop, seconds: float) -> WorkResult:
    file = place(item).file
    was, becomes = mutated_code(item)
    trial = workshop.try_tests(file, TARGETS[file], seconds, becomes)
    if trial["outcome"] not in _OUTCOMES:
        raise ChildProcessError(f"pytest could not run the tests of {file}: {trial['by']}; run them by hand")
    output = f"{trial['by']}; {trial['seconds']} s"
    return WorkResult(WorkerOutcome.NORMAL, output, _OUTCOMES[trial["outcome"]], changed_lines(was, becomes))


def _usual_session() -> Path:
    """A file for the sources as they are: when they change, another session begins."""
    text = b"".join((_ROOT / PACKAGE / file).read_bytes() for file in TARGETS)
    return Path(tempfile.gettempdir()) / f"jaxarc-mutants-{hashlib.sha256(text).hexdigest()[:12]}.sqlite"


def _wilson(part: int, whole: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson."""
    if not whole:
        return 0.0, 1.0
    z, share = 1.96, part / whole
    middle = share + z * z / (2 * whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    return (middle - half) / (1 + z * z / whole), (middle + half) / (1 + z * z / whole)


def _tell(summary: dict[str, Any], console: Console) -> None:
    table = Table("file", "tried", "killed", "timed out", "survived, explained", "survived, not explained")
    for file, row in [*summary["files"].items(), ("all", summary["total"])]:
        table.add_row(file, *(str(row[name]) for name in _COLUMNS))
    console.print(table)
    for text in (*summary["unexplained"], *summary["failing"]):
        console.print(text, markup=False, highlight=False)
    low, high = summary["interval_95"]
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    console.print(
        f"{summary['total']['tried']} of {summary['chosen']} mutants tried: {summary['caught_share']:.1%} caught "
        f"(95 % interval {low:.1%} to {high:.1%}); seed {summary['seed']}, {summary['seconds']} s, {versions}",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
