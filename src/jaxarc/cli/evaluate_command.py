"""``jaxarc evaluate``: an agent, or a submission file, scored by the rules of ARC."""

import contextlib
import dataclasses
import datetime
import sys
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console

from jaxarc.agents.saved_agent import WhichCheckpoint
from jaxarc.cli.console import AgentSeedOption, JsonOption, QuietOption, escape, print_json, progress_bar, warn
from jaxarc.cli.evaluation_files import print_evaluation, score_of, write_evaluation
from jaxarc.cli.players import (
    DEFAULT_FORMAT,
    DEFAULT_SIDE,
    PLAIN_AGENTS,
    SEARCH,
    Player,
    PlayRequest,
    is_solver,
    load_player,
    load_solver,
)
from jaxarc.cli.search_command import Programs, search_tasks
from jaxarc.cli.signals import signals_interrupt
from jaxarc.config import ConfigValidationError, SearchConfig
from jaxarc.config.agent_training import Precision
from jaxarc.config.environment_rules import SELECTION_FORMATS
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.evaluation import (
    Evaluation,
    EvaluationConfig,
    RecordedAgent,
    read_action_counts,
    read_submission,
    rows_of_submission,
    score_submission,
)
from jaxarc.evaluation import evaluate as play_tasks
from jaxarc.evaluation.solver import SolvedTask, evaluation_of, solve_tasks
from jaxarc.nn import products_in
from jaxarc.runs import RunFolder, locate_run
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment

_NOT_OF_SURROGATES: Final = ("agent", "score", "as_json")
_OF_SEARCH: Final = ("processes", "minutes", "seconds", "max_cost", "megabytes", "guidance")
_OF_EPISODES: Final = (
    *("votes", "max_steps", "selection_format", "canvas"),
    *("answers_visible", "checkpoint", "agent_seed", "expert"),
)


class _Scored(NamedTuple):
    """What was evaluated, and what the summary and the terminal say of it besides the score."""

    result: Evaluation
    about: dict[str, Any]
    notes: tuple[str, ...] = ()
    programs: Programs | None = None  # of the search


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
        int | None, typer.Option(min=1, max=30, help=f"Rows and columns of the canvas; {DEFAULT_SIDE} by default.")
    ] = None,
    answers_visible: Annotated[
        bool,
        typer.Option(
            "--answers-visible", help="Show the answers to an agent that was trained with them: no ARC score."
        ),
    ] = False,
    expert: Annotated[
        Path | None,
        typer.Option(help="File of an expert's actions or action counts, one line per test input, for the efficiency."),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Episodes per batch.")] = EvaluationConfig.batch_size,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the files; runs/<date>_<time>-evaluation when playing."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="For search: processes side by side. Default: one for each core.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="For search: time for all test inputs; costlier programs are tried while it lasts."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="For search: time limit of a test input.")] = None,
    max_cost: Annotated[
        int | None,
        typer.Option(min=0, max=12, help="For search: cost of a piece, 6 for three functions."),
    ] = None,
    megabytes: Annotated[int | None, typer.Option(min=1, help="For search: memory of a process for images.")] = None,
    guidance: Annotated[
        str | None, typer.Option(help="For search: weights of jaxarc train surrogate=search; likely words come first.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score an agent by the rules of ARC: exact match on test outputs that it never sees, two attempts at each.

    An attempt is the grid that the agent submits, or its working grid at the step limit; or one that a solver returns.

    The folder gets submission.json in the format of the ARC Prize, tasks.jsonl, attempts.html, solve_map.png and
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
        jaxarc evaluate arc-agi-1/training --agent my_solver:solve --json
        jaxarc evaluate arc-agi-1/training --score submission.json
        jaxarc evaluate runs/NAME-surrogate
        jaxarc evaluate runs/NAME-surrogate lookahead.num_eval=512
    """
    folder = RunFolder(locate_run(Path(dataset)))
    if folder.config.is_file():
        from jaxarc.cli.settings import read_experiment
        from jaxarc.cli.surrogate_run import evaluate_run

        experiment = read_experiment(overrides or [], folder.config)
        if not isinstance(experiment, SurrogateExperiment):
            raise typer.BadParameter(
                f"{dataset} is the run of an agent; write jaxarc evaluate DATASET --agent {dataset}",
                param_hint="DATASET",
            )
        _refuse(ctx, _NOT_OF_SURROGATES, "does not go with the run folder of a surrogate; leave it out")
        evaluate_run(folder, experiment, overrides or [], checkpoint or "last", precision or "float32")
        return
    is_solving = agent is not None and (agent == SEARCH or is_solver(agent))
    _refuse(ctx, ("overrides",), "are for the run folder of a surrogate; leave them out")
    if (agent is None) == (score is None):
        raise typer.BadParameter("give an agent to play, or a submission file to score", param_hint="--agent, --score")
    if agent is None or not locate_run(Path(agent)).is_dir():
        _refuse(ctx, ("precision",), "is for a run folder; leave it out")
    if agent != SEARCH:
        _refuse(ctx, _OF_SEARCH, "is for --agent search; leave it out")
    if is_solving:
        _refuse(ctx, _OF_EPISODES, "does not go with a solver, which returns grids and takes no actions; leave it out")
    tasks = load_tasks(dataset)
    if output is None and agent is not None:  # what is scored may stay without files
        output = Path("runs") / f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-evaluation"

    if score is not None:
        scored = _score_file(score, attempts, tasks)
    elif agent == SEARCH:
        limits = {"seconds": seconds, "max_cost": max_cost, "megabytes": megabytes, "guidance": guidance}
        search = SearchConfig(answers=attempts, **{name: one for name, one in limits.items() if one is not None})
        solved, says, programs = search_tasks(tasks, attempts, search, processes, minutes, quiet)
        scored = _solved(solved, says, tasks, attempts)._replace(programs=programs)
    elif agent is not None and is_solving:
        scored = _solved(_call_solver(agent, tasks, attempts, quiet), {}, tasks, attempts)
    else:
        config = EvaluationConfig(attempts=attempts, votes=votes, seed=seed, batch_size=batch_size)
        request = PlayRequest(
            selection_format=selection_format,
            side=canvas,
            max_steps=max_steps,
            answers_visible=answers_visible,
            checkpoint=checkpoint or "best",
            seed=agent_seed,
            precision=precision or "float32",
        )
        scored = _play(load_player(str(agent), tasks, request), tasks, config, request, expert, quiet)

    about = {"dataset": dataset, "submission": str(score)} if agent is None else {"dataset": dataset, "agent": agent}
    # Grids of an agent that saw the answers must not be taken for a submission.
    has_submission = agent is not None and not answers_visible
    title = f"{score} on {tasks.name}" if agent is None else f"{Path(agent).name} on {dataset}"
    about |= scored.about
    if output is None:
        summary = {**about, **score_of(scored.result)}
    else:
        programs = scored.programs or {}
        summary = write_evaluation(output, tasks, scored.result, about, title, programs, has_submission=has_submission)
    if as_json:
        print_json({**summary, "folder": None if output is None else str(output)})
    else:
        console = Console(quiet=quiet)
        for note in scored.notes:
            console.print(note)
        print_evaluation(console, scored.result)
        if output is not None:
            console.print(f"Files: {escape(str(output))}", highlight=False, soft_wrap=True)
    if len(scored.result.rows) < len(tasks):
        warn(f"stopped: {len(scored.result.rows):,} of {len(tasks):,} tasks are done, and only these are counted")
        raise typer.Exit(130)
    if all(row.error is not None for row in scored.result.rows):
        warn("the solver failed at every task")
        raise typer.Exit(1)


def _refuse(ctx: typer.Context, names: tuple[str, ...], why: str) -> None:
    """Refuse options that were given, but mean nothing here."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(param.name or "")
        if param.name in names and source is not None and source.name == "COMMANDLINE":
            option = param.opts[0] if param.opts[0].startswith("-") else param.name.upper()
            raise typer.BadParameter(why, param_hint=option)


def _score_file(file: Path, attempts: int, tasks: TaskSet) -> _Scored:
    submission = read_submission(file, attempts)
    score = score_submission(submission, tasks)
    result = Evaluation(submission, score, rows_of_submission(submission, tasks))
    return _Scored(result, {"dataset": tasks.name, "attempts": attempts, "solved": score.solved})


def _call_solver(name: str, tasks: TaskSet, attempts: int, quiet: bool) -> list[SolvedTask]:
    """Call a solver for every task; Ctrl-C keeps the tasks that are done."""
    solve = load_solver(name)
    done: list[SolvedTask] = []
    # What the solver prints goes to stderr: stdout is for the result.
    bar = progress_bar("tasks", total=len(tasks), is_shown=not quiet)
    with bar as show, contextlib.redirect_stdout(sys.stderr):
        try:
            with signals_interrupt():
                for solved in solve_tasks(solve, tasks, attempts):
                    done.append(solved)
                    show(len(done), len(tasks))
        except KeyboardInterrupt:
            if not done:
                raise
    return done


def _solved(done: list[SolvedTask], says: dict[str, Any], tasks: TaskSet, attempts: int) -> _Scored:
    about = {"attempts": attempts, "tasks_done": len(done), "tasks": len(tasks), **says}
    return _Scored(evaluation_of(done, tasks.name, attempts), about)


def _play(
    player: Player, tasks: TaskSet, config: EvaluationConfig, request: PlayRequest, expert: Path | None, quiet: bool
) -> _Scored:
    if config.votes and isinstance(player.agent, RecordedAgent):
        raise typer.BadParameter(
            "recorded actions fit tasks as they are, not augmented; leave it out", param_hint="--votes"
        )
    with (
        products_in(request.precision),
        progress_bar("episodes", waiting="compiling", is_shown=not quiet) as show,
    ):
        result = play_tasks(
            player.agent,
            _on_canvas(tasks, player.rules.grid_shape),
            player.rules,
            config,
            answers_visible=request.answers_visible,
            action_counts={} if expert is None else read_action_counts(expert),
            on_progress=show,
        )
    about = {
        "answers_visible": request.answers_visible,
        "precision": request.precision,
        "test_pairs_learned": player.num_learned,
        "efficiency": result.efficiency,
        "evaluation": dataclasses.asdict(config),
        "rules": dataclasses.asdict(player.rules),
    }
    notes = []
    if request.answers_visible:
        notes.append("[bold]The answers were visible to the agent:[/] this is no score by the rules of ARC.")
    if player.num_learned is None:
        notes.append("The training tasks of the agent are not here, so it may have learned from these test pairs.")
    elif player.num_learned:
        num_tests = sum(len(task.test) for task in tasks)
        notes.append(f"[bold]The agent learned from {player.num_learned:,} of the {num_tests:,} test pairs.[/]")
    return _Scored(result, about, tuple(notes))


def _on_canvas(tasks: TaskSet, grid_shape: tuple[int, int]) -> TaskSet:
    if any(largest > side for largest, side in zip(tasks.max_grid_shape, grid_shape, strict=True)):
        largest_height, largest_width = tasks.max_grid_shape
        height, width = grid_shape
        raise ConfigValidationError(
            f"jaxarc evaluate: {tasks.name} has grids of up to {largest_height}x{largest_width}, which does not fit "
            f"the canvas {height}x{width}; add --canvas {max(tasks.max_grid_shape)}, or keep what fits: "
            f":max_side={min(grid_shape)} behind the name of the dataset"
        )
    return tasks.fit(grid_shape)
