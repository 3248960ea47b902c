"""``jaxarc train``: from a config to a run folder with an agent in it."""

import dataclasses
import time
from typing import Annotated

import typer
from omegaconf import OmegaConf
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.interrupt import StopWish
from jaxarc.cli.progress import TrainingProgress
from jaxarc.cli.settings import TOPICS, read_experiment, topics_of
from jaxarc.config import ConfigValidationError
from jaxarc.profiling import enable_compilation_cache
from jaxarc.render.learning_curve import LearningCurve, draw_learning_curve
from jaxarc.tasks import TaskFormatError
from jaxarc.training import Experiment, Outcome, Report, RunFolder, TrainingPairs, create_run_folder, load_pairs
from jaxarc.training import train as run_training

HELP = """Train an agent on real ARC tasks, and measure it on tasks that it never saw.

By default it learns with PPO on the pairs of the ARC-AGI-1 training tasks whose grids have sides up to 5, in about a
minute on two CPU cores. The answer is visible to the agent: it learns to edit a grid into a given one, not to find a
task's rule. At the end a run folder holds config.json, metrics.jsonl, learning_curve.png, checkpoint.eqx and
tasks.jsonl, which tells how each task went. [cyan]curriculum=learnability[/] or [cyan]curriculum=replay[/] draws some
tasks more often than others.

Ctrl-C (or SIGTERM) ends it early, keeps what was learned and exits with 0; a second Ctrl-C quits at once.

[bold]Overrides[/] are topic.field=value, such as [cyan]schedule.learning_rate=1e-3 training.seed=1[/]; topic=name picks
another file of configs/<topic>/. [cyan]--show[/] prints every value. Fields by topic:

"""
EPILOG = "\n\n".join(
    f"[bold]{topic}[/]: {', '.join(field.name for field in dataclasses.fields(kind))}" for topic, kind in TOPICS.items()
)


def train(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="What to change, as topic.field=value.", show_default=False)
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the whole config as YAML and stop.")] = False,
) -> None:
    start = time.perf_counter()
    experiment = read_experiment(overrides or [])
    console = Console()
    if show:
        typer.echo(OmegaConf.to_yaml(topics_of(experiment)), nl=False)
        return
    if experiment.training.compilation_cache:
        enable_compilation_cache()
    pairs = _load(experiment)
    folder = create_run_folder(experiment)
    console.print(_announcement(experiment, pairs, folder), highlight=False, soft_wrap=True)
    with StopWish() as wish, TrainingProgress(console, experiment.num_updates) as progress:
        outcome = run_training(experiment, pairs, folder, progress.show, lambda: wish.is_set)
    draw_learning_curve(_curve(outcome.reports), folder.learning_curve, _title(experiment, pairs))
    console.print(_results(outcome, pairs))
    if experiment.curriculum.kind != "uniform":
        line = _drawn(experiment.curriculum.kind, outcome.reports, len(pairs.learned))
        console.print(line, highlight=False, soft_wrap=True)
    console.print(_closing(outcome, folder, time.perf_counter() - start), highlight=False, soft_wrap=True)


def _load(experiment: Experiment) -> TrainingPairs:
    try:
        return load_pairs(experiment.task)
    except TaskFormatError:
        raise
    except ValueError as error:  # no task is small enough, or both data sets are the same
        raise ConfigValidationError(f"jaxarc train: {error}") from error


def _announcement(experiment: Experiment, pairs: TrainingPairs, folder: RunFolder) -> str:
    task = experiment.task
    recolors = experiment.environment.augmentation.recolor != "none"
    lines = [
        f"Learning from {pairs.num_train} pairs of {task.train_dataset}, sides up to {task.max_side}"
        f"{', their colors permuted anew in every episode' if recolors else ''}.",
        f"Measuring also on {pairs.num_evaluation} unseen pairs of {task.evaluation_dataset}.",
        "[bold]The answer is visible to the agent:[/] it learns to edit a grid into a given one, not to find the rule "
        "of a task; so test pairs count as pairs.",
        f"Run folder: {escape(str(folder.path))}",
    ]
    return "\n".join(lines)


def _results(outcome: Outcome, pairs: TrainingPairs) -> Table:
    first, last = outcome.reports[0], outcome.reports[-1]
    table = Table("solved, answer visible", "pairs", "before", "after", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    rates = (first.train_solve_rate, last.train_solve_rate)
    table.add_row("training pairs", str(pairs.num_train), *[_share(rate) for rate in rates])
    rates = (first.evaluation_solve_rate, last.evaluation_solve_rate)
    table.add_row("unseen evaluation pairs", str(pairs.num_evaluation), *[_share(rate) for rate in rates])
    return table


def _drawn(kind: str, reports: list[Report], num_learned: int) -> str:
    told = [report for report in reports if report.effective_tasks is not None]
    if not told:
        return f"Curriculum {kind}: stopped before the first report."
    return (
        f"Curriculum {kind}: {told[-1].tasks_played:,} of {num_learned:,} pairs were played; "
        f"the next would be drawn as if from {told[-1].effective_tasks:,.0f} equally likely ones."
    )


def _closing(outcome: Outcome, folder: RunFolder, seconds: float) -> str:
    last = outcome.reports[-1]
    files = [folder.config, folder.metrics, folder.learning_curve, folder.checkpoint, folder.tasks]
    ending = "Stopped early, and kept what was learned, after" if outcome.interrupted else "Done in"
    return "\n".join(
        [
            "Every pair was played once by the greedy policy.",
            f"{ending} {seconds:.0f} s: {outcome.compile_seconds:.0f} s compiling, {last.seconds:.0f} s learning and "
            f"measuring {last.environment_steps:,} environment steps.",
            f"{escape(str(folder.path))}: {', '.join(file.name for file in files if file.exists())}",
            f"How each task went: {escape(str(folder.tasks))}",
        ]
    )


def _curve(reports: list[Report]) -> LearningCurve:
    return LearningCurve(
        environment_steps=[report.environment_steps for report in reports],
        train_solve_rate=[report.train_solve_rate for report in reports],
        evaluation_solve_rate=[report.evaluation_solve_rate for report in reports],
        episode_solve_rate=[report.episode_solve_rate for report in reports],
        mean_return=[report.mean_return for report in reports],
    )


def _title(experiment: Experiment, pairs: TrainingPairs) -> str:
    task = experiment.task
    return (
        f"PPO on {pairs.num_train} pairs of {task.train_dataset}, sides up to {task.max_side}, "
        f"answer visible, seed {experiment.training.seed}"
    )


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f} %"
