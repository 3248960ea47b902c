"""What ``jaxarc evaluate`` does once its options are read: find the agent, play or score, write files, print tables."""

import contextlib
import hashlib
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from jaxarc.cli.console import escape, number_table, progress_bar
from jaxarc.cli.place_options import about_place
from jaxarc.cli.players import digest_of_files, records_of
from jaxarc.cli.presenter import show_results
from jaxarc.cli.search_command import Programs, search_tasks
from jaxarc.cli.settings import read_experiment
from jaxarc.cli.signals import signals_interrupt
from jaxarc.config import SearchConfig
from jaxarc.config.agent_training import Precision, WhichCheckpoint
from jaxarc.datasets import TaskSet
from jaxarc.errors import visible
from jaxarc.evaluation import (
    AgentMismatchError,
    Evaluation,
    Score,
    Solver,
    TaskRow,
    best_first,
    read_submission,
    rows_of_submission,
    score_submission,
    write_submission,
    write_task_rows,
)
from jaxarc.evaluation.solver import SolvedTask, evaluation_of, solve_tasks
from jaxarc.evaluation.submission import SUBMISSION_DIGEST
from jaxarc.experts.expert import Caught
from jaxarc.files import user_path, write_whole
from jaxarc.jobs import HERE, Job, Place, remove_results
from jaxarc.lazy import line_of, load_code
from jaxarc.runs import RunFolder, locate_run
from jaxarc.runs.kind import KINDS, SavedRun, kind_of
from jaxarc.runs.presentation import percent


def evaluate_run(
    run: str, overrides: Sequence[str], checkpoint: WhichCheckpoint, precision: Precision, quiet: bool
) -> None:
    """Evaluate what a run has learned on the held-out data of its experiment with overrides, which are written down.

    Its weights are cast to ``precision``.
    """
    folder = RunFolder(locate_run(Path(run)))
    experiment = read_experiment(overrides, folder.config)
    if KINDS[experiment.kind].has_agent:
        raise typer.BadParameter(
            f"{run} is the run of an agent; write jaxarc evaluate DATASET --agent {run}", param_hint="DATASET"
        )
    saved = SavedRun.open(folder, checkpoint)
    kind = kind_of(experiment)
    training = kind.load(experiment)
    show_results(kind.saved(saved).evaluate(training, precision, overrides), folder, Console(quiet=quiet))


def load_solver(name: str, checkpoint: WhichCheckpoint = "best") -> Solver:
    """Return a function by ``module:function`` or ``file.py:function``, or what a run has learned of rules.

    Modules are looked for in the working directory too, and those that a file imports in its own folder.
    """
    if locate_run(Path(name)).is_dir():
        from jaxarc.surrogate import solver_of  # few need it
        from jaxarc.surrogate.held_out import load_surrogate

        return solver_of(load_surrogate(name, checkpoint=checkpoint))
    where, _, attribute = name.rpartition(":")
    # Importing a module runs code of others, which may raise anything.
    with Caught() as caught:
        found = getattr(load_code(where), attribute)
        if callable(found):
            return found
        raise TypeError(f"it is a {type(found).__name__}, and no function")
    line = line_of(caught.error, user_path(where).resolve())
    raise AgentMismatchError(
        f"the solver {name!r} cannot be loaded ({f'line {line}, ' if line else ''}{type(caught.error).__name__}: "
        f"{caught.error}); give file.py:function, or module:function of a module that Python finds from here"
    ) from caught.error


JOBS: Final = "jobs"  # folder of results, until an evaluation is complete
_SHOWN_TASKS: Final = 5  # of the best and of the worst each, and of those with an error


class Scored(NamedTuple):
    """What was evaluated, and what the summary and the terminal say of it besides the score."""

    result: Evaluation
    about: dict[str, Any]
    notes: tuple[str, ...] = ()
    programs: Programs | None = None  # of the search


def score_file(file: Path, attempts: int, tasks: TaskSet) -> Scored:
    """Score a submission file."""
    submission = read_submission(file, attempts)
    score = score_submission(submission, tasks)
    result = Evaluation(submission, score, rows_of_submission(submission, tasks))
    return Scored(result, {"dataset": tasks.name, "attempts": attempts, "solved": score.solved})


def search(
    tasks: TaskSet, config: SearchConfig, place: Place, minutes: float | None, folder: Path, quiet: bool
) -> Scored:
    """Search programs for every task; Ctrl-C keeps the tasks that are done."""
    solved, says, programs = search_tasks(tasks, config.answers, config, place, minutes, folder / JOBS, quiet)
    return _solved(solved, says, tasks, config.answers)._replace(programs=programs)


def _about_solver(name: str, checkpoint: WhichCheckpoint) -> str:
    """Name a solver with a hash of its file, or of the records of its run's checkpoints."""
    solve, records = load_solver(name, checkpoint), records_of(name)
    digest = digest_of_files(records or [Path(inspect.getsourcefile(inspect.unwrap(solve)) or "")])
    return f"{name} {checkpoint} {digest}" if records else f"{name} {digest}"


def call_solver(
    name: str,
    checkpoint: WhichCheckpoint,
    tasks: TaskSet,
    attempts: int,
    place: Place,
    seconds: float | None,
    folder: Path,
    quiet: bool,
) -> Scored:
    """Call a solver for every task, in a process of its own if seconds are given; Ctrl-C keeps what is done."""
    if seconds is not None and place == HERE:
        place = Place("local", 1)
    load = Job(load_solver, (name, checkpoint))
    solving = solve_tasks(load, tasks, attempts, place, seconds, folder / JOBS, _about_solver(name, checkpoint))
    says = {} if place == HERE else {**about_place(place), "seconds": seconds}
    done: list[SolvedTask] = []
    # What the solver prints goes to stderr: stdout is for the result.
    bar = progress_bar("tasks", total=len(tasks), is_shown=not quiet)
    with bar as show, contextlib.redirect_stdout(sys.stderr):
        try:
            with signals_interrupt():
                for solved in solving:
                    done.append(solved)
                    show(len(done), len(tasks))
        except KeyboardInterrupt:
            if not done:
                raise
    places = {task.task_id: place for place, task in enumerate(tasks)}
    return _solved(sorted(done, key=lambda one: places[one.task.task_id]), says, tasks, attempts)


def _solved(done: list[SolvedTask], says: dict[str, Any], tasks: TaskSet, attempts: int) -> Scored:
    about = {"attempts": attempts, "tasks_done": len(done), "tasks": len(tasks), **says}
    return Scored(evaluation_of(done, tasks.name, attempts), about)


def write(
    folder: Path, tasks: TaskSet, scored: Scored, about: dict[str, Any], title: str, *, has_submission: bool
) -> dict[str, Any]:
    """Write the files of an evaluation, and return the summary."""
    result = scored.result
    programs = scored.programs or {}
    from jaxarc.render.attempts import AttemptedTask, write_attempts_page

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
        found = programs.get(row.task_id, [])
        words = _programs_in_words(found), row.error or "", "error" if row.error else _why_missed(found)
        attempted.append(AttemptedTask(row.task_id, task.train, task.test, attempts, *words))
    heading = f"{title}: {_in_words(result.score)}"
    write_attempts_page(attempted, folder / "attempts.html", heading)
    summary = {**about, **score_of(result)}
    write_whole(folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
    if len(result.rows) == len(tasks):
        remove_results(folder / JOBS)
    return summary


def score_of(result: Evaluation) -> dict[str, Any]:
    """Return the score as a part of a summary."""
    return {"score": result.score.as_dict() if result.score else None}


def show(console: Console, result: Evaluation) -> None:
    """Print the score, the best and the worst tasks, and errors of a solver."""
    if result.score is None:
        console.print("The answers are unknown: no score. Hand in submission.json.", highlight=False)
    else:
        console.print(_totals(result.score))
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


def _why_missed(found: list[dict[str, Any]]) -> str:
    """Return why the search missed the first test output that it did not solve; nothing where it solved all."""
    for facts in found:
        fits = [answer["fits"] for answer in facts["answers"]]
        if any(answer["right"] in (True, None) for answer in facts["answers"]):
            continue
        if any(map(all, fits)):
            return "all"
        if any(map(any, fits)):
            return "some"
        return "limit" if facts["at_a_limit"] else "none"
    return ""


def _in_words(score: Score | None) -> str:
    if score is None:
        return "answers unknown"
    return (
        f"{score.solved_outputs} of {score.num_outputs} test outputs, {score.solved_tasks} of {score.num_tasks} tasks"
    )


def _totals(score: Score) -> Table:
    table = number_table("score", "", "of", "share")
    outputs = f"{score.num_outputs:,}"
    tasks = f"{score.num_tasks:,}"
    table.add_row("test outputs solved", f"{score.solved_outputs:,}", outputs, percent(score.output_score))
    table.add_row("tasks solved entirely", f"{score.solved_tasks:,}", tasks, percent(score.task_score))
    table.add_row("mean share of a task's outputs", "", tasks, percent(score.mean_task_share))
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
