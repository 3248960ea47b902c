"""``jaxarc evaluate``: an agent, or a submission file, scored by the rules of ARC.

A wrong name is answered before anything is loaded that computes.
"""

import contextlib
import datetime
import json
import re
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from jaxarc.cli.console import (
    DEFAULT_FORMAT,
    DEFAULT_SIDE,
    AgentSeedOption,
    JsonOption,
    NetworkOption,
    QuietOption,
    RewardOption,
    escape,
    print_json,
    warn,
)
from jaxarc.cli.place_options import OnOption, ShardsOption, SlurmOption, place_of
from jaxarc.config import EvaluationConfig, SearchConfig
from jaxarc.config.agent_training import Precision, WhichCheckpoint
from jaxarc.config.environment_rules import SELECTION_FORMATS
from jaxarc.files import locate_run

SEARCH: Final = "search"  # the agent that is a program search and plays no episode
PLAIN_AGENTS: Final = ("random", "submit", "painter")  # which need no file
_OF_SEARCH: Final = ("minutes", "max_cost", "megabytes")
_OF_SOLVERS: Final = ("seconds",)  # the search is one
_PLACES: Final = ("processes", "on", "shards", "slurm")
_OF_RUNS: Final = ("checkpoint", "agent_seed", "precision", "network", "reward")
_OF_EPISODES: Final = ("votes", "seed", "max_steps", "selection_format", "canvas", "answers_visible", "batch_size")
_NOT_OF_SURROGATES: Final = (
    *("agent", "score", "attempts", "output", "as_json", "agent_seed", "network", "reward"),
    *(*_OF_SEARCH, *_OF_SOLVERS, *_PLACES, *_OF_EPISODES),
)


def _sides_of(text: str) -> tuple[int, ...]:
    """Read the sides of canvases."""
    try:
        sides = tuple(map(int, text.split(",")))
        EvaluationConfig(canvases=sides)  # which checks them
    except ValueError as error:
        raise typer.BadParameter(
            f"write a side in 1..30, or several that rise, such as 10,20,30; got {text!r}", param_hint="--canvas"
        ) from error
    return sides


def evaluate(
    ctx: typer.Context,
    dataset: Annotated[
        str,
        typer.Argument(
            help="Name of a dataset, or path of a file or folder of ARC JSON; or the run folder of a surrogate.",
            metavar="DATASET|RUN",
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="For a surrogate: what to change, as topic.field=value.", show_default=False),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join((SEARCH, *PLAIN_AGENTS))}, a folder of jaxarc train, a file of recorded actions, or "
            "module:function or file.py:function of a solver solve(train, test_input) that returns grids.",
            metavar="AGENT",
        ),
    ] = None,
    checkpoint: Annotated[
        WhichCheckpoint | None,
        typer.Option(
            help="For a run folder: the best on unseen pairs, or the newest. Default: best; last for a surrogate."
        ),
    ] = None,
    agent_seed: AgentSeedOption = None,
    network: NetworkOption = None,
    reward: RewardOption = None,
    precision: Annotated[
        Precision | None,
        typer.Option(help="For a run folder: precision of the network's weights and products. Default: float32."),
    ] = None,
    score: Annotated[
        Path | None, typer.Option(exists=True, help="Score this submission file instead of playing.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts at each test input.")] = EvaluationConfig.attempts,
    votes: Annotated[
        int, typer.Option(min=0, help="Augmented episodes per test input that vote for the attempts; 0: none.")
    ] = EvaluationConfig.votes,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = EvaluationConfig.seed,
    max_steps: Annotated[
        int | None,
        typer.Option(min=1, help="Step limit, after which the working grid counts. Default: the agent's own."),
    ] = None,
    selection_format: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(SELECTION_FORMATS)}; {DEFAULT_FORMAT} by default.")
    ] = None,
    canvas: Annotated[
        str | None,
        typer.Option(
            metavar="SIDE[,SIDE...]",
            help=f"Rows and columns of the canvas; {DEFAULT_SIDE} by default, and of a run its own. With several, such "
            "as 10,20,30, each task is played on the smallest that holds it.",
        ),
    ] = None,
    answers_visible: Annotated[
        bool,
        typer.Option(
            "--answers-visible", help="Show the answers to an agent that was trained with them: no ARC score."
        ),
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Episodes per batch.")] = EvaluationConfig.batch_size,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the files; runs/<date>_<time>-evaluation when playing."),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes side by side; each plays whole batches. Default: one; for search, one for each core.",
        ),
    ] = None,
    on: OnOption = "local",
    shards: ShardsOption = None,
    slurm: SlurmOption = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="For search: time for all test inputs; costlier programs are tried while it lasts."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="For search and solvers: time limit of a test input.")
    ] = None,
    max_cost: Annotated[
        int | None,
        typer.Option(min=0, max=12, help="For search: cost of a piece, 6 for three functions."),
    ] = None,
    megabytes: Annotated[int | None, typer.Option(min=1, help="For search: memory of one test input.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score an agent by the rules of ARC: exact match on test outputs that it never sees, two attempts at each.

    An attempt is the grid that the agent submits, or its working grid at the step limit; or one that a solver returns.

    The folder gets submission.json in the format of the ARC Prize, tasks.jsonl, attempts.html and
    summary.json.

    A hidden test set, a challenges file without its solutions, gives a submission and no score.

    With --score nothing is played; --output writes all files except the submission.

    With the run folder of a surrogate, evaluate the surrogate on held-out examples and pairs.

    This measures agreement with the expert, regret and calibration; a lookahead surrogate plays the held-out pairs too.

    Its run folder gets evaluation.json and, of candidates, calibration.png. Overrides measure it on other data.

    Examples:
        jaxarc evaluate arc-agi-1/training --agent search --minutes 10
        jaxarc evaluate arc-agi-1/training --agent random
        jaxarc evaluate arc-agi-1/evaluation --agent runs/NAME --answers-visible
        jaxarc evaluate arc-agi-1/evaluation:max_side=10 --agent runs/NAME-rules
        jaxarc evaluate arc-agi-1/training --agent my_solver:solve --json
        jaxarc evaluate arc-agi-1/training --score submission.json
        jaxarc evaluate runs/NAME-surrogate
        jaxarc evaluate runs/NAME-surrogate lookahead.num_eval=512
    """
    if (locate_run(Path(dataset)) / "config.json").is_file():
        _refuse(ctx, _NOT_OF_SURROGATES, "does not go with a surrogate's run folder as the dataset; leave it out")
        from jaxarc.cli.evaluation import evaluate_run

        evaluate_run(dataset, overrides or [], checkpoint or "last", precision or "float32", quiet)
        return
    _refuse(ctx, ("overrides",), "are for the run folder of a surrogate; leave them out")
    if (agent is None) == (score is None):
        raise typer.BadParameter("give an agent to play, or a submission file to score", param_hint="--agent, --score")
    path = locate_run(Path(agent or ""))
    is_solver = agent is not None and (
        _predicts_answers(path) if path.exists() else re.fullmatch(r"([\w.]+|.+\.py):\w+", agent) is not None
    )
    if agent is None or not path.is_dir():
        _refuse(ctx, _OF_RUNS, "is for a run folder; leave it out")
    elif is_solver:
        _refuse(ctx, _OF_RUNS[1:], "is for the run of an agent; leave it out")
    if agent != SEARCH:
        _refuse(ctx, _OF_SEARCH, "is for --agent search; leave it out")
    if agent is None:
        _refuse(ctx, _PLACES, "is for an agent, while a file is only read; leave it out")
    if agent != SEARCH and not is_solver:
        _refuse(ctx, _OF_SOLVERS, "is for --agent search and for solvers; leave it out")
    if agent is None or agent == SEARCH or is_solver:
        _refuse(ctx, _OF_EPISODES, "is for an agent that plays, while a solver returns grids; leave it out")
    elif agent not in PLAIN_AGENTS and (path.suffix == ".py" or not path.exists()):
        raise typer.BadParameter(
            f"{agent!r} is none of {', '.join((SEARCH, *PLAIN_AGENTS))}, nor ladder_l2_small, nor a folder of jaxarc "
            "train, nor a file of recorded actions, nor module:function or file.py:function; correct it",
            param_hint="--agent",
        )
    place = place_of(on, shards, slurm, processes)
    sides = () if canvas is None else _sides_of(canvas)
    from jaxarc.cli import evaluation
    from jaxarc.datasets import load_tasks

    tasks = load_tasks(dataset)
    if output is None and agent is not None:  # what is scored may stay without files
        output = Path("runs") / f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-evaluation"
    folder = output and output.absolute()  # wherever a solver goes by os.chdir

    if agent is None:
        assert score is not None
        scored = evaluation.score_file(score, attempts, tasks)
    elif agent == SEARCH:
        limits = {"seconds": seconds, "max_cost": max_cost, "megabytes": megabytes}
        search = SearchConfig(answers=attempts, **{name: one for name, one in limits.items() if one is not None})
        assert folder is not None
        scored = evaluation.search(tasks, search, place, minutes, folder, quiet)
    elif is_solver:
        assert folder is not None
        scored = evaluation.call_solver(agent, checkpoint or "best", tasks, attempts, place, seconds, folder, quiet)
    else:
        canvases = sides if len(sides) > 1 else ()
        config = EvaluationConfig(attempts, votes, canvases=canvases, batch_size=batch_size, seed=seed)
        from jaxarc.cli.players import PlayRequest, play

        request = PlayRequest(
            selection_format=selection_format,
            side=sides[-1] if sides else None,
            max_steps=max_steps,
            answers_visible=answers_visible,
            checkpoint=checkpoint or "best",
            seed=agent_seed,
            precision=precision or "float32",
            network=network,
            reward=reward,
        )
        assert folder is not None
        jobs = folder / evaluation.JOBS
        scored = evaluation.Scored(*play(agent, dataset, tasks, config, request, place, jobs, quiet))

    about = {"dataset": dataset, "submission": str(score)} if agent is None else {"dataset": dataset, "agent": agent}
    # Grids of an agent that saw the answers must not be taken for a submission.
    has_submission = agent is not None and not answers_visible
    title = f"{score} on {tasks.name}" if agent is None else f"{Path(agent).name} on {dataset}"
    about |= scored.about
    if folder is None:
        summary = {**about, **evaluation.score_of(scored.result)}
    else:
        summary = evaluation.write(folder, tasks, scored, about, title, has_submission=has_submission)
    if as_json:
        print_json({**summary, "folder": None if output is None else str(output)})
    else:
        console = Console(quiet=quiet)
        for note in scored.notes:
            console.print(note)
        evaluation.show(console, scored.result)
        if output is not None:
            console.print(f"Files: {escape(str(output))}", highlight=False, soft_wrap=True)
    if len(scored.result.rows) < len(tasks):
        warn(f"stopped: {len(scored.result.rows):,} of {len(tasks):,} tasks are done, and only these are counted")
        raise typer.Exit(130)
    if all(row.error is not None for row in scored.result.rows):
        warn("the solver failed at every task")
        raise typer.Exit(1)


def _predicts_answers(path: Path) -> bool:
    """Whether it is the folder of a run of ``jaxarc train surrogate=rules``."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # what is damaged is said when it is opened
        return json.loads((path / "config.json").read_text())["surrogate"]["problem"] == "rules"
    return False


def _refuse(ctx: typer.Context, names: tuple[str, ...], why: str) -> None:
    """Refuse options that were given, but mean nothing here."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(param.name or "")
        if param.name in names and source is not None and source.name == "COMMANDLINE":
            option = param.opts[0] if param.opts[0].startswith("-") else param.name.upper()
            raise typer.BadParameter(why, param_hint=option)
