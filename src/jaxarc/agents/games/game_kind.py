"""The kind of runs whose agents learn a game; see :class:`jaxarc.runs.kind.Kind`."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jaxarc.agents.editing_kind import before_and_after, present_agents, session, without_place
from jaxarc.agents.experiment import Experiment
from jaxarc.agents.games.game_agent import saved_game_agent
from jaxarc.agents.games.levels import RecordedLevel, load_levels, record_levels
from jaxarc.agents.saved_agent import policy_of
from jaxarc.agents.train import AgentTraining
from jaxarc.games import NAMES, make
from jaxarc.games.frames import OwnFrames
from jaxarc.games.recordings import GameRecording, read_recording
from jaxarc.runs import RunFolder, TrainResult
from jaxarc.runs.kind import Bar, SavedRun
from jaxarc.runs.presentation import Plot, Presentation, Table, mean_number
from jaxarc.tasks.raw_task import crop_padding

__all__ = ["load", "prepare", "presentation", "results", "saved", "session"]

_PLOTS: Final = (
    Plot(
        "levels completed",
        {
            "the game's own, each once (greedy)": "train_solve_rate",
            "random and unseen, each once (greedy)": "evaluation_solve_rate",
            "episodes learned from (sampled actions)": "episode_solve_rate",
        },
        is_share=True,
    ),
    Plot("mean return", {"episodes learned from": "mean_return"}),
    Plot("official score, 0 .. 100", {"the game's own levels (greedy)": "game_score"}),
)


def load(experiment: Experiment) -> AgentTraining:
    """Load the levels that agents learn from and are evaluated on."""
    return AgentTraining(without_place(experiment), load_levels(experiment.game))


def prepare(training: AgentTraining, bar: Bar) -> None:
    """There is nothing that the loop would wait for."""


def presentation(training: AgentTraining, folder: RunFolder) -> Presentation:
    """Say what is learned from and measured, and how that goes."""
    game, levels = training.experiment.game, training.pairs
    others = f" and {game.num_sets * levels.num_train:,} random ones" if game.num_sets else ""
    material = f"the {levels.num_train} levels of the game {game.name}{others}"
    announcement = [f"Learning from {material}, a level an episode."]
    if levels.num_evaluation:
        announcement.append(f"Measuring also on {levels.num_evaluation:,} random levels, unseen.")
    own = "" if game.name in NAMES else " --game file.py:NAME"
    advice = (
        f"How each level went: {folder.measured}",
        f"To see it play the game: jaxarc replay {folder.path}{own}",
    )
    return present_agents(training.experiment, announcement, material, _PLOTS, advice)


def results(training: AgentTraining, result: TrainResult, folder: RunFolder) -> Iterator[str | Table]:
    """Yield which levels the agents completed before and after."""
    levels = training.pairs
    rates = before_and_after(result, "train_solve_rate")
    rows = [("completed, the game's own", str(levels.num_train), *rates)]
    if levels.num_evaluation:
        rates = before_and_after(result, "evaluation_solve_rate")
        rows.append(("completed, random and unseen", str(levels.num_evaluation), *rates))
    rows.append(("official score of the game", "", *before_and_after(result, "game_score", mean_number)))
    yield Table((training.experiment.game.name, "levels", "before", "after"), rows)
    yield "Every level was played once by the greedy policy."


@dataclass(frozen=True)
class SavedGame:
    """The agents of a saved run that learned a game."""

    run: SavedRun

    def replayed(self, seed: int | None) -> GameRecording:
        """Let the agent of a seed, or of the first, play its game from the start, and say how well it did."""
        name = self.run.experiment.game.name
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "played.jsonl"
            played = saved_game_agent(self.run, seed).play(OwnFrames(*make(name)), recording=file)
            recording = read_recording(file)
        about = f"official score {played.score:.1f}, actions {' '.join(map(str, played.actions))}"
        return recording._replace(about=about)

    def watched(self, seed: int | None, count: int) -> list[dict[str, Any]]:
        """Play the first levels of the game, each from its start, and return the episodes for a page."""
        levels = load_levels(self.run.experiment.game.replace(num_sets=0)).eval
        return [_level_for_page(level) for level in record_levels(policy_of(self.run, seed)[0], levels)[:count]]


saved = SavedGame


def _level_for_page(level: RecordedLevel) -> dict[str, Any]:
    return {
        "task": level.task_id,
        "solved": level.completed,
        "target": None,
        "grids": [crop_padding(cells).tolist() for cells in level.cells],
        "actions": level.actions,
    }
