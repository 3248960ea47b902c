"""Worker processes that measure in turn."""

import json
import select
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Samples = dict[str, list[float]]
"""Steps per second by entrant, one number a round."""


class WorkerError(RuntimeError):
    """A worker process ended or stayed silent."""


@dataclass(frozen=True)
class Entrant:
    """One package in one mode."""

    name: str  # unique in its contest
    worker: str
    mode: str


@dataclass(frozen=True)
class Contest:
    """One question that all entrants answer in turn; the first one is what the others are compared with."""

    contest_id: str
    what: str
    request: Mapping[str, Any]
    entrants: tuple[Entrant, ...]


class Worker:
    """A process that measures one package; it starts when it is first asked."""

    def __init__(self, command: Sequence[str], folder: Path, time_limit: float = 600.0):
        self.command, self.folder, self.time_limit = list(command), folder, time_limit
        self.description: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: Mapping[str, Any]) -> float:
        """Send a request and wait for the number.

        Raises:
            WorkerError: the process ended or took longer than the time limit; its own words are on stderr.
        """
        process = self._running()
        self._send(process, request)
        return float(self._receive(process)["value"])

    def close(self) -> None:
        """Let the process end."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, text=True, bufsize=1, cwd=self.folder
            )
            self.description = self._receive(self._process)
        return self._process

    def _send(self, process: subprocess.Popen[str], request: Mapping[str, Any]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(dict(request)) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self._give_up(process, "ended")

    def _receive(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], self.time_limit)[0]:
            self._give_up(process, f"was silent for {self.time_limit:.0f} s")
        line = process.stdout.readline()
        if not line:
            self._give_up(process, "ended")
        return json.loads(line)

    def _give_up(self, process: subprocess.Popen[str], why: str) -> None:
        process.kill()
        process.communicate()
        self._process = None
        name = Path(self.command[-1]).name
        raise WorkerError(f"{name} {why} (exit code {process.returncode}); what it said stands above")


def alternate(contest: Contest, workers: Mapping[str, Worker], rounds: int, on_turn: Callable[[str], None]) -> Samples:
    """Let the entrants measure in turn, each once a round, and each round in the other direction.

    Args:
        contest: who measures what.
        workers: by name.
        rounds: samples of each entrant.
        on_turn: called with the name whose turn it is.

    Raises:
        WorkerError: see :meth:`Worker.ask`.
    """
    samples: Samples = {entrant.name: [] for entrant in contest.entrants}
    for turn in range(rounds):
        for entrant in contest.entrants[:: -1 if turn % 2 else 1]:
            on_turn(entrant.name)
            samples[entrant.name].append(workers[entrant.worker].ask({**contest.request, "mode": entrant.mode}))
    for name in {entrant.worker for entrant in contest.entrants}:
        workers[name].ask({"kind": "forget"})
    return samples


def report(contest: Contest, samples: Samples) -> dict[str, Any]:
    """Sum up a contest in plain types: medians, spread, and how many times faster the first entrant is.

    A ratio compares the samples of one round, which stand next to each other in time; its median is over the rounds.
    """
    first = contest.entrants[0]
    entrants = []
    for entrant in contest.entrants:
        ratios = [ours / theirs for ours, theirs in zip(samples[first.name], samples[entrant.name], strict=True)]
        entrants.append(
            {
                "name": entrant.name,
                "worker": entrant.worker,
                "mode": entrant.mode,
                **_spread(samples[entrant.name]),
                "first_is_faster_by": None if entrant is first else _spread(ratios),
            }
        )
    return {
        "id": contest.contest_id,
        "what": contest.what,
        "unit": "1/s",
        "request": dict(contest.request),
        "entrants": entrants,
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    digits = [float(f"{value:.6g}") for value in values]
    return {"median": statistics.median(digits), "min": min(digits), "max": max(digits), "samples": digits}
