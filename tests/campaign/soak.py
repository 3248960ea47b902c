"""Let a training run and rollouts go on for hours under limits, and judge whether memory and speed stay as they are.

``make soak`` starts the real command ``jaxarc train`` and, beside it, call after call of ``jaxarc.parallel.rollout``,
on one processor, with memory and open files bounded. It samples both every few seconds, and judges them at the end.
Exit code 1: memory or open files grow, speed falls, something was compiled late, or a process did not end well.
"""

import dataclasses
import itertools
import json
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
from rich.progress import track
from scipy import stats

from campaign.summary import finish, parser_of

TESTS: Final = Path(__file__).parents[1]
MEMORY_MIB: Final = {"training": 2048, "rollout": 1024}  # of private writable memory (RLIMIT_DATA)
TRAINING: Final = (
    "training.total_steps=1000000000",
    "training.updates_per_report=16",
    "checkpoint.min_seconds=20",
    "logging.run_name=soak",
)
STEPS_OF: Final = {"training": "environment_steps", "rollout": "steps"}
COMPILED: Final = "/jax/core/compile/backend_compile_duration"
PATIENCE: Final = 600.0  # seconds to compile before, and to end after the time is over
HOUR: Final = 3600.0
MIB: Final = 2**20


MEMORY_MIB_PER_HOUR: Final = 8.0
SPEED_PERCENT_PER_HOUR: Final = 5.0  # fall of the steps per second of processor time
NUM_THREADS: Final = 32
WARM_UP: Final = 0.15  # share of the time that is left out at the start


@dataclasses.dataclass(frozen=True)
class Sample:
    """One look at one process."""

    process: str  # "training" or "rollout"
    seconds: float  # since the soak began
    rss: int  # bytes of memory in use
    num_threads: int
    num_files: int  # open file descriptors
    cpu_seconds: float  # of user and system, all threads
    steps: int  # of environments, so far
    num_compilations: int  # so far
    yardstick: float  # processor seconds of a fixed piece of work at this moment: how fast the machine is


def judge(samples: Sequence[Sample]) -> tuple[dict[str, Any], list[str]]:
    """Return figures and problems of one process.

    Compilation before its first step and pictures after its last one do not count.

    Raises:
        ValueError: there are too few samples.
    """
    playing = [sample for sample in samples if 0 < sample.steps < samples[-1].steps]
    start, end = (playing[0].seconds, playing[-1].seconds) if playing else (0.0, 0.0)
    kept = [sample for sample in playing if sample.seconds >= start + WARM_UP * (end - start)]
    # Means of up to 120 bins: a few samples each, so that neighbors that look alike do not narrow the interval.
    edges = np.linspace(0, len(kept) - 1, min(120, len(kept) // 4) + 1).astype(int).tolist()
    if len(edges) < 6:
        raise ValueError(f"{len(kept)} samples after the warm-up are too few for a slope; let the soak last longer")
    bins = [kept[a : b + 1] for a, b in itertools.pairwise(edges)]
    median = lambda part, name: float(np.median([getattr(sample, name) for sample in part]))
    hours, memory = ([median(part, name) / unit for part in bins] for name, unit in (("seconds", HOUR), ("rss", MIB)))
    # In units of the yardstick: others on the machine change how far a second of processor time goes.
    used = [max(part[-1].cpu_seconds - part[0].cpu_seconds, 1e-9) / median(part, "yardstick") for part in bins]
    speed = np.array([(part[-1].steps - part[0].steps) / cpu for part, cpu in zip(bins, used, strict=True)])
    slopes = [stats.theilslopes(values, hours, alpha=0.95) for values in (memory, 100 * speed / speed.mean())]
    figures = {
        "hours": (kept[-1].seconds - kept[0].seconds) / HOUR,
        "steps": kept[-1].steps,
        "memory_mib": [min(memory), max(memory)],
        "memory_mib_per_hour": [float(slopes[0][place]) for place in (0, 2, 3)],
        "speed_percent_per_hour": [float(slopes[1][place]) for place in (0, 2, 3)],
        "compilations": kept[-1].num_compilations - kept[0].num_compilations,
        "threads": max(sample.num_threads for sample in kept),
        "files": max(sample.num_files for sample in kept),
    }
    problems = {
        "memory grows by {memory_mib_per_hour} MiB/h": figures["memory_mib_per_hour"][0] > MEMORY_MIB_PER_HOUR,
        "speed drifts {speed_percent_per_hour} %/h": figures["speed_percent_per_hour"][0] < -SPEED_PERCENT_PER_HOUR,
        "{compilations} compilations after the warm-up": figures["compilations"] > 0,
        "{threads} threads": figures["threads"] > NUM_THREADS,
    }
    third = math.ceil(len(kept) / 3)
    for name in ("num_threads", "num_files"):
        before, after = median(kept[:third], name), median(kept[-third:], name)
        problems[f"{name} grows from {before:g} to {after:g}"] = after > before
    return figures, [text.format(**figures) for text, is_there in problems.items() if is_there]


def work(name: str, folder: Path, cpu: int, num_files: int, arguments: Sequence[str]) -> None:
    """Train or roll out in this process under limits, and write down each compilation."""
    os.sched_setaffinity(0, {cpu})
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MIB[name] * MIB,) * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (num_files, num_files))
    import jax

    def note(event: str, seconds: float, **facts: Any) -> None:
        if event == COMPILED:
            _append(folder / f"{name}_compilations.jsonl", {"name": str(facts.get("fun_name")), "seconds": seconds})

    jax.monitoring.register_event_duration_secs_listener(note)
    if name == "training":
        from jaxarc.cli.main import main as run_command

        run_command(list(arguments))
    else:
        _roll_out(folder / "rollout.jsonl", *arguments)


def _roll_out(progress: Path, seconds: str, dataset: str, side: str) -> None:
    """Call ``jaxarc.parallel.rollout`` again and again, with chunks, recorded steps and counted tasks."""
    import jax

    import jaxarc
    from jaxarc.parallel import RandomPolicy, rollout
    from jaxarc.wrappers import AutoReset, EpisodeStatistics

    rules = jaxarc.JaxArcConfig().with_fields(max_grid_height=int(side), max_grid_width=int(side))
    inner, params = jaxarc.make(dataset, rules, max_episode_steps=100, invalid_action_policy="noop")
    env = EpisodeStatistics(AutoReset(inner))
    policy = RandomPolicy(env.action_space(params))
    states = None
    steps = 0
    end = time.monotonic() + float(seconds)
    call = 0
    while time.monotonic() < end:
        # 302 steps in chunks of 70: the last chunk is shorter, a second program. Each fourth call starts anew.
        states = None if call % 4 == 0 else states
        key = jax.random.key(call)
        result = rollout(
            env, params, policy, key, 128, 302, states=states, chunk_steps=70, record=True, count_tasks=True
        )
        states = result.carry.states
        steps += 128 * 302
        call += 1
        _append(progress, {"steps": steps})


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def last_number(path: Path | None, field: str) -> int:
    """Return a field of the last whole line of JSON in a file; 0 where there is none yet."""
    if path is None or not path.exists():
        return 0
    lines = path.read_bytes().rpartition(b"\n")[0].splitlines()
    return int(json.loads(lines[-1])[field]) if lines else 0


class Soak:
    """Two processes, the files that they write, and the samples taken of them."""

    def __init__(self, folder: Path, seconds: float, cpu: int, num_files: int):
        self.folder = folder
        self.seconds = seconds
        self.limits = (str(folder), str(cpu), str(num_files))
        os.sched_setaffinity(0, {cpu})  # the yardstick is of the same processor

    def start(self, name: str, arguments: Sequence[str]) -> psutil.Popen:
        places = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "PYTHONPATH": places}
        command = [sys.executable, "-m", "campaign.soak", "--work", name, *self.limits, "--", *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            return psutil.Popen(command, stdout=log, stderr=log, env=environment)

    def run(self, every: float) -> tuple[list[Sample], list[str]]:
        """Return the samples, and what went wrong with how the processes ended and whether the run resumes."""
        train = ["train", *TRAINING, f"training.max_seconds={self.seconds}", f"logging.run_root={self.folder / 'runs'}"]
        processes = {
            "training": self.start("training", train),
            "rollout": self.start("rollout", [str(self.seconds), "arc-agi-1/training", "30"]),
        }
        samples: list[Sample] = []
        started = time.monotonic()
        rounds = range(int((self.seconds + 2 * PATIENCE) / every))
        for _ in track(rounds, "soaking (ends earlier when both have ended)"):
            running = [name for name, process in processes.items() if process.poll() is None]
            if not running:
                break
            yardstick = measure_yardstick()
            for name in running:
                samples += self.look(name, processes[name], time.monotonic() - started, yardstick)
            time.sleep(every)
        problems = []
        for name, process in processes.items():
            if process.poll() is None:  # psutil refuses to kill what has ended
                process.kill()
            if (code := process.wait()) != 0:
                problems.append(f"{name} ended with exit code {code}; its output is {self.folder / name}.log")
        return samples, problems or self.resume()

    def look(self, name: str, process: psutil.Process, seconds: float, yardstick: float) -> list[Sample]:
        """Sample a process, if it still runs."""
        compilations = self.folder / f"{name}_compilations.jsonl"
        count = compilations.read_bytes().count(b"\n") if compilations.exists() else 0
        progress = (
            next(self.folder.glob("runs/*/metrics.jsonl"), None)
            if name == "training"
            else self.folder / "rollout.jsonl"
        )
        steps = last_number(progress, STEPS_OF[name])
        try:
            with process.oneshot():
                used = process.cpu_times()
                facts = (process.memory_info().rss, process.num_threads(), process.num_fds(), used.user + used.system)
        except psutil.Error:
            return []
        return [Sample(name, seconds, *facts, steps, count, yardstick)]

    def resume(self) -> list[str]:
        """Let the run go on for a moment; return a problem if it does not."""
        (run,) = (self.folder / "runs").iterdir()
        before = last_number(run / "metrics.jsonl", "environment_steps")
        code = self.start(
            "training", ["train", "--resume", str(run), f"training.max_seconds={self.seconds + 5}"]
        ).wait()
        after = last_number(run / "metrics.jsonl", "environment_steps")
        return (
            [] if code == 0 and after > before else [f"the resumed run ended with {code} after {after - before} steps"]
        )


def measure_yardstick() -> float:
    """Return the processor seconds of a fixed piece of work, about 10 ms."""
    numbers = np.arange(150_000, dtype=np.uint32) * np.uint32(2_654_435_761)
    begun = time.process_time()
    np.sort(numbers)
    return time.process_time() - begun


def main() -> int:
    """Soak, judge, and return the exit code."""
    if sys.argv[1:2] == ["--work"]:
        name, folder, cpu, num_files, _, *command = sys.argv[2:]
        work(name, Path(folder), int(cpu), int(num_files), command)
        return 0
    parser, began = parser_of(__doc__), time.monotonic()
    parser.add_argument("--minutes", type=float, default=120.0, help="of playing and learning (default 120)")
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="between two samples (default 5)")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)), help="the one that both run on")
    parser.add_argument("--files", type=int, default=128, help="open files that a process may have (default 128)")
    options, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="jaxarc-soak-"))
    samples, problems = Soak(folder, options.minutes * 60, options.cpu, options.files).run(options.every)
    summary: dict[str, Any] = {}
    for name in MEMORY_MIB:
        try:
            summary[name], found = judge([sample for sample in samples if sample.process == name])
        except ValueError as error:
            found = [str(error)]
        problems += [f"{name}: {problem}" for problem in found]
    return finish(options, began, summary, problems)


if __name__ == "__main__":
    sys.exit(main())
