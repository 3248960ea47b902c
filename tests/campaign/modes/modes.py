"""Run the tests in other modes of JAX, on other Pythons, and with the oldest and newest versions that are allowed.

``make modes`` runs them all, one after the other; ``make modes ARGS="x64 python3.12"`` runs these two. Every test
runs with strict promotion of types and ranks anyway. A mode of versions has an environment of its own below
``--folder``, made when it is missing; an interpreter is found on the path, or named by a variable:
``PYTHON312=/path/to/python3.12``. Exit code 1: a test failed, or a mode could not be run.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from campaign.modes.interpreters import ROOT, MissingInterpreterError, find_python, make_environment

_CORE = (
    "tests/golden",
    "tests/envs",
    "tests/wrappers",
    "tests/agents",
    "tests/nn",
    "tests/experts",
    "tests/surrogate",
    "tests/tasks/procedural",
    "tests/tasks/test_tasks_augmentation.py",
    "tests/tasks/test_tasks_sampling.py",
    "tests/training/test_updates.py",
    "tests/training/test_training_loop.py",
    "tests/test_prng.py",
)
_UNCOMPILED = (  # a step takes half a second when each of its operations is called by itself
    "tests/golden",
    "tests/envs/test_observations.py",
    "tests/wrappers/test_flat_actions.py",
    "tests/test_prng.py",
)
_UNCHECKED = (  # that want no error of ours, see below
    "tests/golden",
    "tests/envs/test_augmented_episodes.py",
    "tests/envs/test_action_masks.py",
    "tests/envs/test_observations.py",
    "tests/tasks/test_tasks_sampling.py",
    "tests/training/test_updates.py",
    "tests/test_prng.py",
)
_FOLDER = Path(__file__).parents[1] / ".venv-modes"
_VERSIONS = "import platform; from importlib.metadata import version; print(platform.python_version(), version('jax'))"


class Mode(NamedTuple):
    """How, with what and on which of the tests are run."""

    why: str
    variables: dict[str, str] = {}  # of the environment  # noqa: RUF012
    tests: tuple[str, ...] = ("tests",)
    python: str | None = None  # None: this environment, else one of its own
    resolution: str = "locked"


MODES = {
    "x64": Mode("numbers are 64 bits wide unless the code says how wide", {"JAX_ENABLE_X64": "1"}, _CORE),
    "nans": Mode("a value that is not a number is an error", {"JAX_DEBUG_NANS": "1"}, _CORE),
    "keys": Mode("a random key that is used twice is an error", {"JAX_DEBUG_KEY_REUSE": "1"}, _CORE),
    # An error of equinox in a compiled function within another makes JAX's search for leaks itself fail (IndexError).
    "leaks": Mode(
        "a traced value that outlives its trace is an error",
        {"JAX_CHECK_TRACER_LEAKS": "1", "EQX_ON_ERROR": "off"},
        _UNCHECKED,
    ),
    "uncompiled": Mode("every operation is called by itself", {"JAX_DISABLE_JIT": "1"}, _UNCOMPILED),
    "python3.12": Mode("the locked versions on Python 3.12", python="3.12"),
    "python3.13": Mode("the locked versions on Python 3.13", python="3.13"),
    "oldest": Mode("the oldest allowed version of each dependency", python="3.11", resolution="oldest"),
    "newest": Mode("the newest allowed version of each dependency", python="3.13", resolution="newest"),
}


@dataclass
class Outcome:
    """What became of a mode."""

    mode: str
    versions: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the modes that were asked for and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"of {', '.join(MODES)} (default: all)")
    parser.add_argument("--list", action="store_true", help="say what each mode is, and run nothing")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="run these instead of what the mode runs")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests (default 2)")
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="of environments and logs")
    parser.add_argument("--json", type=Path, help="write the summary here")
    asked = parser.parse_args(arguments)
    console = Console(soft_wrap=True, highlight=False)
    if unknown := [name for name in asked.modes if name not in MODES]:
        parser.error(f"there is no mode {unknown[0]!r}; known: {', '.join(MODES)}")
    if asked.list:
        for name, mode in MODES.items():
            console.print(f"{name:12} {mode.why}; {' '.join(mode.tests)}", markup=False)
        return 0
    asked.folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        chosen = asked.modes or list(MODES)
        bar = progress.add_task("", total=len(chosen))
        for name in chosen:
            progress.update(bar, description=name)
            outcomes.append(run_mode(name, asked.folder.resolve(), asked.tests, asked.workers))
            for finding in outcomes[-1].findings:
                progress.console.print(f"FINDING in {name}: {finding}", markup=False)
            progress.advance(bar)
    console.print(_table(outcomes))
    findings = sum(len(outcome.findings) for outcome in outcomes)
    console.print(f"{len(outcomes)} modes, {findings} findings, {sum(o.seconds for o in outcomes):.0f} s")
    if asked.json:
        summary = {"findings": findings, "modes": [asdict(outcome) for outcome in outcomes]}
        asked.json.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return 1 if findings else 0


def run_mode(name: str, folder: Path, tests: Sequence[str] | None = None, workers: int = 2) -> Outcome:
    """Run the tests of a mode in a process of its own, and read what became of them.

    Args:
        name: one of ``MODES``.
        folder: for the environment, the log ``NAME.log`` and the report ``NAME.xml``.
        tests: paths to run instead of the mode's own.
        workers: processes; 0 for none beside pytest's own.
    """
    mode, outcome, start = MODES[name], Outcome(name), time.monotonic()
    report, log = folder / f"{name}.xml", folder / f"{name}.log"
    report.unlink(missing_ok=True)
    try:
        python = sys.executable
        if mode.python is not None:
            python = str(make_environment(folder / name, find_python(mode.python), mode.resolution))
        outcome.versions = subprocess.run(
            [python, "-c", _VERSIONS], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (MissingInterpreterError, subprocess.CalledProcessError) as error:
        outcome.findings.append(f"not run: {error}")
        return outcome
    command = [python, "-m", "pytest", "-q", "-c", "pyproject.toml", "-p", "no:cacheprovider"]
    command += [f"--numprocesses={workers}", f"--junitxml={report}"]
    variables = {**os.environ, **mode.variables}
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [*command, *(tests or mode.tests)], cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    outcome.seconds = round(time.monotonic() - start, 1)
    if report.exists():
        _read_report(report, outcome)
    if done.returncode and not outcome.findings:
        outcome.findings.append(f"pytest ended with {done.returncode}; see {log}")
    return outcome


def _read_report(report: Path, outcome: Outcome) -> None:
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        wrong = [part for kind in ("failure", "error") for part in case.findall(kind)]
        if wrong:
            outcome.failed += 1
            reason = (wrong[0].get("message") or "").partition("\n")[0]
            name = f"{case.get('classname')}.{case.get('name')}".strip(".")
            outcome.findings.append(f"{name}: {reason}")
        elif case.find("skipped") is not None:
            outcome.skipped += 1
        else:
            outcome.passed += 1


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table("mode", "Python and JAX", "passed", "failed", "skipped", "seconds")
    for row in outcomes:
        numbers = (row.passed, row.failed, row.skipped, f"{row.seconds:.0f}")
        table.add_row(row.mode, row.versions or "not run", *map(str, numbers))
    return table


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())
