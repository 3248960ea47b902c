"""Runs of agents and of surrogates on a terminal: what they say before, while and after they learn."""

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import jax
import typer
from rich.console import Console

from jaxarc.agents import Experiment, Report
from jaxarc.agents.game_levels import load_levels
from jaxarc.agents.predictor import SearchedAnswers
from jaxarc.agents.saved_agent import WhichCheckpoint, chosen_checkpoint
from jaxarc.agents.train import AgentResult, training_mesh
from jaxarc.agents.train import train as train_agents
from jaxarc.cli.console import progress_bar
from jaxarc.cli.presenter import show_results
from jaxarc.cli.settings import read_experiment, refused
from jaxarc.cli.signals import signals_interrupt
from jaxarc.config.agent_training import Precision
from jaxarc.datasets.training_pairs import TrainingPairs, load_pairs, pairs_by_rule
from jaxarc.files import locate_run
from jaxarc.games import NAMES
from jaxarc.nn.layers import DTYPES, cast_floats, products_in
from jaxarc.parallel import distributed_session, use_host_cores
from jaxarc.runs import RunFolder, TrainingDivergedError, TrainResult
from jaxarc.search import Question
from jaxarc.surrogate import (
    SurrogateExperiment,
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
from jaxarc.words import (
    CalibrationPlot,
    Part,
    Plot,
    Table,
    Words,
    last_reports,
    mean_number,
    mean_share,
    percent,
    range_share,
)

_RATES: Final = ("train_solve_rate", "evaluation_solve_rate", "episode_solve_rate")
_OF_PAIRS: Final = ("training pairs, each once (greedy)", "evaluation pairs, each once (greedy)")
_OF_LEVELS: Final = ("the game's own, each once (greedy)", "random and unseen, each once (greedy)")
_LEARNED_FROM: Final = "episodes learned from (sampled actions)"
_RETURN: Final = Plot("mean return", {"episodes learned from": "mean_return"})
_AGENT_PLOTS: Final = (Plot("solved", dict(zip((*_OF_PAIRS, _LEARNED_FROM), _RATES, strict=True)), True), _RETURN)
_GAME_PLOTS: Final = (
    Plot("levels completed", dict(zip((*_OF_LEVELS, _LEARNED_FROM), _RATES, strict=True)), True),
    _RETURN,
    Plot("official score, 0 .. 100", {"the game's own levels (greedy)": "game_score"}),
)
_SURROGATE_PLOTS: Final = (
    Plot("nats", {"loss, learned from": "total_loss", "KL to the expert, held out": "kl"}),
    Plot("agreement, held out", {"first choice": "top1_agreement", "first five": "top5_agreement"}, True),
    Plot("edges, held out", {"AUROC": "auroc", "right at 0.5": "edge_accuracy"}, True),
)
_MEASURED: Final = (  # of a surrogate
    Part("KL {:.3f}", "kl"),
    Part("top-1 {}", "top1_agreement", range_share),
    Part("expected SHD {:.2f}", "expected_shd"),
    Part("AUROC {:.3f}", "auroc"),
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
    """Trains agents, and puts the course of the training into words."""

    def __init__(self, experiment: Experiment):
        # Neither the id of this process nor the address of process 0: a run can go on anywhere.
        place = {"coordinator_address": None, "num_processes": None, "process_id": None}
        self.experiment = experiment.replace(parallel=experiment.parallel.replace(**place))
        self.pairs = load_training_pairs(experiment)

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

    def words(self, folder: RunFolder) -> Words:
        """Say what is learned from and measured, and how that goes."""
        several = len(self.experiment.seeds) > 1
        title = f"{self.experiment.agent.algorithm.upper()} on {self._material}"
        return Words(
            announcement=list(self._announcement()),
            unit="update",
            num_updates=self.experiment.num_updates,
            live=(
                Part("{:.0f}k steps/s", "steps_per_second", _thousands_of_all),
                Part("return {:.2f}", "mean_return"),
            ),
            measured=(
                Part("solved: evaluation {}", "evaluation_solve_rate", range_share),
                Part("train {}", "train_solve_rate", range_share),
            ),
            title=", ".join(filter(None, [title, self._answer, self._seeds])),
            plots=self._plots,
            x="environment_steps",
            x_label="environment steps",
            learned=f"learning and measuring {{:,}} environment steps{' of each seed' if several else ''}",
            advice=self._advice(folder),
            score=(Part("{}", "evaluation_solve_rate", mean_share),),
        )

    def results(self, outcome: AgentResult, folder: RunFolder) -> Iterator[str | Table]:
        """Yield what the agents solved before and after."""
        yield self._results(outcome)
        yield _actions(outcome, self.pairs)
        kind = self.experiment.curriculum.kind
        if kind != "uniform":
            yield _drawn(kind, outcome.reports, len(self.pairs.train_ids))
        yield "Every pair was played once by the greedy policy."

    def _announcement(self) -> Iterator[str]:
        experiment, pairs = self.experiment, self.pairs
        if experiment.training.num_seeds > 1:
            yield f"{experiment.training.num_seeds} agents learn side by side, {self._seeds}."
        recolors = experiment.environment.augmentation.recolor != "none"
        colors = ", their colors permuted anew in every episode" if recolors else ""
        yield f"Learning from {self._material}{colors}."
        yield (
            f"Measuring also on {pairs.num_evaluation} {self._evaluated} pairs of "
            f"{experiment.task.evaluation_dataset}.{left_out(pairs.num_left_out)}"
        )
        if experiment.environment.observation.reveal_target:
            yield (
                "**The answer is visible to the agent:** it learns to edit a grid into a given one, not to find the "
                "rule of a task; so test pairs count as pairs."
            )

    def _advice(self, folder: RunFolder) -> list[str]:
        return [
            f"How each task went: {folder.tasks}",
            f"To see every episode: jaxarc replay {folder.path}",
        ]

    @property
    def _plots(self) -> tuple[Plot, ...]:
        return _AGENT_PLOTS

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
        rows = []
        if pairs.num_train:
            rows.append(("training pairs", str(pairs.num_train), *before_and_after(outcome, "train_solve_rate")))
        rates = before_and_after(outcome, "evaluation_solve_rate")
        rows.append((f"{self._evaluated} evaluation pairs", str(pairs.num_evaluation), *rates))
        if outcome.played is not None and len(rules := pairs_by_rule(pairs)) > 1:
            for rule, indices in rules.items():
                solved = mean_share(of_seed[indices].mean().item() for of_seed in outcome.played.solved)
                rows.append((f"  {rule}", str(len(indices)), "", solved))
        return Table((f"solved, {self._answer}", "pairs", "before", "after"), rows)


class GameRun(AgentRun):
    """Trains agents that learn a game."""

    def results(self, outcome: AgentResult, folder: RunFolder) -> Iterator[str | Table]:
        pairs = self.pairs
        own = before_and_after(outcome, "train_solve_rate")
        rows = [("completed, the game's own", str(pairs.num_train), *own)]
        if pairs.num_evaluation:
            unseen = before_and_after(outcome, "evaluation_solve_rate")
            rows.append(("completed, random and unseen", str(pairs.num_evaluation), *unseen))
        scores = before_and_after(outcome, "game_score", mean_number)
        rows.append(("official score of the game", "", *scores))
        yield Table((self.experiment.game.name, "levels", "before", "after"), rows)
        yield "Every level was played once by the greedy policy."

    def _announcement(self) -> Iterator[str]:
        yield f"Learning from {self._material}, a level an episode."
        if self.pairs.num_evaluation:
            yield f"Measuring also on {self.pairs.num_evaluation:,} random levels, unseen."

    def _advice(self, folder: RunFolder) -> list[str]:
        own = "" if self.experiment.game.name in NAMES else " --game file.py:NAME"
        return [
            f"How each level went: {folder.measured}",
            f"To see it play the game: jaxarc replay {folder.path}{own}",
        ]

    @property
    def _plots(self) -> tuple[Plot, ...]:
        return _GAME_PLOTS

    @property
    def _material(self) -> str:
        game = self.experiment.game
        others = f" and {game.num_sets * self.pairs.num_train:,} random ones" if game.num_sets else ""
        return f"the {self.pairs.num_train} levels of the game {game.name}{others}"

    @property
    def _answer(self) -> str:
        return ""


def before_and_after(
    outcome: TrainResult, field: str, spell: Callable[[Iterable[float | None]], str] = mean_share
) -> list[str]:
    """Write a number of the first report and of the last one, over the seeds."""
    stages = last_reports(outcome.reports[::-1]), last_reports(outcome.reports)
    return [spell(getattr(report, field) for report in stage) for stage in stages]


def _thousands_of_all(speeds: Sequence[float]) -> float:
    return sum(speeds) / 1000


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
    """Trains a surrogate, and puts the course of the training into words."""

    def __init__(self, experiment: SurrogateExperiment):
        self.experiment = experiment
        self.task = load_surrogate_task(experiment)

    def prepare(self, console: Console) -> None:
        """Nothing is to be made before."""

    def train(self, *arguments: Any, **options: Any) -> SurrogateResult:
        """Train as :func:`jaxarc.surrogate.train_surrogate` does."""
        return train_surrogate(self.experiment, self.task, *arguments, **options)

    def words(self, folder: RunFolder) -> Words:
        """Say what is learned from and measured, and how that goes."""
        surrogate, task = self.experiment.surrogate, self.experiment.task
        announcement = [f"Learning from {_EXPERTS[surrogate.problem]}: {_LEARNED[surrogate.problem]}."]
        if isinstance(self.task, LookaheadTask):
            announcement.append(
                f"Pairs of {task.train_dataset}, sides up to {task.max_side}; measured on those of "
                f"{task.evaluation_dataset}. **The answer is visible.**{left_out(self.task.num_left_out)}"
            )
        return Words(
            announcement=announcement,
            unit="step",
            num_updates=self.experiment.num_updates,
            live=(Part("{:,.0f} examples/s", "examples_per_second"), Part("loss {:.3f}", "total_loss")),
            measured=_MEASURED,
            before_measured="held out: ",
            title=f"A surrogate of {_EXPERTS[surrogate.problem]}, seed {surrogate.seed}",
            plots=_SURROGATE_PLOTS,
            x="update",
            x_label="steps",
            learned="learning from {:,} examples",
            advice=(),
            score=_MEASURED,
        )

    def results(self, outcome: SurrogateResult, folder: RunFolder) -> Iterator[str | Table | CalibrationPlot]:
        """Evaluate the surrogate, write down and yield what was measured."""
        evaluation = evaluate_model(self.task, outcome.state.model, outcome.reports[-1].update)
        write_evaluation(folder, evaluation)
        yield from evaluation_in_words(evaluation)
        if isinstance(self.task, SearchExpertTask):
            weights = folder.path / "guidance.npz"
            self.task.guide(outcome.state.model).save(weights)
            yield f"For the search: jaxarc search TASK --guidance {weights}"


def evaluation_in_words(evaluation: SurrogateEvaluation) -> Iterator[Table | CalibrationPlot]:
    """Yield tables and the calibration of what was measured."""
    if (agreement := evaluation.agreement) is not None:
        yield _agreement(agreement)
        yield from _calibration(agreement.calibration, agreement.calibration_error, "candidates", "by the expert")
    if (graphs := evaluation.graphs) is not None:
        yield _graphs(graphs)
        error = graphs.overall.calibration_error
        yield from _calibration(graphs.calibration, error, "ordered pairs", "share of edges")
    if evaluation.policies:
        yield _policies(evaluation.policies)


def _agreement(agreement: Agreement) -> Table:
    rows = [
        ("KL(expert || surrogate), nats", f"{agreement.kl:.4f}"),
        ("first choice is one that the expert likes best", percent(agreement.top1_agreement)),
    ]
    for name, (count, share) in agreement.top1_by_group.items():
        rows.append((f"  where only {name} is best, {count:,} of them", percent(share)))
    rows.append(("such a one is among the first five", percent(agreement.top5_agreement)))
    rows.append(("the expert's probability of the first ten", percent(agreement.top10_mass)))
    if agreement.regret is not None:
        rows.append(("regret: worth lost by the first choice", percent(agreement.regret, 2)))
    rows.append(("calibration error", percent(agreement.calibration_error, 2)))
    return Table(("agreement with the expert", f"{agreement.num_examples:,} held-out examples"), rows)


def _graphs(accuracy: GraphAccuracy) -> Table:
    rows = []
    for name, each in {"all": accuracy.overall, **accuracy.by_samples}.items():
        auroc = "-" if each.auroc is None else f"{each.auroc:.4f}"
        shares = percent(each.edge_accuracy), percent(each.calibration_error, 2)
        rows.append((name, f"{each.num_models:,}", auroc, f"{each.expected_shd:.3f}", *shares))
    headers = ("held out", "models", "AUROC", "expected SHD", "right at 0.5", "calibration error")
    return Table(headers, rows, keeps_names=True)  # in 80 columns their words would be cut first


def _calibration(
    bins: Sequence[CalibrationBin], error: float, what: str, expected: str
) -> Iterator[Table | CalibrationPlot]:
    rows = [(f"{each.size:,}", f"{each.predicted:.4f}", f"{each.expected:.4f}") for each in bins]
    yield Table((what, "probability by the surrogate", expected), rows, num_words=0)
    label = f"mean probability {expected}" if expected == "by the expert" else expected
    yield CalibrationPlot(bins, f"Calibration error {percent(error, 2)}", label)


def _policies(policies: Mapping[str, PlayedPairs]) -> Table:
    rows = [
        (name, percent(each.solved), "-" if each.mean_steps is None else f"{each.mean_steps:,.1f}")
        for name, each in policies.items()
    ]
    return Table(("held-out pairs, answer visible", "solved", "actions"), rows)


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
    show_results(evaluation_in_words(evaluation), folder, Console())
