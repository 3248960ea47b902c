"""Let a training run and rollouts go on for hours under limits, and judge whether they stay as they are.

``make soak`` runs the real command ``jaxarc train`` and, beside it, call after call of ``jaxarc.parallel.rollout``,
on one processor, with memory, threads and open files bounded. Every few seconds it notes what each of them uses. At
the end it judges the slope of the memory, the drift of the speed, the compilations, and whether both ended cleanly
and the run can go on. Exit code 1: something was not as it should be.
"""

import argparse
import dataclasses
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from campaign.soaking.soak_samples import (
    Sample,
    append_samples,
    last_number,
    measure_yardstick,
    read_samples,
    take_sample,
)
from campaign.soaking.steadiness import Bounds, Verdict, judge

_MEMORY_MIB = {"training": 2048, "rollout": 1024}
_TRAINING = (
    "training.total_steps=1000000000",
    "training.updates_per_report=16",
    "checkpoint.min_seconds=20",
    "logging.tensorboard=true",
    "logging.run_name=soak",
)
_PATIENCE = 600.0  # seconds to compile before, and to end after the time is over
_ENDING = "ending.json"  # in the folder of a soak: what was wrong with how its processes ended
_RESUMED = 5.0  # seconds that the run goes on at the end, to see that it can


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, or judge the samples of a soak before; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120.0, help="of playing and learning (default 120)")
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="between two samples (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="of the training run (default 0)")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)), help="the one that both run on")
    parser.add_argument("--files", type=int, default=128, help="open files that a process may have (default 128)")
    parser.add_argument("--out", type=Path, help="folder for samples, logs and the run; a temporary one by default")
    parser.add_argument("--samples", type=Path, help="judge this file, and soak nothing")
    parser.add_argument("--json", type=Path, help="write the summary here")
    asked = parser.parse_args(arguments)
    console = Console(soft_wrap=True)
    if asked.samples is not None:
        samples, ending = read_samples(asked.samples), asked.samples.with_name(_ENDING)
        problems: list[str] = json.loads(ending.read_text()) if ending.exists() else ["the end of the soak is missing"]
    else:
        folder = asked.out or Path(tempfile.mkdtemp(prefix="jaxarc-soak-"))
        folder.mkdir(parents=True, exist_ok=True)
        soak = _Soak(folder.resolve(), asked.minutes * 60, asked.seed, asked.cpu, asked.files)
        problems = soak.run(asked.every, console)
        (folder / _ENDING).write_text(json.dumps(problems))
        samples = read_samples(soak.samples)
    verdicts = []
    for name in _MEMORY_MIB:
        try:
            verdicts.append(judge([sample for sample in samples if sample.process == name], Bounds()))
        except ValueError as error:
            problems.append(f"{name} cannot be judged: {error}")
    return _tell(verdicts, problems, asked.json, console)


def with_campaign(environment: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables by which a new process finds this package."""
    places = [str(Path(__file__).parents[2]), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(places)}


class _Soak:
    """Two processes, what they write, and who looks at them."""

    def __init__(self, folder: Path, seconds: float, seed: int, cpu: int, files: int):
        self.folder, self.seconds, self.seed, self.cpu, self.files = folder, seconds, seed, cpu, files
        self.samples, self.runs, self.temporary = folder / "samples.jsonl", folder / "runs", folder / "temporary"
        self.temporary.mkdir()
        self.started = time.monotonic()

    def run(self, every: float, console: Console) -> list[str]:
        """Start both, look at them until they end, and return what is wrong with how they ended."""
        os.sched_setaffinity(0, {self.cpu})  # so that the yardstick is of the same processor
        processes = {"training": self._train(), "rollout": self._roll_out()}
        end = self.started + self.seconds + 2 * _PATIENCE
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        problems = []
        try:
            with Progress(*columns, console=console) as progress:
                bar = progress.add_task("soaking", total=self.seconds)
                while any(process.poll() is None for process in processes.values()):
                    yardstick = measure_yardstick()
                    looks = (self._look(name, process, yardstick) for name, process in processes.items())
                    samples = [sample for look in looks for sample in look]
                    append_samples(self.samples, samples)
                    progress.update(bar, completed=time.monotonic() - self.started)
                    if time.monotonic() > end:
                        problems.append("the processes did not end by themselves")
                        break
                    time.sleep(every)
        finally:
            for process in processes.values():
                process.kill()
        for name, process in processes.items():
            problems += self._problems_of_end(name, process)
        return problems or self._problems_of_run()

    def _train(self) -> subprocess.Popen[bytes]:
        choices = [*_TRAINING, f"training.seed={self.seed}", f"training.max_seconds={self.seconds}"]
        return self._start("training", [], ["train", *choices, f"logging.run_root={self.runs}"])

    def _roll_out(self) -> subprocess.Popen[bytes]:
        return self._start("rollout", ["--seconds", str(self.seconds), "--progress", str(self._progress("rollout"))])

    def _start(self, name: str, options: Sequence[str], command: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        limits = {"memory-mib": _MEMORY_MIB[name], "cpu": self.cpu, "files": self.files}
        bounds = [part for key, value in limits.items() for part in (f"--{key}", str(value))]
        places = {"JAX_PLATFORMS": "cpu", "TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "1"}
        environment = {**with_campaign(os.environ), **places}
        module = [sys.executable, "-m", "campaign.soaking.soak_process", "--work", name]
        arguments = [*module, *bounds, "--compilations", str(self._compilations(name)), *options, "--", *command]
        with self._log(name).open("ab") as log:
            return subprocess.Popen(arguments, stdout=log, stderr=log, env=environment, start_new_session=True)

    def _look(self, name: str, process: subprocess.Popen[bytes], yardstick: float) -> list[Sample]:
        """Sample a process, if it still runs."""
        field = {"training": "environment_steps", "rollout": "steps"}[name]
        progress, compilations = self._progress(name), self._compilations(name)
        steps = 0 if progress is None else last_number(progress, field)
        count = compilations.read_bytes().count(b"\n") if compilations.exists() else 0
        kept = self.runs if name == "training" else self.temporary
        try:
            seconds = time.monotonic() - self.started
            return [take_sample(name, process.pid, seconds, steps, count, kept, yardstick)]
        except (FileNotFoundError, ProcessLookupError):
            return []

    def _problems_of_end(self, name: str, process: subprocess.Popen[bytes]) -> list[str]:
        problems, code = [], process.wait()
        if code != 0:
            problems.append(f"{name} ended with exit code {code}; its output is {self._log(name)}")
        try:
            os.killpg(process.pid, 0)
            problems.append(f"{name} left processes behind")
        except ProcessLookupError:
            pass
        if left := sorted(path.name for path in self.temporary.rglob("*")):
            problems.append(f"temporary files are left behind: {left}")
        return problems

    def _problems_of_run(self) -> list[str]:
        """See that the run's folder holds what it should, and go on in it for a moment."""
        (run,) = self.runs.iterdir()
        wanted = ("config.json", "metrics.jsonl", "tasks.jsonl", "measured.jsonl", "learning_curve.png", "tensorboard")
        problems = [f"the run has no {name}" for name in wanted if not (run / name).exists()]
        checkpoints = sorted(path.name for path in (run / "checkpoints").iterdir())
        if unfinished := [name for name in checkpoints if not name.isdecimal()]:
            problems.append(f"unfinished checkpoints are left behind: {unfinished}")
        if len(checkpoints) > 3:
            problems.append(f"{len(checkpoints)} checkpoints are kept, 3 are allowed: {checkpoints}")
        before = last_number(run / "metrics.jsonl", "environment_steps")
        longer = f"training.max_seconds={self.seconds + _RESUMED}"
        resumed = self._start("training", [], ["train", "--resume", str(run), longer])
        problems += self._problems_of_end("training", resumed)
        after = last_number(run / "metrics.jsonl", "environment_steps")
        return problems if after > before else [*problems, f"the resumed run stayed at {before:,} steps"]

    def _progress(self, name: str) -> Path | None:
        if name == "rollout":
            return self.folder / "rollout.jsonl"
        return next(self.runs.glob("*/metrics.jsonl"), None)

    def _compilations(self, name: str) -> Path:
        return self.folder / f"{name}_compilations.jsonl"

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def _tell(verdicts: Sequence[Verdict], problems: Sequence[str], path: Path | None, console: Console) -> int:
    """Print the summary, and return the exit code."""
    found = [*problems, *(f"{verdict.process}: {problem}" for verdict in verdicts for problem in verdict.problems)]
    versions = {"python": platform.python_version(), "jax": jax.__version__}
    for verdict in verdicts:
        console.print(_lines_of(verdict), highlight=False)
    console.print(f"versions: {versions}", highlight=False)
    console.print("\n".join(f"FOUND: {line}" for line in found) or "nothing was found", highlight=False)
    if path is not None:
        told = {"verdicts": [dataclasses.asdict(verdict) for verdict in verdicts], "found": found, **versions}
        path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return 1 if found else 0


def _lines_of(verdict: Verdict) -> str:
    (low, high), (least, most) = verdict.memory_mib, verdict.private_mib
    return "\n".join(
        [
            f"{verdict.process}: {verdict.hours:.2f} h after the warm-up, {verdict.num_samples} samples, "
            f"{verdict.steps:,} steps in all",
            f"  memory in use      {low:,.0f} to {high:,.0f} MiB, slope {verdict.memory} MiB/h",
            f"  memory reserved    {least:,.0f} to {most:,.0f} MiB, slope {verdict.private} MiB/h",
            f"  speed              {verdict.steps_per_cpu_second:,.0f} steps/s of processor time "
            f"({verdict.steps_per_second:,.0f} by the clock), drift {verdict.speed} %/h",
            f"  compilations       {verdict.num_compilations}",
            f"  threads, files     {verdict.num_threads}, {verdict.num_files}",
            f"  on disk            {verdict.disk_mib[0]:.1f} to {verdict.disk_mib[1]:.1f} MiB",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
