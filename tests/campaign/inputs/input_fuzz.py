"""Coverage-guided fuzzing of every reader and of the builder of configs: ``make fuzz-input ARGS="--inputs 10000000"``.

Every input must give a valid object, or an error that the reader documents, of one line, within 2 s and 1 GiB. Seeds
are small files as we write them; they are changed in their structure where they are JSON, otherwise in their bytes.
Needs Linux and atheris (requirements-fuzz.txt).
"""

import argparse
import contextlib
import io
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import atheris
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_NO_READERS: Final = [
    f"jaxarc.{name}" for name in ("envs", "agents", "surrogate", "benchmarks", "profiling", "wrappers")
]
with (
    contextlib.redirect_stderr(io.StringIO()),
    atheris.instrument_imports(include=["jaxarc"], exclude=_NO_READERS, enable_loader_override=False),
):
    from campaign.inputs.guided_feeding import feed_until_done
    from campaign.inputs.input_targets import MAKERS, SHARES

_INTERRUPTED: Final = 72  # exit code of libFuzzer that was told to end, or stopped for minutes: no reader's fault
_MOST_DEATHS: Final = 3  # of the process of one target, after which it is not started again


class Course:
    """The feeding of one target, by one process after the other where they die."""

    def __init__(self, name: str, count: int, seed: int, folder: Path):
        self.name, self.count, self._seed, self._folder = name, count, seed, folder
        self._done, self._deaths, self._findings, self._pid = 0, 0, [], 0

    @property
    def inputs(self) -> int:
        """Fed so far."""
        return self._done + self._told()["inputs"]

    @property
    def findings(self) -> list[dict[str, str]]:
        return self._findings + self._told()["findings"]

    @property
    def is_over(self) -> bool:
        return self.inputs >= self.count or self._deaths >= _MOST_DEATHS

    def start(self) -> None:
        """Fork a process that feeds what is left; everything is imported by now, and JAX has not begun."""
        self._pid = os.fork()
        if self._pid == 0:
            log = os.open(self._folder / f"{self.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            feed_until_done(MAKERS[self.name], self.count - self._done, self._seed + self._deaths, self._report)

    def has_ended(self) -> bool:
        """Whether the process has ended; its death is a finding."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid == 0:
            return False
        if status != 0:
            told = self._told()
            self._done += told["inputs"]
            code = os.waitstatus_to_exitcode(status)
            death = {"place": f"exit code {code}", "what": f"its process died, see {self.name}.log", "input": ""}
            self._findings += told["findings"] if code == _INTERRUPTED else [*told["findings"], death]
            self._report.unlink(missing_ok=True)
            self._deaths += 1
        return True

    @property
    def _report(self) -> Path:
        return self._folder / f"{self.name}-{self._deaths}.json"

    def _told(self) -> dict[str, Any]:
        return json.loads(self._report.read_text()) if self._report.exists() else {"inputs": 0, "findings": []}


def main() -> None:
    """Run the campaign and print a summary; exit code 1 on any finding."""
    options = _parser().parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="fuzz-input-"))
    folder.mkdir(parents=True, exist_ok=True)
    names = options.targets or list(MAKERS)
    whole = sum(SHARES[MAKERS[name]] for name in names)
    counts = {name: max(1, round(options.inputs * SHARES[MAKERS[name]] / whole)) for name in names}
    courses = [Course(name, count, options.seed, folder) for name, count in counts.items()]
    began = time.monotonic()
    _run(courses, options.jobs)
    summary = {
        "inputs": sum(course.inputs for course in courses),
        "targets": {course.name: course.inputs for course in courses},
        "findings": [{"target": course.name, **finding} for course in courses for finding in course.findings],
        "seconds": round(time.monotonic() - began, 1),
        "seed": options.seed,
        "versions": {"python": platform.python_version(), "atheris": version("atheris"), "jax": version("jax")},
    }
    if options.json:
        options.json.write_text(json.dumps(summary, indent=2) + "\n")
    _print(summary, folder)
    sys.exit(1 if summary["findings"] else 0)


def _run(courses: list[Course], jobs: int) -> None:
    waiting, running = sorted(courses, key=lambda course: -course.count), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("inputs", total=sum(course.count for course in courses))
        told = time.monotonic()
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(waiting.pop(0))
                running[-1].start()
            time.sleep(0.5)
            ended = [course for course in running if course.has_ended()]
            running = [course for course in running if course not in ended]
            waiting += [course for course in ended if not course.is_over]
            num_inputs, num_findings = sum(c.inputs for c in courses), sum(len(c.findings) for c in courses)
            names = ", ".join(course.name for course in running)
            progress.update(bar, completed=num_inputs, description=f"{num_findings} findings; {names}")
            if not progress.console.is_terminal and time.monotonic() - told > 60:  # for a log
                told = time.monotonic()
                progress.console.print(f"{num_inputs:,} inputs, {num_findings} findings; {names}", highlight=False)


def _print(summary: dict[str, Any], folder: Path) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for name, count in summary["targets"].items():
        console.print(f"{name:20} {count:12,}", markup=False)
    for finding in summary["findings"]:
        console.print(f"{finding['target']}: {finding['place']}: {finding['what']} {finding['input']}", markup=False)
    versions = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    console.print(
        f"{summary['inputs']:,} inputs to {len(summary['targets'])} readers in {summary['seconds']:,} s, "
        f"{len(summary['findings'])} findings; seed {summary['seed']}; {versions}; logs and inputs in {folder}",
        markup=False,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000_000, help="in all, default %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes at once, default %(default)s")
    parser.add_argument("--targets", nargs="+", choices=list(MAKERS), metavar="NAME", help=f"of {', '.join(MAKERS)}")
    parser.add_argument("--folder", type=Path, help="for logs and for inputs that are findings")
    parser.add_argument("--json", type=Path, help="file for the summary")
    return parser


if __name__ == "__main__":
    main()
