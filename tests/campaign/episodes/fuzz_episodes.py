"""Whole random episodes through the public functions against the NumPy reference, under every pair of option values.

``make fuzz`` plays 50 million steps. One program is one combination of options, compiled once and played with many
tasks; `episode_options` chooses the combinations. Every view of the state, observation, reward, ending and report are
compared after every step, the whole action history after each where it is short and now and then where it is long.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from campaign.episodes.environments import step_cost
from campaign.episodes.episode_options import OPTIONS, Combination, Schedule, Setting, forbids
from campaign.episodes.episode_play import Match, StepCounts
from campaign.episodes.referee import DisagreementError
from campaign.episodes.reproduction import report

STEPS = 50_000_000
CALLS_A_PROGRAM = 1_000  # at most; an environment of a batch costs least where there are many
SECONDS_A_PROGRAM = 30  # about
PROGRAMS_A_PROCESS = 12  # each compiled program maps memory; a fresh process has none


@dataclass
class Campaign:
    """What was played so far."""

    seed: int
    programs: int = 0
    tally: StepCounts = field(default_factory=StepCounts)
    findings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def summary(self, coverage: str) -> dict[str, Any]:
        """Returns counts, duration, seed and versions."""
        return {
            **asdict(self.tally),
            "programs": self.programs,
            "coverage": coverage,
            "mismatches": len(self.findings),
            "findings": self.findings,
            "seconds": round(time.monotonic() - self.started),
            "seed": self.seed,
            "versions": {"python": platform.python_version(), "jax": jax.__version__, "numpy": np.__version__},
        }


def play_program(combination: Combination, seed: int, steps: int) -> tuple[StepCounts, str]:
    """Plays one combination; returns what was compared, and a report on the first mismatch or nothing."""
    play = Match(Setting(combination), seed)
    try:
        affordable = int(SECONDS_A_PROGRAM * 1e6 / step_cost(play.setting))
        play.run(min(steps, affordable, CALLS_A_PROGRAM * play.environments.num_envs))
    except DisagreementError as disagreement:
        return play.tally, report(play, disagreement)
    return play.tally, ""


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign; returns 1 when something was found."""
    options = _parser().parse_args(arguments)
    schedule, campaign = Schedule(OPTIONS, forbids, options.seed), Campaign(options.seed)
    console = Console(stderr=True)
    try:
        if options.only is not None:
            combination = [schedule.draw({"batch": "many"}) for _ in range(options.only + 1)][-1]
            console.print(combination)
            _take(campaign, options.only, *play_program(combination, _seed(options, options.only), options.steps))
        else:
            _play_all(options, schedule, campaign, console)
    except KeyboardInterrupt:
        console.print("interrupted; this is what was played until then")
    summary = campaign.summary(schedule.coverage())
    _write(options.json, summary)
    for finding in campaign.findings:
        print(finding)
    _print_summary(summary)
    return 1 if campaign.findings else 0


def _play_all(options: argparse.Namespace, schedule: Schedule, campaign: Campaign, console: Console) -> None:
    """Plays program after program, several at once, until all steps are done."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with (
        Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress,
        ProcessPoolExecutor(options.processes, get_context("spawn"), max_tasks_per_child=PROGRAMS_A_PROCESS) as pool,
    ):
        bar = progress.add_task("steps", total=options.steps)
        running: dict[Future, int] = {}
        drawn = 0
        try:
            while campaign.tally.steps < options.steps and len(campaign.findings) < options.most_findings:
                while len(running) < options.processes:
                    left = options.steps - campaign.tally.steps
                    combination = schedule.draw(at_last={"batch": "many"})
                    future = pool.submit(play_program, combination, _seed(options, drawn), left)
                    running[future], drawn = drawn, drawn + 1
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    program = running.pop(future)
                    if error := future.exception():
                        raise RuntimeError(f"program {program} of seed {options.seed} broke off") from error
                    _take(campaign, program, *future.result())
                    progress.update(bar, completed=campaign.tally.steps)
                    _write(options.json, campaign.summary(schedule.coverage()))
                    if not console.is_terminal and campaign.programs % 10 == 0:
                        console.print(f"{campaign.programs} programs, {campaign.tally.steps:,} steps", highlight=False)
        finally:
            pool.shutdown(cancel_futures=True)


def _take(campaign: Campaign, program: int, tally: StepCounts, finding: str) -> None:
    campaign.programs += 1
    campaign.tally.add(tally)
    if finding:
        again = f'make fuzz ARGS="--seed {campaign.seed} --only {program}"'
        campaign.findings.append(f"Program {program} of seed {campaign.seed}, again with: {again}\n{finding}")


def _seed(options: argparse.Namespace, program: int) -> int:
    return options.seed * 1_000_003 + program


def _write(path: Path | None, summary: dict[str, Any]) -> None:
    """Writes the summary whole, so that a run that is stopped leaves the last one."""
    if path is None:
        return
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(summary, indent=1), encoding="utf-8")
    os.replace(unfinished, path)


def _print_summary(summary: dict[str, Any]) -> None:
    for name, value in summary.items():
        if name != "findings":
            print(f"{name.replace('_', ' ')}: {f'{value:,}' if isinstance(value, int) else value}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of running episodes (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (%(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="programs that play at once (%(default)s)")
    parser.add_argument("--only", type=int, metavar="PROGRAM", help="play this program of the seed alone")
    parser.add_argument("--most-findings", type=int, default=3, help="mismatches after which it stops (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the summary goes, also while it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
