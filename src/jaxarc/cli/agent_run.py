"""A run of agents on a terminal: what it says before, while and after they learn."""

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import jax
from rich.console import Console
from rich.table import Table

from jaxarc.agents import Experiment, Report
from jaxarc.agents.predictor import SearchedAnswers
from jaxarc.agents.train import AgentResult, training_mesh
from jaxarc.agents.train import train as train_agents
from jaxarc.cli.console import escape, mean_share, number_table, progress_bar, range_share
from jaxarc.cli.settings import refused
from jaxarc.cli.signals import signals_interrupt
from jaxarc.datasets.training_pairs import TrainingPairs, load_pairs, pairs_by_rule
from jaxarc.parallel import distributed_session, use_host_cores
from jaxarc.runs import RunFolder, TrainingDivergedError
from jaxarc.search import Question
from jaxarc.tasks.pair_pool import PairPool
from jaxarc.tasks.procedural import ProceduralTasks


@contextmanager
def agent_session(experiment: Experiment) -> Iterator[None]:
    """Make the devices that agents learn on, a core each on a CPU, and be one of their processes."""
    parallel = experiment.parallel
    if parallel.num_devices != 1:
        with refused(f"parallel.num_devices={parallel.num_devices}: ", (RuntimeError,)):
            use_host_cores(parallel.num_devices // (parallel.num_processes or 1) or None)
    with distributed_session(parallel, agreed=(TrainingDivergedError,)):
        with refused(f"parallel.num_devices={parallel.num_devices}: "):
            training_mesh(experiment)
        if not experiment.training.compilation_cache:
            jax.config.update("jax_enable_compilation_cache", False)
        yield


def load_training_pairs(experiment: Experiment) -> TrainingPairs:
    """Load what agents learn from and are evaluated on."""
    rules = experiment.environment
    with refused():  # no task is small enough, or none is unseen
        return load_pairs(
            experiment.task,
            rules.grid_shape,
            hides_answers=experiment.answer.is_hidden,
            augmentation=rules.augmentation,
        )


class AgentRun:
    """Trains agents, and puts the course of the training into words, tables and a picture."""

    unit: ClassVar[str] = "update"

    def __init__(self, experiment: Experiment):
        # Neither the id of this process nor the address of process 0: a run can go on anywhere.
        place = {"coordinator_address": None, "num_processes": None, "process_id": None}
        self.experiment = experiment.replace(parallel=experiment.parallel.replace(**place))
        self.pairs = load_training_pairs(experiment)

    def announcement(self) -> list[str]:
        """Say what is learned from, and what is measured."""
        experiment, pairs = self.experiment, self.pairs
        lines = []
        if experiment.training.num_seeds > 1:
            lines.append(f"{experiment.training.num_seeds} agents learn side by side, {self._seeds}.")
        recolors = experiment.environment.augmentation.recolor != "none"
        lines.append(
            f"Learning from {escape(self._material)}"
            f"{', their colors permuted anew in every episode' if recolors else ''}."
        )
        lines.append(
            f"Measuring also on {pairs.num_evaluation} {self._evaluated} pairs of "
            f"{escape(experiment.task.evaluation_dataset)}.{left_out(pairs.num_left_out)}"
        )
        if experiment.environment.observation.reveal_target:
            lines.append(
                "[bold]The answer is visible to the agent:[/] it learns to edit a grid into a given one, not to find "
                "the rule of a task; so test pairs count as pairs."
            )
        return lines

    def prepare(self, console: Console) -> None:
        """Search the answers that evaluations will ask for, if they are searched; Ctrl-C ends that at once.

        Of each evaluation task the first pair is played and the others are shown.
        """
        config = self.experiment.answer
        if config.source != "searched":
            return
        questions = [Question(task.task_id, 0, task.train[1:], task.train[0][0]) for task in self.pairs.eval]
        bar = progress_bar("searched answers", total=len(questions), is_shown=not console.quiet)
        with bar as show, signals_interrupt():
            SearchedAnswers(config.search_seconds, config.search_processes).answers(questions, show)

    def train(self, *arguments: Any, **options: Any) -> AgentResult:
        """Train as :func:`jaxarc.agents.train.train` does."""
        return train_agents(self.experiment, self.pairs, *arguments, **options)

    def live_parts(self, reports: Sequence[Report]) -> list[str]:
        """Return what the live line says of the newest reports, one of each seed."""
        parts = []
        if speeds := [report.steps_per_second for report in reports if report.steps_per_second is not None]:
            parts.append(f"{sum(speeds) / 1000:.0f}k steps/s")
        if returns := [report.mean_return for report in reports if report.mean_return is not None]:
            parts.append(f"return {statistics.fmean(returns):.2f}")
        return parts

    def measured(self, reports: Sequence[Report]) -> str:
        """Return what was measured, as means over the seeds with their range; nothing if nothing was."""
        parts = []
        if reports[0].evaluation_solve_rate is not None:
            parts.append(f"solved: evaluation {range_share(report.evaluation_solve_rate for report in reports)}")
        if reports[0].train_solve_rate is not None:
            parts.append(f"train {range_share(report.train_solve_rate for report in reports)}")
        return ", ".join(parts)

    def show(self, outcome: AgentResult, folder: RunFolder, console: Console) -> None:
        """Print what the agents solved before and after."""
        console.print(self._results(outcome))
        console.print(_actions(outcome, self.pairs), highlight=False)
        kind = self.experiment.curriculum.kind
        if kind != "uniform":
            console.print(_drawn(kind, outcome.reports, len(self.pairs.train_ids)), highlight=False, soft_wrap=True)
        console.print("Every pair was played once by the greedy policy.", highlight=False)

    def draw(self, outcome: AgentResult, folder: RunFolder) -> None:
        """Draw the learning curve into the run folder."""
        # Matplotlib takes half a second to import; a mistyped command must not wait for it.
        from jaxarc.render.figures import LearningCurve, draw_learning_curve

        names = [field.name for field in dataclasses.fields(LearningCurve)]
        curves = []
        for seed in dict.fromkeys(report.seed for report in outcome.reports):
            rows = [dataclasses.asdict(report) for report in outcome.reports if report.seed == seed]
            curves.append(LearningCurve(**{name: [row[name] for row in rows] for name in names}))
        algorithm = self.experiment.agent.algorithm.upper()
        draw_learning_curve(
            curves, folder.learning_curve, f"{algorithm} on {self._material}, {self._answer}, {self._seeds}"
        )

    def learned(self, last: Report) -> str:
        """Say how much was learned from."""
        each = " of each seed" if len(self.experiment.seeds) > 1 else ""
        return f"learning and measuring {last.environment_steps:,} environment steps{each}"

    def advice(self, folder: RunFolder) -> list[str]:
        """Name what to look at next."""
        return [
            f"How each task went: {escape(str(folder.tasks))}",
            f"To see every episode: jaxarc replay {escape(str(folder.path))}",
        ]

    @property
    def _material(self) -> str:
        task, pairs = self.experiment.task, self.pairs
        if isinstance(pairs.train, PairPool):
            return f"pairs of {task.train_dataset} that each episode draws, {pairs.train}"
        if pairs.num_train == 0:
            return f"{task.train_dataset}, new tasks as they are needed, sides {task.min_side} to {task.max_side}"
        return f"{pairs.num_train} pairs of {task.train_dataset}, sides up to {task.max_side}"

    @property
    def _evaluated(self) -> str:
        """The evaluation pairs: where rules make the training pairs, chance may make one of these again."""
        return "newly drawn" if isinstance(self.pairs.train, ProceduralTasks) else "unseen"

    @property
    def _answer(self) -> str:
        return "answer visible" if self.experiment.environment.observation.reveal_target else "answer hidden"

    @property
    def _seeds(self) -> str:
        seeds = self.experiment.seeds
        return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"

    def _results(self, outcome: AgentResult) -> Table:
        pairs = self.pairs
        stages = last_reports(list(reversed(outcome.reports))), last_reports(outcome.reports)
        table = number_table(f"solved, {self._answer}", "pairs", "before", "after")
        if pairs.num_train:
            rates = [mean_share(report.train_solve_rate for report in stage) for stage in stages]
            table.add_row("training pairs", str(pairs.num_train), *rates)
        rates = [mean_share(report.evaluation_solve_rate for report in stage) for stage in stages]
        table.add_row(f"{self._evaluated} evaluation pairs", str(pairs.num_evaluation), *rates)
        if outcome.played is not None and len(rules := pairs_by_rule(pairs)) > 1:
            for rule, indices in rules.items():
                solved = mean_share(of_seed[indices].mean().item() for of_seed in outcome.played.solved)
                table.add_row(f"  {rule}", str(len(indices)), "", solved)
        return table


def last_reports(reports: Sequence[Report]) -> list[Report]:
    """Return the newest report of each seed."""
    return list({report.seed: report for report in reports}.values())


def left_out(count: int) -> str:
    """Say how many pairs are not measured; nothing where all are."""
    if not count:
        return ""
    return f" {'One more is' if count == 1 else f'{count:,} more are'} left out: the training pairs hold them."


def _actions(outcome: AgentResult, pairs: TrainingPairs) -> str:
    """Say how many actions the evaluation pairs took that were solved."""
    if outcome.played is None:
        return "The run was measured when it ended; nothing was played again."
    solved, steps = (part[:, pairs.num_train :] for part in outcome.played)
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
