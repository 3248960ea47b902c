"""What is killed while it plays or learns: training, evaluation, replay pages, a person's game."""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from killable_training import arrays_of, command
from small_run import reports_of, small_run

from campaign.faults.killed_files import contents
from campaign.faults.victim import Teller
from jaxarc.cli import replay_sources
from jaxarc.cli.main import main
from jaxarc.datasets import load_tasks
from jaxarc.evaluation import read_submission
from jaxarc.experts.traces import PairId
from jaxarc.experts.traces.trace_file import read_trace_file
from jaxarc.play.play_site import Game
from jaxarc.profiling import enable_compilation_cache
from jaxarc.training import RunFolder, read_metrics
from jaxarc.training.checkpoint import check_checkpoint

UPDATES: Final = 24
_GAMES: Final = 3
_FILL: Final = ((1, 0, 0, 0, 0), (2, 0, 1, 0, 1), (3, 1, 0, 1, 1), (4, 1, 1, 1, 1), (33, 0, 0, 1, 1), (24, 0, 0, 1, 1))


def training_overrides(tasks: Path) -> list[str]:
    """Return the choices of a run that learns in a second, and saves whenever it can."""
    choices = ("curriculum=replay", "training.num_seeds=2", "training.reports_per_evaluation=2")
    return small_run(tasks, UPDATES, *choices)


@dataclass(frozen=True)
class Training:
    """``jaxarc train``, resumed until its end."""

    tasks: Path
    compiled: Path  # what :func:`killable_training.prepare` wrote
    name: str = "training"

    def run(self, folder: Path, tell: Teller) -> None:
        os.environ["XDG_CACHE_HOME"] = str(self.compiled.parent)
        begun = [run.parent for run in (folder / "runs").glob("*/config.json")]
        if begun:
            arguments = ["--resume", str(begun[0])]
        else:
            arguments = [*training_overrides(self.tasks), f"logging.run_root={folder / 'runs'}"]
        command(self.compiled, Path(os.devnull), ["train", *arguments, "checkpoint.min_seconds=0"])

    def check(self, folder: Path, told: list[str]) -> None:
        for config in (folder / "runs").glob("*/config.json"):
            run = RunFolder(config.parent)
            json.loads(config.read_bytes())
            for update in run.checkpoints.updates():
                record = check_checkpoint(run.checkpoints.at(update))
                assert len(read_metrics(run.metrics)) >= record.num_lines, f"checkpoint {update} has lost reports"

    def result(self, folder: Path) -> dict[str, object]:
        (config,) = (folder / "runs").glob("*/config.json")
        run = RunFolder(config.parent)
        reports = reports_of(run)
        arrays = {
            name: [str(kind), shape, data.hex()]
            for name, (kind, shape, data) in arrays_of(run.checkpoints.at(UPDATES)).items()
        }
        files = sorted(entry.name for entry in run.path.iterdir())
        tables = {file.name: file.read_text() for file in (run.tasks, run.measured)}
        left = [entry.name for entry in run.checkpoints.path.glob(".*")]
        return {"reports": reports, "arrays": arrays, "files": files, "left": left, **tables}


@dataclass(frozen=True)
class Evaluation:
    """``jaxarc evaluate``, which writes a submission, a table, a picture and a summary."""

    tasks: Path
    compiled: Path | None = None  # folder of compiled programs
    seed: int = 0
    name: str = "evaluate"

    def run(self, folder: Path, tell: Teller) -> None:
        if self.compiled is not None:
            enable_compilation_cache(self.compiled)
        small = ("--canvas", "3", "--max-steps", "4", "--batch-size", "8")
        main(
            [
                "evaluate",
                str(self.tasks),
                "--agent",
                "random",
                "--seed",
                str(self.seed),
                "--out",
                str(folder / "out"),
                *small,
            ]
        )

    def check(self, folder: Path, told: list[str]) -> None:
        out = folder / "out"
        if (out / "submission.json").exists():
            read_submission(out / "submission.json")
        if (out / "summary.json").exists():
            json.loads((out / "summary.json").read_bytes())
            missing = {"submission.json", "tasks.jsonl", "solve_map.png"} - set(contents(out))
            assert not missing, f"there is a summary, and no {missing}"

    def result(self, folder: Path) -> dict[str, object]:
        return contents(folder)


@dataclass(frozen=True)
class Replay:
    """``jaxarc replay``, which writes one page."""

    tasks: Path
    traces: Path
    compiled: Path | None = None
    name: str = "replay"

    def run(self, folder: Path, tell: Teller) -> None:
        if self.compiled is not None:
            enable_compilation_cache(self.compiled)
        replay_sources._SIDE = 3  # few cells compile faster
        main(["replay", str(self.traces), "--dataset", str(self.tasks), "--out", str(folder / "replay.html")])

    def check(self, folder: Path, told: list[str]) -> None:
        with contextlib.suppress(FileNotFoundError):
            page = (folder / "replay.html").read_text()
            assert page.rstrip().endswith("</html>"), "half a page was written"

    def result(self, folder: Path) -> dict[str, object]:
        return contents(folder)


@dataclass(frozen=True)
class Play:
    """A person's game, saved after every action."""

    tasks: Path
    compiled: Path | None = None
    name: str = "play"

    def run(self, folder: Path, tell: Teller) -> None:
        if self.compiled is not None:
            enable_compilation_cache(self.compiled)
        tasks = load_tasks(str(self.tasks))
        game = Game(tasks, "tasks", PairId(tasks.task_ids[0], "train", 0), "bbox", folder / "plays")
        for _ in range(_GAMES):
            for number, action in enumerate(_FILL, start=1):
                game.episode.act(action)
                board = game.episode.board()
                assert not board["file_problem"], board["file_problem"]
                tell(f"{number} {board['file']}")
            game.go("next")

    def check(self, folder: Path, told: list[str]) -> None:
        for line in told:
            number, file = line.split(" ", 1)
            (trace,) = read_trace_file(file)
            assert len(trace.actions) >= int(number), f"{file} has lost actions"
            assert trace.actions == _FILL[: len(trace.actions)]

    def result(self, folder: Path) -> dict[str, object]:
        games = [_is_whole_game(file) for file in (folder / "plays").glob("*.jsonl")]
        return {"has all games": sum(games) >= _GAMES}  # those of killed processes stay beside them


def _is_whole_game(file: Path) -> bool:
    (trace,) = read_trace_file(file)
    return trace.actions == _FILL
