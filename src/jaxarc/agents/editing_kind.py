"""The kind of runs whose agents learn to edit grids; see :class:`jaxarc.runs.kind.Kind`."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import jax

from jaxarc.agents.experiment import Experiment, Report
from jaxarc.agents.predictor import SearchedAnswers
from jaxarc.agents.shown_episodes import ShownAgent, measured_pairs
from jaxarc.agents.train import AgentTraining, training_mesh
from jaxarc.config.build import refused
from jaxarc.datasets.training_pairs import TrainingPairs, left_out, pairs_by_rule
from jaxarc.parallel import distributed_session, use_host_cores
from jaxarc.runs import RunFolder, TrainingDivergedError, TrainResult
from jaxarc.runs.kind import Bar
from jaxarc.runs.presentation import Part, Plot, Presentation, Table, last_reports, mean_share, range_share
from jaxarc.search import Question
from jaxarc.tasks.pair_pool import PairPool
from jaxarc.tasks.procedural import ProceduralTasks

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


def load(experiment: Experiment, bar: Bar) -> AgentTraining:
    """Load the pairs that agents learn from and are evaluated on."""
    return AgentTraining(without_place(experiment), measured_pairs(experiment))


def prepare(training: AgentTraining, bar: Bar) -> None:
    """Search the answers that evaluations will ask for, if they are searched.

    Of each evaluation task the first pair is played and the others are shown.
    """
    config = training.experiment.answer
    if config.source != "searched":
        return
    questions = [Question(task.task_id, 0, task.train[1:], task.train[0][0]) for task in training.pairs.eval]
    with bar("searched answers") as show:
        SearchedAnswers(config.search_seconds, config.search_processes).answers(questions, show)


def presentation(training: AgentTraining, folder: RunFolder) -> Presentation:
    """Say what is learned from and measured, and how that goes."""
    experiment, pairs = training.experiment, training.pairs
    answer = _answer(experiment)
    return present_agents(
        experiment,
        announcement=_announcement(experiment, pairs),
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


saved = ShownAgent


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
        live=(Part("{:.0f}k steps/s", "steps_per_second", _thousands_of_all), Part("return {:.2f}", "mean_return")),
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


def _thousands_of_all(speeds: Sequence[float]) -> float:
    return sum(speeds) / 1000


def _announcement(experiment: Experiment, pairs: TrainingPairs) -> Iterator[str]:
    if experiment.training.num_seeds > 1:
        yield f"{experiment.training.num_seeds} agents learn side by side, {_seeds(experiment)}."
    recolors = experiment.environment.augmentation.recolor != "none"
    colors = ", their colors permuted anew in every episode" if recolors else ""
    yield f"Learning from {_material(experiment, pairs)}{colors}."
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
