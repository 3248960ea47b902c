"""``jaxarc train``: from a config to a run folder with an agent in it."""

from pathlib import Path
from typing import Annotated, Final

import typer
from omegaconf import OmegaConf
from rich.console import Console

from jaxarc.cli.resume import resumed_experiment, tell_if_finished
from jaxarc.cli.runs import learn_any
from jaxarc.cli.settings import read_any_experiment, topics_of
from jaxarc.cli.sweep import expand, run_sweep
from jaxarc.training import open_run_folder

_PARAGRAPHS: Final = (
    "Train an agent on real ARC tasks, and measure it on tasks that it never saw.",
    """By default it learns with PPO on the pairs of the ARC-AGI-1 training tasks whose grids have sides up to 5, in
    about a minute on two CPU cores. The answer is visible to the agent: it learns to edit a grid into a given one, not
    to find a task's rule. At the end a run folder holds config.json, metrics.jsonl, learning_curve.png, a checkpoint
    and tasks.jsonl, which tells how each task went. [cyan]jaxarc compare[/] draws several runs beside each other.""",
    """Ctrl-C (or SIGTERM) ends it early, keeps what was learned and exits with 0; a second Ctrl-C quits at once.
    [cyan]--resume RUN[/] goes on with the run of a folder, however it ended, and learns what it would have learned.""",
    """[cyan]surrogate=NAME[/] trains a model of an expert in place of an agent: [cyan]surrogate=lookahead[/], of the
    one that looks an edit ahead, or [cyan]surrogate=parent_sets[/]. All else is alike; [cyan]jaxarc judge RUN[/] tells
    how good it is.""",
    """[bold]Overrides[/] are topic.field=value, such as [cyan]schedule.learning_rate=1e-3 training.seed=1[/];
    topic=name picks another file of configs/<topic>/, [cyan]experiment=NAME[/] a preset of all topics.
    [cyan]--show[/] prints every value. With [cyan]--multirun[/] a field takes several values, as in
    [cyan]training.seed=0,1,2[/] or [cyan]range(0,3)[/], and each combination runs.""",
)
HELP: Final = "\n\n".join(" ".join(paragraph.split()) for paragraph in _PARAGRAPHS)


def train(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="What to change, as topic.field=value.", show_default=False)
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the whole config as YAML and stop.")] = False,
    multirun: Annotated[
        bool, typer.Option("--multirun", "-m", help="Run each combination of the values, one after the other.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="Start from this file instead of configs/: a run's config.json, or what --show printed."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Go on in this run folder from its newest checkpoint; only logging, checkpoint, parallel and "
            "training.max_seconds can be overridden.",
        ),
    ] = None,
) -> None:
    given = overrides or []
    if resume is not None and (multirun or config is not None):
        raise typer.BadParameter("a run keeps its own config; leave --multirun and --config out", param_hint="--resume")
    if multirun and show:
        raise typer.BadParameter("shows one config; leave --multirun out", param_hint="--show")
    if multirun:
        if not run_sweep({tuple(chosen): read_any_experiment(chosen, config) for chosen in expand(given)}, Console()):
            raise typer.Exit(1)
        return
    folder = None if resume is None else open_run_folder(resume)
    experiment = read_any_experiment(given, config) if folder is None else resumed_experiment(folder, given)
    if show:
        typer.echo(OmegaConf.to_yaml(topics_of(experiment)), nl=False)
        return
    if folder is None or not tell_if_finished(folder, experiment, Console()):
        learn_any(experiment, Console(), folder)
