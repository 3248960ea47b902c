"""``jaxarc evaluate``: an agent, or a submission file, scored by the rules of ARC."""

import contextlib
import dataclasses
import datetime
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape

from jaxarc.cli.console import JsonOption, QuietOption, print_json, progress_bar, warn
from jaxarc.cli.evaluation_files import BenchmarkFiles, benchmark_files, print_evaluation, write_evaluation
from jaxarc.cli.players import (
    DEFAULT_FORMAT,
    DEFAULT_SIDE,
    PLAIN_AGENTS,
    SEARCH,
    AgentRequest,
    Player,
    RulesOverride,
    is_solver,
    load_player,
    load_solver,
)
from jaxarc.cli.processes import signals_interrupt
from jaxarc.cli.search import search_tasks
from jaxarc.config import ConfigValidationError, SearchConfig
from jaxarc.config.environment import SELECTION_FORMATS
from jaxarc.config.training import Precision
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
from jaxarc.evaluation import evaluate as run_evaluation
from jaxarc.evaluation.solver import SolvedTask, evaluation_of, solve_tasks
from jaxarc.evaluation.task_rows import ActionCounts
from jaxarc.nn import products_in
from jaxarc.runs import RunFolder
from jaxarc.runs.state import WhichCheckpoint
from jaxarc.training.surrogates import SurrogateExperiment


def evaluate(
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
            "module:function of a solver solve(train, test_input) that returns grids.",
            metavar="AGENT",
        ),
    ] = None,
    checkpoint: Annotated[
        WhichCheckpoint | None,
        typer.Option(
            help="For a run folder: the best on unseen pairs, or the newest. Default: best; last for a surrogate."
        ),
    ] = None,
    agent_seed: Annotated[
        int | None,
        typer.Option(help="For a run folder with several seeds: the agent of this seed. Default: the first."),
    ] = None,
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
    submission_format: Annotated[
        Literal["kaggle", "arc-prize"],
        typer.Option(
            help="kaggle: submission.json; arc-prize: also a file for each task in the folder arc-prize, as the ARC "
            "Prize's arc-agi-benchmarking reads them."
        ),
    ] = "kaggle",
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
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="For a surrogate: the run folder of an agent that plays the same pairs; may be repeated."),
    ] = None,
) -> None:
    """Score an agent by the rules of ARC: exact match on test outputs that it never sees, two attempts at each.

    An attempt is the grid that the agent submits, or its working grid at the step limit; or one that a solver returns.

    The folder gets submission.json in the format of the ARC Prize, tasks.jsonl, attempts.html, solve_map.png and
    summary.json.

    A hidden test set, a challenges file without its solutions, gives a submission and no score.

    With --score nothing is played; --output writes all files except the submission. With --submission-format arc-prize
    the scored submission is written in that format.

    With the run folder of a surrogate, evaluate the surrogate on held-out examples and pairs.

    This measures agreement with the expert, regret, calibration, single steps and open-loop errors.

    Its run folder gets evaluation.json and, of candidates, calibration.png. Overrides measure it on other data.

    Examples:
        jaxarc evaluate arc-agi-1/training --agent search --minutes 10
        jaxarc evaluate arc-agi-1/training --agent random
        jaxarc evaluate arc-agi-1/evaluation --agent runs/NAME --answers-visible
        jaxarc evaluate arc-agi-1/training --agent my_solver:solve --json
        jaxarc evaluate arc-agi-1/training --score submission.json
        jaxarc evaluate arc-agi-1/training --score submission.json --submission-format arc-prize -o scored
        jaxarc evaluate runs/NAME-surrogate
        jaxarc evaluate runs/NAME-surrogate lookahead.num_eval=512
    """
    run = _surrogate_run(dataset, overrides or [])
    if run is not None:
        given = {
            "--agent": agent,
            "--score": score,
            "--json": as_json,
            "--submission-format": submission_format != "kaggle",
        }
        _require_unused(given, "does not go with the run folder of a surrogate; leave it out")
        from jaxarc.cli.surrogate_run import evaluate_run

        evaluate_run(*run, overrides or [], checkpoint or "last", against or [], precision or "float32")
        return
    if overrides:
        raise typer.BadParameter("are for the run folder of a surrogate; leave them out", param_hint="OVERRIDES")
    if against:
        raise typer.BadParameter("is for the run folder of a surrogate; leave it out", param_hint="--against")
    if (agent is None) == (score is None):
        raise typer.BadParameter("give an agent to play, or a submission file to score", param_hint="--agent, --score")
    if agent is None or not Path(agent).is_dir():
        _require_unused({"--precision": precision}, "is for a run folder; leave it out")
    tasks = load_tasks(dataset)
    limits = {"seconds": seconds, "max_cost": max_cost, "megabytes": megabytes}
    if agent != SEARCH:
        given = {"--processes": processes, "--minutes": minutes, "--seconds": seconds}
        given |= {"--max-cost": max_cost, "--megabytes": megabytes}
        _require_unused(given, "is for --agent search; leave it out")
    num_learned: int | None = 0
    folder = output or Path("runs") / f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-evaluation"
    benchmark = None
    if submission_format == "arc-prize":
        _require_unused({"--answers-visible": answers_visible}, "gives no submission; leave it out")
        if agent is None and output is None:
            raise typer.BadParameter("name the folder for the files of arc-prize", param_hint="--output")
        benchmark = benchmark_files(folder, tasks, Path(agent or "submission").name)
    if agent is None:
        assert score is not None
        folder = output  # what is scored may stay without files
        result, summary = _score_file(score, attempts, tasks, output, benchmark)
    elif agent == SEARCH or is_solver(agent):
        given = {
            "--votes": votes,
            "--max-steps": max_steps,
            "--format": selection_format,
            "--canvas": canvas,
            "--answers-visible": answers_visible,
            "--checkpoint": checkpoint,
            "--agent-seed": agent_seed,
            "--expert": expert,
        }
        _require_unused(given, "does not go with a solver, which returns grids and takes no actions; leave it out")
        if agent == SEARCH:
            search = SearchConfig(answers=attempts, **{name: one for name, one in limits.items() if one is not None})
            run = partial(search_tasks, tasks, attempts, search, processes, minutes, quiet)
        else:
            run = partial(_run_solver, agent, tasks, attempts, quiet)
        result, summary = _evaluate_solver(run, agent, tasks, attempts, folder, dataset, benchmark)
    else:
        config = EvaluationConfig(attempts=attempts, votes=votes, seed=seed, batch_size=batch_size)
        override = RulesOverride(selection_format, canvas, max_steps, answers_visible)
        request = AgentRequest(checkpoint or "best", agent_seed, precision or "float32")
        player = load_player(agent, tasks, override, request)
        _require_voter(player, votes)
        num_learned = player.num_learned
        tasks = _on_canvas(tasks, player.rules.grid_shape)
        counts = {} if expert is None else read_action_counts(expert)
        with products_in(request.precision):
            result = _play(player, tasks, config, answers_visible, counts, quiet)
        about = {
            "dataset": dataset,
            "agent": agent,
            "answers_visible": answers_visible,
            "precision": request.precision,
            "test_pairs_learned": num_learned,
            "efficiency": result.efficiency,
            "evaluation": dataclasses.asdict(config),
            "rules": dataclasses.asdict(player.rules),
        }
        # Grids of an agent that saw the answers must not be taken for a submission.
        title = f"{Path(agent).name} on {dataset}"
        summary = write_evaluation(
            folder, result, tasks, about, title, has_submission=not answers_visible, benchmark=benchmark
        )
    console = Console(quiet=quiet)
    if as_json:
        print_json({**summary, "folder": None if folder is None else str(folder)})
    else:
        if answers_visible:
            console.print("[bold]The answers were visible to the agent:[/] this is no score by the rules of ARC.")
        if num_learned is None:
            console.print("The training tasks of the agent are not here, so it may have learned from these test pairs.")
        elif num_learned:
            num_tests = sum(len(task.test) for task in tasks)
            console.print(f"[bold]The agent learned from {num_learned:,} of the {num_tests:,} test pairs.[/]")
        print_evaluation(console, result)
        if folder is not None:
            console.print(f"Files: {escape(str(folder))}", highlight=False, soft_wrap=True)
    if len(result.rows) < len(tasks):
        warn(f"stopped: {len(result.rows):,} of {len(tasks):,} tasks are done, and only these are counted")
        raise typer.Exit(130)


def _surrogate_run(path: str, overrides: list[str]) -> tuple[RunFolder, SurrogateExperiment] | None:
    """Return the run of a surrogate in a folder; None for anything else, such as a folder of tasks.

    Raises:
        ConfigValidationError: the folder holds a run whose config cannot be read, or an override does not fit.
        typer.BadParameter: the folder holds the run of an agent.
    """
    folder = RunFolder(Path(path))
    if not folder.config.is_file():
        return None
    from jaxarc.cli.settings import read_any_experiment

    experiment = read_any_experiment(overrides, folder.config)
    if isinstance(experiment, SurrogateExperiment):
        return folder, experiment
    raise typer.BadParameter(
        f"{path} is the run of an agent; write jaxarc evaluate DATASET --agent {path}", param_hint="DATASET"
    )


def _score_file(
    file: Path, attempts: int, tasks: TaskSet, output: Path | None, benchmark: BenchmarkFiles | None
) -> tuple[Evaluation, dict[str, Any]]:
    submission = read_submission(file, attempts)
    score = score_submission(submission, tasks)
    result = Evaluation(submission, score, rows_of_submission(submission, tasks))
    about = {"dataset": tasks.name, "submission": str(file), "attempts": attempts, "solved": score.solved}
    if output is None:
        return result, {**about, "score": score.as_dict()}
    title = f"{file} on {tasks.name}"
    return result, write_evaluation(output, result, tasks, about, title, has_submission=False, benchmark=benchmark)


def _evaluate_solver(
    run: Callable[[], tuple[list[SolvedTask], dict[str, Any]]],
    name: str,
    tasks: TaskSet,
    attempts: int,
    folder: Path,
    dataset: str,
    benchmark: BenchmarkFiles | None,
) -> tuple[Evaluation, dict[str, Any]]:
    done, says = run()
    result = evaluation_of(done, tasks.name, attempts)
    counts = {"tasks_done": len(done), "tasks": len(tasks)}
    about = {"dataset": dataset, "agent": name, "attempts": attempts, **counts, **says}
    title = f"{name} on {dataset}"
    return result, write_evaluation(folder, result, tasks, about, title, has_submission=True, benchmark=benchmark)


def _run_solver(name: str, tasks: TaskSet, attempts: int, quiet: bool) -> tuple[list[SolvedTask], dict[str, Any]]:
    """Call a solver for every task; Ctrl-C keeps the tasks that are done."""
    solve = load_solver(name)
    done = []
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
    return done, {}


def _play(
    player: Player,
    tasks: TaskSet,
    config: EvaluationConfig,
    answers_visible: bool,
    counts: ActionCounts,
    quiet: bool,
) -> Evaluation:
    with progress_bar("episodes", waiting="compiling", is_shown=not quiet) as show:
        return run_evaluation(
            player.agent,
            tasks,
            player.rules,
            config,
            answers_visible=answers_visible,
            action_counts=counts,
            on_progress=show,
        )


def _require_unused(options: dict[str, Any], why: str) -> None:
    for option, value in options.items():
        if value not in (None, False, 0):
            raise typer.BadParameter(why, param_hint=option)


def _require_voter(player: Player, votes: int) -> None:
    if votes and isinstance(player.agent, RecordedAgent):
        raise typer.BadParameter(
            "recorded actions fit tasks as they are, not augmented; leave it out", param_hint="--votes"
        )


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
