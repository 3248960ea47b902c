"""Runs of agents and of surrogates on a terminal: what they say before, while and after they learn."""

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import jax
import typer
from rich.console import Console
from rich.table import Table

from jaxarc.agents import Experiment, Report
from jaxarc.agents.game_levels import load_levels
from jaxarc.agents.predictor import SearchedAnswers
from jaxarc.agents.saved_agent import WhichCheckpoint, chosen_checkpoint
from jaxarc.agents.train import AgentResult, training_mesh
from jaxarc.agents.train import train as train_agents
from jaxarc.cli.console import escape, mean_number, mean_share, number_table, percent, progress_bar, range_share
from jaxarc.cli.settings import read_experiment, refused
from jaxarc.cli.signals import signals_interrupt
from jaxarc.config.agent_training import Precision
from jaxarc.datasets.training_pairs import TrainingPairs, load_pairs, pairs_by_rule
from jaxarc.files import locate_run
from jaxarc.games import NAMES
from jaxarc.nn.layers import DTYPES, cast_floats, products_in
from jaxarc.parallel import distributed_session, use_host_cores
from jaxarc.runs import RunFolder, TrainingDivergedError
from jaxarc.search import Question
from jaxarc.surrogate import (
    SurrogateExperiment,
    SurrogateReport,
    SurrogateResult,
    make_task,
    train_surrogate,
)
from jaxarc.surrogate.agreement import Agreement, CalibrationBin, GraphAccuracy
from jaxarc.surrogate.held_out import (
    PlayedPairs,
    SurrogateEvaluation,
    evaluate_model,
    evaluate_surrogate,
    load_model,
    write_evaluation,
)
from jaxarc.surrogate.lookahead_task import LookaheadTask
from jaxarc.surrogate.mesh_placement import MeshPlacement
from jaxarc.surrogate.search_task import SearchExpertTask
from jaxarc.surrogate.surrogate_task import SurrogateTask
from jaxarc.tasks.pair_pool import PairPool
from jaxarc.tasks.procedural import ProceduralTasks

# Of the learning curves: label, name of each line and its field, whether it is a share.
_RETURN: Final = ("mean return", {"episodes learned from": "mean_return"}, False)
_RATES: Final = ("train_solve_rate", "evaluation_solve_rate", "episode_solve_rate")
_OF_PAIRS: Final = ("training pairs, each once (greedy)", "evaluation pairs, each once (greedy)")
_OF_LEVELS: Final = ("the game's own, each once (greedy)", "random and unseen, each once (greedy)")
_LEARNED_FROM: Final = "episodes learned from (sampled actions)"
_AGENT_PANELS: Final = (("solved", dict(zip((*_OF_PAIRS, _LEARNED_FROM), _RATES, strict=True)), True), _RETURN)
_GAME_PANELS: Final = (
    ("levels completed", dict(zip((*_OF_LEVELS, _LEARNED_FROM), _RATES, strict=True)), True),
    _RETURN,
    ("official score, 0 .. 100", {"the game's own levels (greedy)": "game_score"}, False),
)
_SURROGATE_PANELS: Final = (
    ("nats", {"loss, learned from": "total_loss", "KL to the expert, held out": "kl"}, False),
    ("agreement, held out", {"first choice": "top1_agreement", "first five": "top5_agreement"}, True),
    ("edges, held out", {"AUROC": "auroc", "right at 0.5": "edge_accuracy"}, True),
)


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


def load_training_pairs(experiment: Experiment) -> Any:
    """Load what agents learn from and are evaluated on: pairs, or the levels of a game."""
    if experiment.game.name:
        return load_levels(experiment.game)
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
    _panels: ClassVar[Any] = _AGENT_PANELS

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
        from jaxarc.render.figures import draw_panels

        algorithm = self.experiment.agent.algorithm.upper()
        title = ", ".join(filter(None, [f"{algorithm} on {self._material}", self._answer, self._seeds]))
        draw_panels(panels_of(outcome.reports, self._panels), folder.learning_curve, title, "environment steps")

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


class GameRun(AgentRun):
    """Trains agents that learn a game."""

    _panels: ClassVar[Any] = _GAME_PANELS

    def announcement(self) -> list[str]:
        lines = [f"Learning from {self._material}, a level an episode."]
        if self.pairs.num_evaluation:
            lines.append(f"Measuring also on {self.pairs.num_evaluation:,} random levels, unseen.")
        return lines

    def show(self, outcome: AgentResult, folder: RunFolder, console: Console) -> None:
        stages = last_reports(list(reversed(outcome.reports))), last_reports(outcome.reports)
        pairs = self.pairs
        table = number_table(self.experiment.game.name, "levels", "before", "after")
        rates = [mean_share(report.train_solve_rate for report in stage) for stage in stages]
        table.add_row("completed, the game's own", str(pairs.num_train), *rates)
        if pairs.num_evaluation:
            rates = [mean_share(report.evaluation_solve_rate for report in stage) for stage in stages]
            table.add_row("completed, random and unseen", str(pairs.num_evaluation), *rates)
        scores = [mean_number(report.game_score for report in stage) for stage in stages]
        table.add_row("official score of the game", "", *scores)
        console.print(table)
        console.print("Every level was played once by the greedy policy.", highlight=False)

    def advice(self, folder: RunFolder) -> list[str]:
        own = "" if self.experiment.game.name in NAMES else " --game file.py:NAME"
        return [
            f"How each level went: {escape(str(folder.measured))}",
            f"To see it play the game: jaxarc replay {escape(str(folder.path))}{own}",
        ]

    @property
    def _material(self) -> str:
        game = self.experiment.game
        others = f" and {game.num_sets * self.pairs.num_train:,} random ones" if game.num_sets else ""
        return f"the {self.pairs.num_train} levels of the game {game.name}{others}"

    @property
    def _answer(self) -> str:
        return ""


def panels_of(reports: Sequence[Any], layout: Any) -> list[Any]:
    """Return the panels of a learning curve; one whose numbers were never measured is left out."""
    from jaxarc.render.figures import Panel

    rows = [dataclasses.asdict(report) for report in reports]
    x = "environment_steps" if "environment_steps" in rows[0] else "update"
    of_seeds = [[row for row in rows if row["seed"] == seed] for seed in dict.fromkeys(row["seed"] for row in rows)]
    panels = []
    for label, fields, is_share in layout:
        known = {name: field for name, field in fields.items() if any(row[field] is not None for row in rows)}
        lines = {
            name: [[(row[x], row[field]) for row in of_seed] for of_seed in of_seeds] for name, field in known.items()
        }
        if lines:
            panels.append(Panel(label, lines, is_share))
    return panels


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


_EXPERTS: Final = {
    "parent_sets": "the exact posterior over parent sets of linear structural models",
    "graphs": "the graphs of drawn structural models",
    "lookahead": "the expert that looks one edit ahead",
    "search": "the programs that the search finds",
}
_LEARNED: Final = {
    "parent_sets": "what the expert thinks of candidates",
    "graphs": "how likely each edge is",
    "lookahead": "what the expert thinks of candidates",
    "search": "which words they have",
}


@contextmanager
def surrogate_session(experiment: SurrogateExperiment) -> Iterator[None]:
    """Make as many devices as the mesh has: on a CPU one for each core that is asked for."""
    mesh = experiment.surrogate_mesh
    if mesh.num_devices != 1:
        with refused("surrogate_mesh: ", (RuntimeError, ValueError)):
            use_host_cores(mesh.num_devices)
            MeshPlacement.from_config(mesh)
    if not experiment.surrogate.compilation_cache:
        jax.config.update("jax_enable_compilation_cache", False)
    yield


def load_surrogate_task(experiment: SurrogateExperiment) -> SurrogateTask:
    """Make what a surrogate learns from and is measured on."""
    with refused():  # no task is small enough, or the rules do not fit the expert
        if experiment.surrogate.problem == "search":  # which is recorded once, and that takes a while
            with progress_bar("searches recorded") as show:
                return SearchExpertTask.load(experiment.search_expert, show)
        return make_task(experiment)


class SurrogateRun:
    """Trains a surrogate, and puts the course of the training into words, tables and a picture."""

    unit: ClassVar[str] = "step"

    def __init__(self, experiment: SurrogateExperiment):
        self.experiment = experiment
        self.task = load_surrogate_task(experiment)

    def announcement(self) -> list[str]:
        """Say what is learned from, and what is measured."""
        problem, task = self.experiment.surrogate.problem, self.experiment.task
        lines = [f"Learning from {_EXPERTS[problem]}: {_LEARNED[problem]}."]
        if isinstance(self.task, LookaheadTask):
            lines.append(
                f"Pairs of {escape(task.train_dataset)}, sides up to {task.max_side}; measured on those of "
                f"{escape(task.evaluation_dataset)}. [bold]The answer is visible.[/]{left_out(self.task.num_left_out)}"
            )
        return lines

    def prepare(self, console: Console) -> None:
        """Nothing is to be made before."""

    def train(self, *arguments: Any, **options: Any) -> SurrogateResult:
        """Train as :func:`jaxarc.surrogate.train_surrogate` does."""
        return train_surrogate(self.experiment, self.task, *arguments, **options)

    def live_parts(self, reports: Sequence[SurrogateReport]) -> list[str]:
        """Return what the live line says of the newest report."""
        (report,) = reports
        parts = []
        if report.examples_per_second is not None:
            parts.append(f"{report.examples_per_second:,.0f} examples/s")
        if report.total_loss is not None:
            parts.append(f"loss {report.total_loss:.3f}")
        return parts

    def measured(self, reports: Sequence[SurrogateReport]) -> str:
        """Return what was measured; nothing if nothing was."""
        return "" if reports[0].score is None else f"held out: {', '.join(measured_parts(reports[0]))}"

    def show(self, outcome: SurrogateResult, folder: RunFolder, console: Console) -> None:
        """Evaluate the surrogate, write down and print what was measured."""
        evaluation = evaluate_model(self.task, outcome.state.model, outcome.reports[-1].update)
        write_evaluation(folder, evaluation)
        show_evaluation(evaluation, folder, console)
        if isinstance(self.task, SearchExpertTask):
            weights = folder.path / "guidance.npz"
            self.task.guide(outcome.state.model).save(weights)
            console.print(f"For the search: jaxarc search TASK --guidance {escape(str(weights))}", soft_wrap=True)

    def draw(self, outcome: SurrogateResult, folder: RunFolder) -> None:
        """Draw the learning curves into the run folder."""
        # Matplotlib takes half a second to import; a mistyped command must not wait for it.
        from jaxarc.render.figures import draw_panels

        surrogate = self.experiment.surrogate
        title = f"A surrogate of {_EXPERTS[surrogate.problem]}, seed {surrogate.seed}"
        draw_panels(panels_of(outcome.reports, _SURROGATE_PANELS), folder.learning_curve, title)

    def learned(self, last: SurrogateReport) -> str:
        """Say how much was learned from."""
        return f"learning from {last.examples:,} examples"

    def advice(self, folder: RunFolder) -> list[str]:
        """Name what to look at next."""
        return []


def show_evaluation(evaluation: SurrogateEvaluation, folder: RunFolder, console: Console) -> None:
    """Print what was measured, and draw the calibration into the run folder."""
    if (agreement := evaluation.agreement) is not None:
        console.print(_agreement(agreement), _calibration(agreement.calibration, "candidates", "by the expert"))
        _draw_calibration(agreement, folder, "mean probability by the expert")
    if (graphs := evaluation.graphs) is not None:
        console.print(_graphs(graphs), _calibration(graphs.calibration, "ordered pairs", "share of edges"))
        _draw_calibration(graphs, folder, "share of edges")
    if evaluation.policies:
        console.print(_policies(evaluation.policies))


def _agreement(agreement: Agreement) -> Table:
    table = number_table("agreement with the expert", f"{agreement.num_examples:,} held-out examples")
    table.add_row("KL(expert || surrogate), nats", f"{agreement.kl:.4f}")
    table.add_row("first choice is one that the expert likes best", percent(agreement.top1_agreement))
    for name, (count, share) in agreement.top1_by_group.items():
        table.add_row(f"  where only {name} is best, {count:,} of them", percent(share))
    table.add_row("such a one is among the first five", percent(agreement.top5_agreement))
    table.add_row("the expert's probability of the first ten", percent(agreement.top10_mass))
    if agreement.regret is not None:
        table.add_row("regret: worth lost by the first choice", percent(agreement.regret, 2))
    table.add_row("calibration error", percent(agreement.calibration_error, 2))
    return table


def _graphs(accuracy: GraphAccuracy) -> Table:
    table = number_table("held out", "models", "AUROC", "expected SHD", "right at 0.5", "calibration error")
    table.columns[0].no_wrap = True  # in 80 columns its words would be cut first
    for name, each in {"all": accuracy.overall, **accuracy.by_samples}.items():
        auroc = "-" if each.auroc is None else f"{each.auroc:.4f}"
        shares = percent(each.edge_accuracy), percent(each.calibration_error, 2)
        table.add_row(name, f"{each.num_models:,}", auroc, f"{each.expected_shd:.3f}", *shares)
    return table


def _calibration(bins: Sequence[CalibrationBin], what: str, expected: str) -> Table:
    table = number_table(what, "probability by the surrogate", expected, num_words=0)
    for each in bins:
        table.add_row(f"{each.size:,}", f"{each.predicted:.4f}", f"{each.expected:.4f}")
    return table


def _policies(policies: Mapping[str, PlayedPairs]) -> Table:
    table = number_table("held-out pairs, answer visible", "solved", "actions")
    for name, each in policies.items():
        table.add_row(name, percent(each.solved), "-" if each.mean_steps is None else f"{each.mean_steps:,.1f}")
    return table


def _draw_calibration(measured: Agreement | GraphAccuracy, folder: RunFolder, expected: str) -> None:
    # Matplotlib takes half a second to import; a mistyped command must not wait for it.
    from jaxarc.render.figures import draw_calibration

    error = (measured if isinstance(measured, Agreement) else measured.overall).calibration_error
    draw_calibration(measured.calibration, folder.calibration, f"Calibration error {percent(error, 2)}", expected)


def evaluate_surrogate_run(
    run: str, overrides: Sequence[str], checkpoint: WhichCheckpoint, precision: Precision
) -> None:
    """Evaluate a trained surrogate on held-out examples and pairs, print tables and write ``evaluation.json``.

    Its weights are cast to ``precision``. The experiment is that of the run with the overrides, which are written down.
    """
    folder = RunFolder(locate_run(Path(run)))
    experiment = read_experiment(overrides, folder.config)
    if not isinstance(experiment, SurrogateExperiment):
        raise typer.BadParameter(
            f"{run} is the run of an agent; write jaxarc evaluate DATASET --agent {run}", param_hint="DATASET"
        )
    chosen = chosen_checkpoint(folder, checkpoint)
    task = load_surrogate_task(experiment)
    model = cast_floats(load_model(chosen, task), DTYPES[precision])
    with products_in(precision):
        evaluation = evaluate_surrogate(experiment, task, model, chosen.record.update)
    evaluation = dataclasses.replace(evaluation, precision=precision, overrides=tuple(overrides))
    write_evaluation(folder, evaluation)
    show_evaluation(evaluation, folder, Console())


def measured_parts(report: SurrogateReport) -> Iterator[str]:
    """Yield the measurements of a report, each as a few words."""
    if report.kl is not None:
        yield f"KL {report.kl:.3f}"
        yield f"top-1 {range_share([report.top1_agreement])}"
    if report.expected_shd is not None:
        yield f"expected SHD {report.expected_shd:.2f}"
    if report.auroc is not None:
        yield f"AUROC {report.auroc:.3f}"
