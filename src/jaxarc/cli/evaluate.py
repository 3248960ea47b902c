"""``jaxarc evaluate``: an agent, or a submission file, scored by the rules of ARC."""

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from jaxarc.cli.evaluation_agents import (
    DEFAULT_FORMAT,
    DEFAULT_SIDE,
    PLAIN_AGENTS,
    AgentWished,
    Player,
    RulesWished,
    find_player,
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
from jaxarc.training.saved_agent import WhichCheckpoint

_SHOWN_TASKS: Final = 5  # of the best and of the worst each
_STEPS: Final = "mean steps"


def evaluate(
    dataset: Annotated[str, typer.Argument(help="Name of a dataset, or path of a file or folder of ARC JSON.")],
    agent: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(PLAIN_AGENTS)}, a folder of jaxarc train, or a file of recorded actions.", metavar="AGENT"
        ),
    ] = None,
    checkpoint: Annotated[
        WhichCheckpoint, typer.Option(help="Of a run folder: the one that solved most unseen pairs, or the newest.")
    ] = AgentWished.checkpoint,
    agent_seed: Annotated[
        int | None,
        typer.Option(help="Of a run folder with several seeds: the agent of this one; the first by default."),
    ] = None,
    score: Annotated[Path | None, typer.Option(help="Score this submission file instead of playing.")] = None,
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
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; runs/<date>_<time>-evaluation when playing.")
    ] = None,
) -> None:
    """Score an agent by the rules of ARC: exact match on test outputs that it never sees, two attempts at each.

    An attempt is the grid that the agent submits, or its working grid when time runs out.

    The folder gets submission.json in the format of the ARC Prize, tasks.jsonl, solve_map.png, summary.json.

    With --score nothing is played, and only summary.json is written, if a folder is named.
    """
    if (agent is None) == (score is None):
        raise typer.BadParameter("give an agent to play, or a submission file to score", param_hint="--agent, --score")
    tasks = load_tasks(dataset)
    console = Console()
    if score is not None:
        _score_file(score, attempts, tasks, out, console)
        return
    assert agent is not None
    config = EvaluationConfig(attempts=attempts, votes=votes, seed=seed, batch_size=batch_size)
    wished = RulesWished(selection_format, canvas, max_steps, answers_visible)
    player = find_player(agent, tasks, wished, AgentWished(checkpoint, agent_seed))
    _require_voter(player, votes)
    counts = {} if expert is None else read_action_counts(expert)
    tasks = _on_canvas(tasks, player.rules.grid_shape)
    with _progress() as show:
        result = run_evaluation(
            player.agent,
            tasks,
            player.rules,
            config,
            answers_visible=answers_visible,
            action_counts=counts,
            on_progress=show,
        )
    folder = out or Path("runs") / f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-evaluation"
    about = {"dataset": dataset, "agent": agent, "answers_visible": answers_visible}
    _write(folder, result, player, about, config)
    if answers_visible:
        console.print("[bold]The answers were visible to the agent:[/] this is no score by the rules of ARC.")
    console.print(_totals(result.score, result.efficiency))
    console.print(_extremes(result.rows))
    console.print(f"Files: {escape(str(folder))}", highlight=False, soft_wrap=True)


def _score_file(file: Path, attempts: int, tasks: TaskSet, out: Path | None, console: Console) -> None:
    score = score_submission(read_submission(file, attempts), tasks)
    if out is not None:
        summary = {"dataset": tasks.name, "submission": str(file), "attempts": attempts, "score": score.as_dict()}
        _write_json(out / "summary.json", {**summary, "solved": score.solved})
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


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("compiling", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total, description="episodes")


def _write(folder: Path, result: Evaluation, player: Player, about: dict[str, Any], config: EvaluationConfig) -> None:
    rows = best_first(result.rows)
    if not about["answers_visible"]:  # grids of an agent that saw the answers must not be taken for a submission
        file = write_submission(folder / "submission.json", result.submission)
        about = {**about, SUBMISSION_DIGEST: hashlib.sha256(file.read_bytes()).hexdigest()}
    write_task_rows(folder / "tasks.jsonl", result.rows)
    score, name = result.score, Path(about["agent"]).name
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
    # Drawing takes half a second to import: whoever asks for help, or mistypes, does not wait for it.
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
    table = Table("score", "", "of", "share")
    for column in table.columns[1:]:
        column.justify = "right"
    outputs, tasks = f"{score.num_outputs:,}", f"{score.num_tasks:,}"
    table.add_row("test outputs solved", f"{score.solved_outputs:,}", outputs, _percent(score.output_score))
    table.add_row("tasks solved entirely", f"{score.solved_tasks:,}", tasks, _percent(score.task_score))
    table.add_row("mean share of a task's outputs", "", tasks, _percent(score.mean_task_share))
    if efficiency is not None:
        table.add_row("expert's actions over the agent's", "", "", f"{efficiency:.2f}")
    return table


def _extremes(rows: tuple[TaskRow, ...]) -> Table:
    """The best tasks and the worst, or all where there are few."""
    names = ("outputs\nsolved", "episodes\nsolving", "fewest\nsteps", "best\nsimilarity", "mean\nsteps", "efficiency")
    table = Table("task", *names)
    for column in table.columns[1:]:
        column.justify = "right"
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
            _percent(row.best_similarity),
            f"{row.mean_steps:.1f}",
            "-" if row.efficiency is None else f"{row.efficiency:.2f}",
        )
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
