"""Episodes of a saved agent on the pairs that it was measured on, as it was measured: what replay and watch show."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxarc.agents.experiment import Experiment
from jaxarc.agents.own_parts import rewarded
from jaxarc.agents.saved_agent import EditAgent, policy_of
from jaxarc.agents.updates import make_params
from jaxarc.config.build import refused
from jaxarc.datasets import load_tasks
from jaxarc.datasets.training_pairs import TrainingPairs, load_pairs
from jaxarc.evaluation.episodes import EpisodeBatch, EpisodeInfo, EpisodeTrajectory
from jaxarc.evaluation.solve_rate import without_augmentation
from jaxarc.render.actions import describe_operation
from jaxarc.runs.kind import SavedRun
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.tasks.raw_task import TaskFormatError, crop_padding


@dataclass(frozen=True)
class ShownAgent:
    """The agents of a saved run, and the pairs that they were measured on."""

    run: SavedRun

    def replayed(self, seed: int | None) -> EpisodeBatch:
        """Return the episodes of a seed's agent, or of the first, on each pair; what it learned from comes first."""
        experiment = self.run.experiment
        pairs = measured_pairs(experiment)
        params = without_augmentation(make_params(pairs.eval, experiment.environment))
        player = f"{experiment.logging.run_name}, seed {experiment.training.seed if seed is None else seed}"
        infos = list(_infos_of(pairs, experiment, player))
        env = rewarded(experiment.agent.reward, params)
        return EpisodeBatch(EditAgent(*policy_of(self.run, seed)), params, infos, range(len(infos)), env=env)

    def watched(self, seed: int | None, count: int) -> list[dict[str, Any]]:
        """Play some pairs that are unseen in training, at even distances, and return the episodes for a page."""
        pairs = measured_pairs(self.run.experiment)
        places = np.linspace(pairs.num_train, len(pairs.eval) - 1, count).round().astype(int)
        batch = self.replayed(seed).only(np.unique(places).tolist())
        return [episode_for_page(episode, pairs.eval.task_ids[episode.task_index]) for _, episode in batch.play()]


@functools.lru_cache(maxsize=1)  # watch asks again for each checkpoint
def measured_pairs(experiment: Experiment) -> TrainingPairs:
    """Load the pairs that agents learn from and are evaluated on.

    Raises:
        ConfigValidationError: no task is small enough, or none is unseen.
    """
    rules = experiment.environment
    hides = experiment.answer.is_hidden
    with refused("jaxarc train: ", besides=(TaskFormatError,)):
        return load_pairs(experiment.task, rules.grid_shape, hides_answers=hides, augmentation=rules.augmentation)


def episode_for_page(trajectory: EpisodeTrajectory, task_id: str) -> dict[str, Any]:
    """Return what a page draws of an episode, as JSON: grids without padding, rewards that are finite or None."""
    return {
        "task": task_id,
        "solved": trajectory.is_solved,
        "target": crop_padding(trajectory.target).tolist(),
        "grids": [crop_padding(grid).tolist() for grid in trajectory.grids],
        "actions": [describe_operation(action[0]) for action in trajectory.actions],
        "rewards": [_rounded(reward) for reward in trajectory.rewards],
        "similarities": [round(float(similarity), 4) for similarity in trajectory.similarities],
    }


def _rounded(number: float) -> float | None:
    """Round for JSON; None for infinite numbers, which weights of rewards may add up to and JSON does not know."""
    return round(float(number), 4) if math.isfinite(number) else None


def _infos_of(pairs: TrainingPairs, experiment: Experiment, player: str) -> Iterator[EpisodeInfo]:
    """Name measured pairs by the tasks that they come from, with the demonstrations of these."""
    hides = experiment.answer.is_hidden
    sources = {"train": experiment.task.train_dataset, "evaluation": experiment.task.evaluation_dataset}
    origins = {stage: load_tasks(name) for stage, name in sources.items() if not name.startswith(PREFIX)}
    for place, task in enumerate(pairs.eval):
        is_learned = place < pairs.num_train
        stage, _, rest = task.task_id.partition("/")
        name, _, number = rest.rpartition("/")
        if stage not in origins:
            yield EpisodeInfo(rest, task.train[1:], "", "learned" if is_learned else "unseen", player, is_learned)
            continue
        origin = origins[stage].raw_task(name)
        index = int(number)
        is_test = hides or index >= len(origin.train)
        label = f"test {index if hides else index - len(origin.train)}" if is_test else f"train {index}"
        learned = ", learned" if is_learned else ""
        yield EpisodeInfo(name, origin.train, origin.title, label + learned, player, is_learned)
