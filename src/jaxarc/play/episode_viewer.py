"""Plays some evaluation pairs of a run with its newest checkpoint, for the page that watches the run."""

import math
import threading
import time
import warnings
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.agents import EditAgent
from jaxarc.agents.experiment import Experiment
from jaxarc.agents.game_levels import RecordedLevel, load_levels, record_levels
from jaxarc.agents.own_parts import rewarded
from jaxarc.agents.saved_agent import SavedRun
from jaxarc.config import ConfigValidationError
from jaxarc.datasets import TaskSet
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.envs.params import EnvParams
from jaxarc.evaluation import AgentMismatchError, EpisodeSpec
from jaxarc.evaluation.episodes import EpisodeTrajectory, record_episodes
from jaxarc.evaluation.solve_rate import without_augmentation
from jaxarc.render.actions import describe_operation
from jaxarc.runs import CheckpointError, RunFolder
from jaxarc.tasks import uniform_weights
from jaxarc.tasks.raw_task import crop_padding

_MOST_KEPT: Final = 200  # results of checkpoints
_UNPLAYABLE: Final = (
    *(CheckpointError, ConfigValidationError, AgentMismatchError, OSError, ValueError, TypeError),
    KeyError,  # an unknown data set, such as a folder that was named from elsewhere
    jax.errors.JaxRuntimeError,
)


class _Shown(NamedTuple):
    """The last episodes, and the result of each checkpoint."""

    number: int  # of checkpoints played so far
    note: str
    episodes: list[dict[str, Any]]
    history: list[dict[str, Any]]  # update, and which pairs the agent solved


class EpisodeViewer:
    """Plays each new checkpoint in a thread of its own; only reads the run folder."""

    def __init__(self, folder: RunFolder, num_pairs: int, pause_s: float, seed: int | None = None):
        """Prepare; the thread loads the agent.

        Args:
            folder: of the run.
            num_pairs: number of pairs to play, evenly spread over the evaluation pairs.
            pause_s: seconds between two searches for a newer checkpoint.
            seed: of the agent; None for the first seed of the run.
        """
        self._folder = folder
        self._num_pairs = num_pairs
        self._pause_s = pause_s
        self._seed = seed
        self._seen = -1  # update of the checkpoint that was played last
        self._shown = _Shown(0, "waiting for the first checkpoint", [], [])
        self._pairs: TaskSet | None = None

    def start(self) -> None:
        """Start the thread, which ends with the process."""
        threading.Thread(target=self._keep_playing, name="showing", daemon=True).start()

    def latest(self, number: int) -> dict[str, Any] | None:
        """Return the last episodes as JSON; None if they have this number, so the page has them."""
        shown = self._shown
        return None if shown.number == number else shown._asdict()

    def _keep_playing(self) -> None:
        while True:
            updates = self._folder.checkpoints.updates()
            if updates and updates[-1] != self._seen:
                self._seen = updates[-1]
                self._play_newest(updates[-1])
            time.sleep(self._pause_s)

    def _play_newest(self, update: int) -> None:
        """Play the newest checkpoint; on an error note the reason and wait for the next one."""
        before = self._shown
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                saved = SavedRun.open(self._folder, "last")
                episodes = self._episodes(saved)
            note = "; ".join(str(one.message) for one in warned)
        except _UNPLAYABLE as error:
            reason = f"the agent of update {update} cannot be shown: {error}"
            self._shown = before._replace(number=before.number + 1, note=reason)
            return
        played = saved.checkpoint.record.update  # newer than ``update`` where the run has saved another meanwhile
        self._seen = max(self._seen, played)
        newest = {"update": played, "solved": [episode["solved"] for episode in episodes]}
        self._shown = _Shown(before.number + 1, note, episodes, [*before.history, newest][-_MOST_KEPT:])

    def _episodes(self, saved: SavedRun) -> list[dict[str, Any]]:
        experiment = saved.experiment
        policy, predictor = saved.policy(self._seed)
        if experiment.game.name:
            levels = load_levels(experiment.game.replace(num_sets=0)).eval
            return [level_for_page(level) for level in record_levels(policy, levels)[: self._num_pairs]]
        agent = EditAgent(policy, predictor)
        if self._pairs is None:
            self._pairs = _some_pairs(experiment, self._num_pairs)
        buffer = self._pairs.buffer(experiment.environment.grid_shape)
        params = EnvParams(buffer, uniform_weights(len(self._pairs)), experiment.environment)
        first = jnp.zeros(len(self._pairs), jnp.int32)
        specs = EpisodeSpec(jnp.arange(len(self._pairs), dtype=jnp.int32), first, first)
        params = without_augmentation(params)
        env = rewarded(experiment.agent.reward, params)
        trajectories = record_episodes(agent, params, specs, jax.random.key(0), env=env)
        return [
            episode_for_page(trajectory, self._pairs.task_ids[trajectory.task_index]) for trajectory in trajectories
        ]


def _some_pairs(experiment: Experiment, count: int) -> TaskSet:
    """Choose pairs at even distances among those unseen in training."""
    hides = experiment.answer.is_hidden
    rules = experiment.environment
    pairs = load_pairs(experiment.task, rules.grid_shape, hides_answers=hides, augmentation=rules.augmentation)
    unseen = pairs.eval.tasks[pairs.num_train :]
    indices = np.unique(np.linspace(0, len(unseen) - 1, count).round().astype(int)).tolist()
    return TaskSet("shown pairs", tuple(unseen[index] for index in indices))


def episode_for_page(trajectory: EpisodeTrajectory, task_id: str) -> dict[str, Any]:
    """Return what the page draws of an episode, as JSON: grids without padding, rewards that are finite or None."""
    names = [describe_operation(action[0]) for action in trajectory.actions]
    return {
        "task": task_id,
        "solved": trajectory.is_solved,
        "target": crop_padding(trajectory.target).tolist(),
        "grids": [crop_padding(grid).tolist() for grid in trajectory.grids],
        "actions": names,
        "rewards": [_rounded(reward) for reward in trajectory.rewards],
        "similarities": [round(float(similarity), 4) for similarity in trajectory.similarities],
    }


def level_for_page(level: RecordedLevel) -> dict[str, Any]:
    """Return what the page draws of a level that was played, as JSON."""
    return {
        "task": level.task_id,
        "solved": level.completed,
        "target": None,
        "grids": [crop_padding(cells).tolist() for cells in level.cells],
        "actions": level.actions,
    }


def _rounded(number: float) -> float | None:
    """Round for JSON; None for infinite numbers, which weights of rewards may add up to and JSON does not know."""
    return round(float(number), 4) if math.isfinite(number) else None
