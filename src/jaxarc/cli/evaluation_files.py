"""The files and tables of ``jaxarc evaluate``: the submission, a line and pictures for each task."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from jaxarc.cli.console import escape, number_table, percent
from jaxarc.datasets import TaskSet
from jaxarc.errors import visible
from jaxarc.evaluation import Evaluation, Score, TaskRow, best_first, write_submission, write_task_rows
from jaxarc.evaluation.submission import SUBMISSION_DIGEST
from jaxarc.files import write_whole

_SHOWN_TASKS: Final = 5  # of the best and of the worst each, and of those with an error


def write_evaluation(
    folder: Path,
    tasks: TaskSet,
    result: Evaluation,
    about: dict[str, Any],
    title: str,
    programs: Mapping[str, list[dict[str, Any]]] = MappingProxyType({}),
    *,
    has_submission: bool,
) -> dict[str, Any]:
    """Write the files of an evaluation, and return the summary.

    Args:
        folder: is made if it is not there.
        tasks: all of them.
        result: what to write.
        about: what the result depends on, the beginning of the summary.
        title: of the pictures; the score is added.
        programs: of the search, for each task and test input.
        has_submission: False writes no submission file, as for grids of an agent that saw the answers.
    """
    from jaxarc.render.attempts import AttemptedTask, draw_overview, write_attempts_page

    if has_submission:
        (num_attempts,) = {len(attempts) for inputs in result.submission.values() for attempts in inputs}
        file = write_submission(folder / "submission.json", result.submission, num_attempts)
        about = {**about, SUBMISSION_DIGEST: hashlib.sha256(file.read_bytes()).hexdigest()}
    write_task_rows(folder / "tasks.jsonl", result.rows)
    if programs:
        rows = [
            json.dumps({"task_id": task_id, "pair_index": index, **facts}) + "\n"
            for task_id, found in programs.items()
            for index, facts in enumerate(found)
        ]
        write_whole(folder / "programs.jsonl", "".join(rows).encode())
    attempted = []
    for row in best_first(result.rows):
        task = tasks.raw_task(row.task_id)
        attempts = result.submission[row.task_id]
        note = row.error or _programs_in_words(programs.get(row.task_id, []))
        attempted.append(AttemptedTask(row.task_id, task.train, task.test, attempts, note))
    heading = f"{title}: {_in_words(result.score)}"
    draw_overview(attempted, folder / "solve_map.png", heading)
    write_attempts_page(attempted, folder / "attempts.html", heading)
    summary = {**about, **score_of(result)}
    write_whole(folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
    return summary


def score_of(result: Evaluation) -> dict[str, Any]:
    """Return the score as a part of a summary."""
    return {"score": result.score.as_dict() if result.score else None}


def print_evaluation(console: Console, result: Evaluation) -> None:
    """Print the score, the best and the worst tasks, and errors of a solver."""
    if result.score is None:
        console.print("The answers are unknown: no score. Hand in submission.json.", highlight=False)
    else:
        console.print(_totals(result.score, result.efficiency))
        console.print(_extremes(result.rows))
    failed = [row for row in result.rows if row.error is not None]
    if failed:
        console.print(
            f"[bold red]errors[/] at {len(failed):,} of {len(result.rows):,} tasks, without an attempt there:"
        )
        for row in failed[:_SHOWN_TASKS]:
            console.print(visible(f"  {row.task_id}: {row.error}"), markup=False, highlight=False, soft_wrap=True)
        if len(failed) > _SHOWN_TASKS:
            console.print("  ... all of them: tasks.jsonl", highlight=False)


def _programs_in_words(found: list[dict[str, Any]]) -> str:
    """Write the program of each attempt in a line; the text of a program says what it does."""
    return "\n".join(
        f"test input {index}, attempt {number}: {answer['program'] or 'no program'}"
        for index, facts in enumerate(found)
        for number, answer in enumerate(facts["answers"], start=1)
    )


def _in_words(score: Score | None) -> str:
    if score is None:
        return "answers unknown"
    return (
        f"{score.solved_outputs} of {score.num_outputs} test outputs, {score.solved_tasks} of {score.num_tasks} tasks"
    )


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


def _extremes(rows: Sequence[TaskRow]) -> Table:
    """The best tasks and the worst, or all where there are few; columns without a value are left out."""
    ranked = best_first(rows)
    is_cut = len(ranked) > 2 * _SHOWN_TASKS
    shown = ranked[:_SHOWN_TASKS] + ranked[-_SHOWN_TASKS:] if is_cut else ranked
    columns = {
        "outputs\nsolved": [f"{row.solved_outputs}/{row.num_outputs}" for row in shown],
        "attempts\nsolving" if shown[0].submitted is None else "episodes\nsolving": [
            f"{row.solves}/{row.attempts}" for row in shown
        ],
        "fewest\nsteps": [_number(row.first_solving_step, "{}") for row in shown],
        "best\nsimilarity": [_number(row.best_similarity, "{:.1%}").replace("%", " %") for row in shown],
        "mean\nsteps": [_number(row.mean_steps, "{:.1f}") for row in shown],
        "efficiency": [_number(row.efficiency, "{:.2f}") for row in shown],
    }
    kept = {name: texts for name, texts in columns.items() if set(texts) != {"-"}}
    title = f"the {_SHOWN_TASKS} best and the {_SHOWN_TASKS} worst of {len(ranked):,} tasks" if is_cut else "all tasks"
    table = number_table("task", *kept, title=title)
    for index, row in enumerate(shown):
        if is_cut and index == _SHOWN_TASKS:
            table.add_section()
        table.add_row(escape(row.task_id), *(texts[index] for texts in kept.values()))
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
