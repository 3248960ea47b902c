"""The kind of runs whose agents learn to edit grids; see :class:`jaxarc.runs.kind.Kind`."""

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np

from jaxarc.agents.canvases import TasksOnCanvas
from jaxarc.agents.experiment import Experiment, Report
from jaxarc.agents.own_parts import rewarded
from jaxarc.agents.predictor import SearchedAnswers
from jaxarc.agents.saved_agent import EditAgent, policy_of
from jaxarc.agents.train import AgentTraining, training_mesh
from jaxarc.agents.updates import make_params
from jaxarc.config.build import refused
from jaxarc.datasets import load_tasks
from jaxarc.datasets.training_pairs import TrainingPairs, left_out, load_pairs, pairs_by_rule
from jaxarc.evaluation.episodes import EpisodeBatch, EpisodeInfo, EpisodeTrajectory
from jaxarc.parallel import distributed_session, use_host_cores
from jaxarc.render.actions import describe_operation
from jaxarc.runs import RunFolder, TrainingDivergedError, TrainResult
from jaxarc.runs.kind import Bar, SavedRun
from jaxarc.runs.presentation import Part, Plot, Presentation, Table, last_reports, mean_share, range_share
from jaxarc.tasks.pair_pool import PairPool
from jaxarc.tasks.procedural import ProceduralTasks
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.tasks.raw_task import TaskFormatError, crop_padding

_PLOTS: Final = (
    Plot(
        "solved",
        {
            "training pairs, each once (greedy)": "train_solve_rate",
            "evaluation pairs, each once (greedy)": "evaluation_solve_rate",
            "episodes learned from (sampled actions)": "episode_solve_rate",
        },
        is_share=True,
    ),
    Plot("mean return", {"episodes learned from": "mean_return"}),
)


@contextmanager
def session(experiment: Experiment) -> Iterator[None]:
    """Make the devices that agents learn on, a core each on a CPU, and be one of their processes."""
    parallel = experiment.parallel
    named = f"jaxarc train: parallel.num_devices={parallel.num_devices}: "
    if parallel.num_devices != 1:
        with refused(named, (RuntimeError,)):
            use_host_cores(parallel.num_devices // (parallel.num_processes or 1) or None)
    with distributed_session(parallel, agreed=(TrainingDivergedError,)):
        with refused(named):
            training_mesh(experiment)
        if not experiment.training.compilation_cache:
            jax.config.update("jax_enable_compilation_cache", False)
        yield


def load(experiment: Experiment) -> AgentTraining:
    """Load the pairs that agents learn from and are evaluated on."""
    return AgentTraining(without_place(experiment), measured_pairs(experiment))


@functools.lru_cache(maxsize=1)  # watch asks again for each checkpoint
def measured_pairs(experiment: Experiment) -> TrainingPairs:
    """Load the pairs that agents learn from and are evaluated on."""
    rules = experiment.environment
    hides = experiment.answer.is_hidden
    with refused("jaxarc train: ", besides=(TaskFormatError,)):
        return load_pairs(experiment.task, rules.grid_shape, hides_answers=hides, augmentation=rules.augmentation)


def prepare(training: AgentTraining, bar: Bar) -> None:
    """Search the answers that evaluations will ask for, if they are searched.

    Of each evaluation task the first pair is played and the others are shown.
    """
    config = training.experiment.answer
    if config.source != "searched":
        return
    from jaxarc.search import Question

    questions = [Question(task.task_id, 0, task.train[1:], task.train[0][0]) for task in training.pairs.eval]
    with bar("searched answers") as show:
        SearchedAnswers(config.search_seconds, config.search_processes).answers(questions, show)


def presentation(training: AgentTraining, folder: RunFolder) -> Presentation:
    """Say what is learned from and measured, and how that goes."""
    experiment, pairs = training.experiment, training.pairs
    answer = _answer(experiment)
    return present_agents(
        experiment,
        announcement=_announcement(experiment, pairs, training.learned),
        title=f"{_material(experiment, pairs)}, {answer}",
        plots=_PLOTS,
        advice=(f"How each task went: {folder.tasks}", f"To see every episode: jaxarc replay {folder.path}"),
    )


def results(training: AgentTraining, result: TrainResult, folder: RunFolder) -> Iterator[str | Table]:
    """Yield what the agents solved before and after."""
    experiment, pairs, played = training.experiment, training.pairs, training.played
    rows = []
    if pairs.num_train:
        rows.append(("training pairs", str(pairs.num_train), *before_and_after(result, "train_solve_rate")))
    rates = before_and_after(result, "evaluation_solve_rate")
    rows.append((f"{_evaluated(pairs)} evaluation pairs", str(pairs.num_evaluation), *rates))
    if played is not None and len(rules := pairs_by_rule(pairs)) > 1:
        for rule, indices in rules.items():
            solved = mean_share(of_seed[indices].mean().item() for of_seed in played.solved)
            rows.append((f"  {rule}", str(len(indices)), "", solved))
    yield Table((f"solved, {_answer(experiment)}", "pairs", "before", "after"), rows)
    yield _actions(training)
    if experiment.curriculum.kind != "uniform":
        yield _drawn(experiment.curriculum.kind, result.reports, len(pairs.train_ids))
    yield "Every pair was played once by the greedy policy."


@dataclass(frozen=True)
class ShownAgent:
    """The agents of a saved run, and the pairs that they were measured on."""

    run: SavedRun

    def replayed(self, seed: int | None) -> EpisodeBatch:
        """Return the episodes of a seed's agent, or of the first, on each pair; what it learned from comes first."""
        experiment = self.run.experiment
        pairs = measured_pairs(experiment)
        params = make_params(pairs.eval, experiment.environment).without_augmentation()
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


saved = ShownAgent


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


def without_place(experiment: Experiment) -> Experiment:
    """Leave out the id of this process and the address of process 0: a run can go on anywhere."""
    place = {"coordinator_address": None, "num_processes": None, "process_id": None}
    return experiment.replace(parallel=experiment.parallel.replace(**place))


def present_agents(
    experiment: Experiment, announcement: Iterable[str], title: str, plots: Sequence[Plot], advice: Sequence[str]
) -> Presentation:
    """Say of agents what does not depend on what they play; the title says that."""
    of_each = " of each seed" if len(experiment.seeds) > 1 else ""
    return Presentation(
        announcement=list(announcement),
        unit="update",
        num_updates=experiment.num_updates,
        live=(
            Part("{:.0f}k steps/s", "steps_per_second", lambda speeds: sum(speeds) / 1000),
            Part("return {:.2f}", "mean_return"),
        ),
        measured=(
            Part("solved: evaluation {}", "evaluation_solve_rate", range_share),
            Part("train {}", "train_solve_rate", range_share),
        ),
        title=f"{experiment.agent.algorithm.upper()} on {title}, {_seeds(experiment)}",
        plots=plots,
        x="environment_steps",
        x_label="environment steps",
        learned=f"learning and measuring {{:,}} environment steps{of_each}",
        advice=advice,
        score=(Part("{}", "evaluation_solve_rate", mean_share),),
    )


def before_and_after(
    result: TrainResult, field: str, spell: Callable[[Iterable[float | None]], str] = mean_share
) -> list[str]:
    """Write a number of the first report and of the last one, over the seeds."""
    stages = last_reports(result.reports[::-1]), last_reports(result.reports)
    return [spell(getattr(report, field) for report in stage) for stage in stages]


def _announcement(experiment: Experiment, pairs: TrainingPairs, canvases: Sequence[TasksOnCanvas]) -> Iterator[str]:
    if experiment.training.num_seeds > 1:
        yield f"{experiment.training.num_seeds} agents learn side by side, {_seeds(experiment)}."
    recolors = experiment.environment.augmentation.recolor != "none"
    colors = ", their colors permuted anew in every episode" if recolors else ""
    yield f"Learning from {_material(experiment, pairs)}{colors}."
    if len(canvases) > 1:
        listed = ", ".join(f"{canvas.rules.grid_shape[0]} ({len(canvas.tasks)})" for canvas in reversed(canvases))
        yield f"Each on the smallest square canvas that holds it, by side (pairs): {listed}."
    yield (
        f"Measuring also on {pairs.num_evaluation} {_evaluated(pairs)} pairs of "
        f"{experiment.task.evaluation_dataset}.{left_out(pairs.num_left_out)}"
    )
    if experiment.environment.observation.reveal_target:
        yield (
            "**The answer is visible to the agent:** it learns to edit a grid into a given one, not to find the rule "
            "of a task; so test pairs count as pairs."
        )


def _material(experiment: Experiment, pairs: TrainingPairs) -> str:
    task = experiment.task
    if isinstance(pairs.train, PairPool):
        return f"pairs of {task.train_dataset} that each episode draws, {pairs.train}"
    if pairs.num_train == 0:
        return f"{task.train_dataset}, new tasks as they are needed, sides {task.min_side} to {task.max_side}"
    return f"{pairs.num_train} pairs of {task.train_dataset}, sides up to {task.max_side}"


def _evaluated(pairs: TrainingPairs) -> str:
    """The evaluation pairs: where rules make the training pairs, chance may make one of these again."""
    return "newly drawn" if isinstance(pairs.train, ProceduralTasks) else "unseen"


def _answer(experiment: Experiment) -> str:
    return "answer visible" if experiment.environment.observation.reveal_target else "answer hidden"


def _seeds(experiment: Experiment) -> str:
    seeds = experiment.seeds
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _actions(training: AgentTraining) -> str:
    """Say how many actions the evaluation pairs took that were solved."""
    if training.played is None:
        return "The run was measured when it ended; nothing was played again."
    solved, steps = (part[:, training.pairs.num_train :] for part in training.played)
    if not solved.any():
        return "No evaluation pair was solved."
    return f"A solved evaluation pair took {steps[solved].mean():.1f} actions on average, the submit included."


def _drawn(kind: str, reports: Sequence[Report], num_train: int) -> str:
    last = last_reports([report for report in reports if report.effective_tasks is not None])
    if not last:
        return f"Curriculum {kind}: stopped before the first report."
    played = statistics.fmean(report.tasks_played or 0 for report in last)
    effective = statistics.fmean(report.effective_tasks or 0.0 for report in last)
    return (
        f"Curriculum {kind}: {played:,.0f} of {num_train:,} pairs were played; "
        f"the next would be drawn as if from {effective:,.0f} equally likely ones."
    )
