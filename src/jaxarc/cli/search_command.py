"""``jaxarc search``: programs that explain a task, in words and pictures; and the search as an agent."""

import contextlib
import dataclasses
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.progress import TextColumn, TimeElapsedColumn

from jaxarc.cli.console import DatasetOption, JsonOption, escape, print_json, print_line, progress_bar
from jaxarc.cli.picture_files import RENDERERS, bytes_of, require_kind
from jaxarc.cli.place_options import about_place
from jaxarc.cli.signals import signals_interrupt
from jaxarc.config import SearchConfig
from jaxarc.datasets import TaskSet
from jaxarc.datasets.catalogue import find_task
from jaxarc.errors import visible
from jaxarc.evaluation.solver import SolvedTask
from jaxarc.files import write_whole
from jaxarc.jobs import Place, host_cores
from jaxarc.render.layout import draw_pairs
from jaxarc.render.terminal import render_grid
from jaxarc.runs.presentation import percent
from jaxarc.search import Found, ProgramError, Question, SearchResult, solve
from jaxarc.search.rounds import search_at
from jaxarc.search.words import function_rows
from jaxarc.tasks.raw_task import RawTask


def _print_functions(asked: bool) -> None:
    if asked:
        for row in function_rows():
            typer.echo(row)
        raise typer.Exit


def search(
    name: Annotated[str, typer.Argument(help="Id or title of a task, such as 007bbfb7.", metavar="TASK")],
    dataset: DatasetOption = None,
    answers: Annotated[int, typer.Option(min=1, max=100, help="Different answers.")] = SearchConfig.answers,
    seconds: Annotated[float, typer.Option(min=0, help="Time limit of a test input.")] = SearchConfig.seconds,
    max_cost: Annotated[
        int, typer.Option(min=0, max=12, help="Cost of a piece: an image function costs 2, one of a list 1.")
    ] = SearchConfig.max_cost,
    max_states: Annotated[
        int, typer.Option(min=1, max=5_000_000, help="Different states of a search.")
    ] = SearchConfig.max_states,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"Draw what the best program does: {', '.join(RENDERERS)}."),
    ] = None,
    functions: Annotated[
        bool,
        typer.Option("--functions", callback=_print_functions, is_eager=True, help="List all functions of programs."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Search programs that explain the demonstrations of a task, and answer its test inputs.

    The answers of the tests are not used; where they are known, the result says which of its answers are right.

    Examples:
        jaxarc search 007bbfb7
        jaxarc search 007bbfb7 --json
        jaxarc search 007bbfb7 -o found.svg
        jaxarc search --functions
        jaxarc evaluate FOLDER --agent search     (all tasks of a folder or data set)
    """
    kind = None if output is None else require_kind(output, *RENDERERS)
    config = SearchConfig(answers=answers, seconds=seconds, max_cost=max_cost, max_states=max_states)
    tasks, _, task_id = find_task(name, dataset)
    task = tasks.raw_task(task_id)
    if dataset is None and len(tasks) > 1 and name.casefold() not in (task_id.casefold(), task.title.casefold()):
        raise typer.BadParameter(
            f"{name!r} has {len(tasks):,} tasks; write jaxarc search {task_id} --dataset {name}, or, for all of them, "
            f"jaxarc evaluate {name} --agent search",
            param_hint="TASK",
        )
    results = [_searched(task, index, config) for index in range(len(task.test))]
    answered = [(result, answer) for result, (_, answer) in zip(results, task.test, strict=True)]
    if output is not None and kind is not None:  # first, so that it is there even if the text fails
        title = f"{task_id}: {results[0].answers[0].program or 'no program'}"
        drawing = draw_pairs(RENDERERS[kind], _pictures(task, results), title)
        write_whole(output, bytes_of(drawing, title))
    if as_json:
        print_json(
            {
                "id": task_id,
                "dataset": tasks.name,
                "test": [_compared(result.as_dict(), answer) for result, answer in answered],
            }
        )
    else:
        console = Console(highlight=False)
        console.print(visible(f"{task_id} in {tasks.name}"), markup=False, style="bold")
        for index, (result, answer) in enumerate(answered):
            _print_result(console, task, index, result, answer)
        if output is not None:
            console.print()
            print_line(console, f"Picture: {output}")


def _searched(task: RawTask, index: int, config: SearchConfig) -> SearchResult:
    """Search one test input; a terminal shows the words that were applied and the seconds so far."""
    columns = TextColumn("{task.completed:,.0f} words applied"), TimeElapsedColumn()
    with progress_bar(f"searching test {index}", *columns) as show:
        return solve(task.train, task.test[index][0], config, on_progress=lambda applied: show(applied, None))


Programs: TypeAlias = dict[str, list[dict[str, Any]]]
"""Of each task, what was found at each test input: :meth:`SearchResult.as_dict`, and which answers are right."""


def search_tasks(
    tasks: TaskSet,
    attempts: int,
    config: SearchConfig,
    place: Place,
    minutes: float | None,
    folder: Path,
    quiet: bool,
) -> tuple[list[SolvedTask], dict[str, Any], Programs]:
    """Search the answers of all test inputs, in the order of the tasks; Ctrl-C keeps the tasks that are done.

    Args:
        tasks: with or without the answers of the tests.
        attempts: at each test input.
        config: limits of each.
        place: where; :data:`~jaxarc.jobs.HERE` is a process for each core.
        minutes: see :func:`search_at`.
        folder: of the results, so that the same call goes on after a kill.
        quiet: show no bar.

    Returns:
        The tasks that are done, what the search says of itself, and for each of these tasks the programs of its test
        inputs.
    """
    questions = [
        Question(task.task_id, index, task.train, source)
        for task in tasks
        for index, (source, _) in enumerate(task.test)
    ]
    found: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    done = 0
    if place.engine == "here":
        place = Place("local", host_cores())
    place = place._replace(shards=min(place.shards, len(questions)))
    with progress_bar("test inputs", total=len(questions), is_shown=not quiet) as show:
        try:
            with signals_interrupt():
                for question, result in search_at(questions, config, place, minutes, folder, tasks.name):
                    found[question.task_id][question.test_index] = result
                    done += 1
                    show(done, len(questions))
        except KeyboardInterrupt:
            if not any(len(found[task.task_id]) == len(task.test) for task in tasks):
                raise
    solved = []
    programs: Programs = {}
    for task in tasks:
        results = found[task.task_id]
        if len(results) == len(task.test):
            in_order = [results[index] for index in range(len(task.test))]
            grids = [[np.array(one["grid"], np.int8) for one in facts["answers"]] for facts in in_order]
            faults = [facts["fault"] for facts in in_order]
            filled = [
                [] if fault else some[:attempts] + some[:1] * (attempts - len(some))
                for some, fault in zip(grids, faults, strict=True)
            ]
            errors = [f"test input {index}: {fault}" for index, fault in enumerate(faults) if fault]
            solved.append(SolvedTask(task, filled, errors[0] if errors else None))
            answers = [answer for _, answer in task.test]
            programs[task.task_id] = list(map(_compared, in_order, answers))
    finished = [facts for results in found.values() for facts in results.values()]
    about = {
        "test_inputs": len(finished),
        "explained": sum(all(facts["answers"][0]["fits"]) for facts in finished),
        **{name: sum(facts[name] for facts in finished) for name in ("states", "states_applied", "at_a_limit")},
        "seconds_of_search": round(sum(facts["seconds"] for facts in finished), 1),
        **about_place(place),
        "minutes": minutes,
    }
    return solved, about, programs


def _compared(facts: dict[str, Any], answer: np.ndarray) -> dict[str, Any]:
    """Say which answers are right, None where that is not known."""
    right = [one["grid"] == answer.tolist() if answer.size else None for one in facts["answers"]]
    answers = [{**one, "right": is_right} for one, is_right in zip(facts["answers"], right, strict=True)]
    return {**facts, "answers": answers}


def _print_result(console: Console, task: RawTask, index: int, result: SearchResult, answer: np.ndarray) -> None:
    limit = ", a limit was reached" if result.is_cut else ""
    console.print(f"\ntest {index}: {result.num_states:,} states in {result.seconds:.1f} s{limit}", style="bold")
    for number, found in enumerate(result.answers, start=1):
        known = "" if not answer.size else ", right" if np.array_equal(found.answer, answer) else ", wrong"
        console.print(f"\nanswer {number}: {_fit_in_words(found)}{known}")
        console.print(Panel.fit(render_grid(found.answer)))
        if (program := found.program) is None:
            continue
        console.print(f"[bold]program[/] {escape(str(program))}", soft_wrap=True)
        for line in program.in_words():
            console.print(visible(f"  {line}"), markup=False)
        if len(program.layers) > 1:  # each layer by itself
            alone = [dataclasses.replace(program, layers=(layer,)) for layer in program.layers]
            grids = [render_grid(one(task.test[index][0])) for one in alone]
            panels = [Panel.fit(grid, title=f"layer {number}") for number, grid in enumerate(grids, start=1)]
            console.print(Columns(panels, padding=(0, 1)))


def _fit_in_words(found: Found) -> str:
    count = "all" if found.fits_all else f"{sum(found.fits)} of"
    cells = "" if found.fits_all else f", {percent(found.share)} of their cells"
    sizes = "" if found.knows_sizes else ", but not the size of each"
    return f"explains {count} {len(found.fits)} demonstrations{sizes}{cells}, cost {found.cost}"


def _pictures(task: RawTask, results: list[SearchResult]) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return the best program's output for each demonstration, and all answers."""
    best = results[0].answers[0]
    pictures = []
    for index, (source, target) in enumerate(task.train):
        drawn = np.zeros((0, 0), np.int8)
        if best.program is not None:
            with contextlib.suppress(ProgramError):  # a demonstration that this program does not explain
                drawn = best.program(source)
        words = "as it is" if np.array_equal(drawn, target) else "not as it is"
        pictures.append((f"train {index}, {words}", source, drawn))
    for index, result in enumerate(results):
        for number, found in enumerate(result.answers, start=1):
            pictures.append((f"test {index}, answer {number}", task.test[index][0], found.answer))
    return pictures
