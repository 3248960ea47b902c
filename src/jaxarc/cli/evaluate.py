"""``jaxarc evaluate``: an agent, or a submission file, scored by the rules of ARC."""

import dataclasses
import datetime
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.console import number_table, percent, progress_bar
from jaxarc.cli.players import (
    DEFAULT_FORMAT,
    DEFAULT_SIDE,
    PLAIN_AGENTS,
    AgentRequest,
    Player,
    RulesOverride,
    load_player,
)
from jaxarc.config import ConfigValidationError
from jaxarc.config.environment import SELECTION_FORMATS
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.evaluation import (
    Evaluation,
    EvaluationConfig,
    RecordedAgent,
    Score,
    TaskRow,
    best_first,
    read_action_counts,
    read_submission,
    score_submission,
    write_submission,
    write_task_rows,
)
from jaxarc.evaluation import evaluate as run_evaluation
from jaxarc.evaluation.submission import SUBMISSION_DIGEST
from jaxarc.files import write_whole
from jaxarc.training import RunFolder
from jaxarc.training.saved_agent import WhichCheckpoint
from jaxarc.training.surrogates import SurrogateExperiment

_SHOWN_TASKS: Final = 5  # of the best and of the worst each
_STEPS: Final = "mean steps"


def evaluate(
    dataset: Annotated[
        str,
        typer.Argument(
            help="Name of a dataset, or path of a file or folder of ARC JSON; or the run folder of a surrogate.",
            metavar="DATASET|RUN",
        ),
    ],
    agent: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(PLAIN_AGENTS)}, a folder of jaxarc train, or a file of recorded actions.", metavar="AGENT"
        ),
    ] = None,
    checkpoint: Annotated[
        WhichCheckpoint | None,
        typer.Option(
            help="Of a run folder: the best on unseen pairs, or the newest. By default best; last for a surrogate."
        ),
    ] = None,
    agent_seed: Annotated[
        int | None,
        typer.Option(help="Of a run folder with several seeds: the agent of this one; the first by default."),
    ] = None,
    score: Annotated[
        Path | None, typer.Option(exists=True, help="Score this submission file instead of playing.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts at each test input.")] = EvaluationConfig.attempts,
    votes: Annotated[
        int, typer.Option(min=0, help="Augmented episodes of each test input that vote for the attempts; 0: none.")
    ] = EvaluationConfig.votes,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = EvaluationConfig.seed,
    max_steps: Annotated[
        int | None, typer.Option(min=1, help="Steps after which the working grid counts; the agent's own by default.")
    ] = None,
    selection_format: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(SELECTION_FORMATS)}; {DEFAULT_FORMAT} by default.")
    ] = None,
    canvas: Annotated[
        int | None, typer.Option(min=1, max=30, help=f"Rows and columns of the canvas; {DEFAULT_SIDE} by default.")
    ] = None,
    answers_visible: Annotated[
        bool, typer.Option("--answers-visible", help="Show the answers to an agent that was trained so: no ARC score.")
    ] = False,
    expert: Annotated[
        Path | None, typer.Option(help="An expert's actions or action counts, a line each, for the efficiency.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Episodes side by side.")] = EvaluationConfig.batch_size,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the files; runs/<date>_<time>-evaluation when playing."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            help="Of a surrogate: the run folder of an agent that plays the same pairs; may be given several times."
        ),
    ] = None,
) -> None:
    """Score an agent by the rules of ARC: exact match on test outputs that it never sees, two attempts at each.

    An attempt is the grid that the agent submits, or its working grid when time runs out.

    The folder gets submission.json in the format of the ARC Prize, tasks.jsonl, solve_map.png, summary.json.

    With --score nothing is played, and only summary.json is written, if a folder is named.

    Given the run folder of a surrogate, evaluate that surrogate on held-out examples and pairs.

    That measures agreement with the expert, regret, calibration, single steps and open-loop errors.

    Its run folder gets evaluation.json and, of candidates, calibration.png.
    """
    run = _surrogate_run(dataset)
    if run is not None:
        _evaluate_surrogate(run, agent, score, checkpoint or "last", against or [])
        return
    if against:
        raise typer.BadParameter("is for the run folder of a surrogate; leave it out", param_hint="--against")
    if (agent is None) == (score is None):
        raise typer.BadParameter("give an agent to play, or a submission file to score", param_hint="--agent, --score")
    tasks = load_tasks(dataset)
    console = Console()
    if score is not None:
        _score_file(score, attempts, tasks, output, console)
        return
    assert agent is not None
    config = EvaluationConfig(attempts=attempts, votes=votes, seed=seed, batch_size=batch_size)
    override = RulesOverride(selection_format, canvas, max_steps, answers_visible)
    player = load_player(agent, tasks, override, AgentRequest(checkpoint or "best", agent_seed))
    _require_voter(player, votes)
    counts = {} if expert is None else read_action_counts(expert)
    tasks = _on_canvas(tasks, player.rules.grid_shape)
    with progress_bar("episodes", waiting="compiling") as show:
        result = run_evaluation(
            player.agent,
            tasks,
            player.rules,
            config,
            answers_visible=answers_visible,
            action_counts=counts,
            on_progress=show,
        )
    folder = output or Path("runs") / f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-evaluation"
    about = {"dataset": dataset, "agent": agent, "answers_visible": answers_visible}
    _write(folder, result, player, about, config)
    if answers_visible:
        console.print("[bold]The answers were visible to the agent:[/] this is no score by the rules of ARC.")
    console.print(_totals(result.score, result.efficiency))
    console.print(_extremes(result.rows))
    console.print(f"Files: {escape(str(folder))}", highlight=False, soft_wrap=True)


judge_app = typer.Typer(add_completion=False)


@judge_app.command("judge", context_settings={"ignore_unknown_options": True})
def judge(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Say how this command is called now."""
    raise ConfigValidationError(f"jaxarc judge has a new name; write: jaxarc evaluate {' '.join(arguments or ['RUN'])}")


def _surrogate_run(path: str) -> tuple[RunFolder, SurrogateExperiment] | None:
    """Return the run of a surrogate in a folder; None for anything else, such as a folder of tasks.

    Raises:
        ConfigValidationError: the folder holds a run whose config cannot be read.
        typer.BadParameter: the folder holds the run of an agent.
    """
    folder = RunFolder(Path(path))
    if not folder.config.is_file():
        return None
    from jaxarc.cli.settings import read_any_experiment

    experiment = read_any_experiment([], folder.config)
    if isinstance(experiment, SurrogateExperiment):
        return folder, experiment
    raise typer.BadParameter(
        f"{path} is the run of an agent; write jaxarc evaluate DATASET --agent {path}", param_hint="DATASET"
    )


def _evaluate_surrogate(
    run: tuple[RunFolder, SurrogateExperiment],
    agent: str | None,
    score: Path | None,
    checkpoint: WhichCheckpoint,
    against: list[Path],
) -> None:
    for option, is_given in {"--agent": agent is not None, "--score": score is not None}.items():
        if is_given:
            raise typer.BadParameter("does not go with the run folder of a surrogate; leave it out", param_hint=option)
    from jaxarc.cli.surrogate_run import evaluate_run

    folder, experiment = run
    evaluate_run(folder, experiment, checkpoint, against)


def _score_file(file: Path, attempts: int, tasks: TaskSet, output: Path | None, console: Console) -> None:
    score = score_submission(read_submission(file, attempts), tasks)
    if output is not None:
        summary = {"dataset": tasks.name, "submission": str(file), "attempts": attempts, "score": score.as_dict()}
        _write_json(output / "summary.json", {**summary, "solved": score.solved})
    console.print(_totals(score, None))


def _require_voter(player: Player, votes: int) -> None:
    if votes and isinstance(player.agent, RecordedAgent):
        raise typer.BadParameter(
            "recorded actions fit tasks as they are, not augmented; leave it out", param_hint="--votes"
        )


def _on_canvas(tasks: TaskSet, grid_shape: tuple[int, int]) -> TaskSet:
    if any(largest > side for largest, side in zip(tasks.max_grid_shape, grid_shape, strict=True)):
        (largest_height, largest_width), (height, width) = tasks.max_grid_shape, grid_shape
        raise ConfigValidationError(
            f"jaxarc evaluate: {tasks.name} has grids of up to {largest_height}x{largest_width}, which does not fit "
            f"the canvas {height}x{width}; add --canvas {max(tasks.max_grid_shape)}, or keep what fits: "
            f":max_side={min(grid_shape)} behind the name of the dataset"
        )
    return tasks.fit(grid_shape)


def _write(folder: Path, result: Evaluation, player: Player, about: dict[str, Any], config: EvaluationConfig) -> None:
    rows = best_first(result.rows)
    if not about["answers_visible"]:  # grids of an agent that saw the answers must not be taken for a submission
        file = write_submission(folder / "submission.json", result.submission)
        about = {**about, SUBMISSION_DIGEST: hashlib.sha256(file.read_bytes()).hexdigest()}
    write_task_rows(folder / "tasks.jsonl", result.rows)
    score = result.score
    name = Path(about["agent"]).name
    title = (
        f"{name} on {about['dataset']}: {score.solved_outputs} of {score.num_outputs} test outputs, "
        f"{score.solved_tasks} of {score.num_tasks} tasks"
    )
    _draw_map(rows, player.rules.environment.max_episode_steps, folder / "solve_map.png", title)
    summary = {
        **about,
        "score": score.as_dict(),
        "efficiency": result.efficiency,
        "evaluation": dataclasses.asdict(config),
        "rules": dataclasses.asdict(player.rules),
    }
    _write_json(folder / "summary.json", summary)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())


def _draw_map(rows: list[TaskRow], max_steps: int, path: Path, title: str) -> None:
    """Draw shades and texts, column by column."""
    # Matplotlib takes half a second to import; a mistyped command must not wait for it.
    from jaxarc.render.figures import SolveMap, draw_solve_map

    columns: dict[str, list[tuple[float | None, str]]] = {
        "outputs solved": [(r.solved_outputs / r.num_outputs, f"{r.solved_outputs}/{r.num_outputs}") for r in rows],
        "episodes solving": [(r.solves / r.attempts, f"{r.solves}/{r.attempts}") for r in rows],
        "best similarity": [(r.best_similarity, f"{int(100 * r.best_similarity)} %") for r in rows],
        _STEPS: [(r.mean_steps / max_steps, f"{r.mean_steps:.0f}") for r in rows],
    }
    if any(r.efficiency is not None for r in rows):
        columns["efficiency"] = [
            (None, "") if r.efficiency is None else (min(r.efficiency, 1.0), f"{r.efficiency:.2f}") for r in rows
        ]
    cells = list(zip(*columns.values(), strict=True))
    table = SolveMap(
        task_ids=[r.task_id for r in rows],
        columns=list(columns),
        shades=[[shade for shade, _ in row] for row in cells],
        texts=[[text for _, text in row] for row in cells],
        plain=[_STEPS],
    )
    draw_solve_map(table, path, title)


def _totals(score: Score, efficiency: float | None) -> Table:
    table = number_table("score", "", "of", "share")
    outputs = f"{score.num_outputs:,}"
    tasks = f"{score.num_tasks:,}"
    table.add_row("test outputs solved", f"{score.solved_outputs:,}", outputs, percent(score.output_score))
    table.add_row("tasks solved entirely", f"{score.solved_tasks:,}", tasks, percent(score.task_score))
    table.add_row("mean share of a task's outputs", "", tasks, percent(score.mean_task_share))
    if efficiency is not None:
        table.add_row("expert's actions over the agent's", "", "", f"{efficiency:.2f}")
    return table


def _extremes(rows: tuple[TaskRow, ...]) -> Table:
    """The best tasks and the worst, or all where there are few."""
    names = ("outputs\nsolved", "episodes\nsolving", "fewest\nsteps", "best\nsimilarity", "mean\nsteps", "efficiency")
    table = number_table("task", *names)
    ranked = best_first(rows)
    shown = ranked if len(ranked) <= 2 * _SHOWN_TASKS else ranked[:_SHOWN_TASKS] + ranked[-_SHOWN_TASKS:]
    for place, row in enumerate(shown):
        if len(shown) < len(ranked) and place == _SHOWN_TASKS:
            table.add_section()
        table.add_row(
            escape(row.task_id),
            f"{row.solved_outputs}/{row.num_outputs}",
            f"{row.solves}/{row.attempts}",
            "-" if row.first_solving_step is None else str(row.first_solving_step),
            percent(row.best_similarity),
            f"{row.mean_steps:.1f}",
            "-" if row.efficiency is None else f"{row.efficiency:.2f}",
        )
    return table
