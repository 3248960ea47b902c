"""What ``jaxarc evaluate`` does once its options are read: find the agent, play or score, write files, print tables."""

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from jaxarc.agents import EditAgent
from jaxarc.agents.saved_agent import policy_of
from jaxarc.cli.console import DEFAULT_FORMAT, DEFAULT_SIDE, escape, number_table, progress_bar
from jaxarc.cli.place_options import about_place
from jaxarc.cli.presenter import show_results
from jaxarc.cli.search_command import Programs, search_tasks
from jaxarc.cli.settings import read_experiment
from jaxarc.cli.signals import signals_interrupt
from jaxarc.config import ConfigValidationError, EvaluationConfig, JaxArcConfig, SearchConfig
from jaxarc.config.agent_training import Precision, WhichCheckpoint
from jaxarc.datasets import NotInstalledError, TaskSet, UnknownDatasetError
from jaxarc.datasets.training_pairs import pairs_seen_by
from jaxarc.envs.action_space import action_space
from jaxarc.errors import visible
from jaxarc.evaluation import (
    Agent,
    AgentMismatchError,
    Evaluation,
    RecordedAgent,
    Score,
    Solver,
    SubmitPolicy,
    TaskRow,
    best_first,
    evaluate,
    read_recordings,
    read_submission,
    rows_of_submission,
    score_submission,
    write_submission,
    write_task_rows,
)
from jaxarc.evaluation.solver import SolvedTask, evaluation_of, solve_tasks
from jaxarc.evaluation.submission import SUBMISSION_DIGEST
from jaxarc.experts import GreedyPainter
from jaxarc.experts.expert import Caught
from jaxarc.files import user_path, write_whole
from jaxarc.jobs import HERE, Job, Place, remove_results
from jaxarc.lazy import line_of, load_code
from jaxarc.nn import products_in
from jaxarc.parallel import Policy, RandomPolicy
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
    training = kind.load(experiment, functools.partial(progress_bar, is_shown=not quiet))
    show_results(kind.saved(saved).evaluate(training, precision, overrides), folder, Console(quiet=quiet))


@dataclass(frozen=True)
class PlayRequest:
    """The rules that an agent plays by, as far as they are not its own, and which agent of a run folder it is."""

    selection_format: str | None = None
    side: int | None = None  # rows and columns of the canvas
    max_steps: int | None = None
    answers_visible: bool = False
    checkpoint: WhichCheckpoint = "best"
    seed: int | None = None  # of the agent; None: the run's first
    precision: Precision = "float32"  # of its network


@dataclass(frozen=True)
class Player:
    """An agent with the rules that it plays by."""

    agent: Agent | Policy
    rules: JaxArcConfig
    num_learned: int | None = 0  # test pairs that the agent learned from; None: its training data are not here


def load_player(name: str, tasks: TaskSet, request: PlayRequest) -> Player:
    """Return the agent that a name means: a plain one, a run folder, or a file of recorded actions.

    Raises:
        AgentMismatchError: it cannot play by the requested rules.
        CheckpointError, TraceFileError, RecordingError, InvalidActionError: its file cannot be used.
    """
    if name == "random":
        rules = _plain_rules(request)
        return Player(RandomPolicy(action_space(rules)), rules)
    if name == "submit":
        rules = _plain_rules(request)
        return Player(SubmitPolicy.for_config(rules), rules)
    if name == "painter":
        return _painting_player(request)
    path = locate_run(Path(name))
    if path.is_dir():
        return _trained_player(RunFolder(path), tasks, request)
    recordings = read_recordings(path, tasks)
    longest = max((len(actions) for actions in recordings.values()), default=0)
    rules = _plain_rules(request, max_episode_steps=longest + 1)
    return Player(RecordedAgent.create(recordings, tasks, rules), rules)


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


def _painting_player(request: PlayRequest) -> Player:
    if request.selection_format not in (None, DEFAULT_FORMAT):
        raise AgentMismatchError(
            f"the painter fills boxes, but --format says {request.selection_format}: leave --format out"
        )
    if not request.answers_visible:
        raise AgentMismatchError(
            "the painter looks at the answers, which test mode hides: add --answers-visible to measure how few actions "
            "they take, which is no score by the rules of ARC"
        )
    rules = _plain_rules(request, reveal_target=True, grid_format="planes", include_step_count=True)
    return Player(GreedyPainter(), rules)


def _plain_rules(request: PlayRequest, **fields: Any) -> JaxArcConfig:
    side = request.side or DEFAULT_SIDE
    if request.max_steps is not None:
        fields["max_episode_steps"] = request.max_steps
    return JaxArcConfig().with_fields(
        selection_format=request.selection_format or DEFAULT_FORMAT,
        max_grid_height=side,
        max_grid_width=side,
        invalid_action_policy="noop",
        **fields,
    )


def _trained_player(folder: RunFolder, tasks: TaskSet, request: PlayRequest) -> Player:
    """The agent plays by the rules that it learned by, on another canvas or with more time if that is requested."""
    saved = SavedRun.open(folder, request.checkpoint).require("edit")
    experiment = saved.experiment
    rules = experiment.environment
    differs = []
    if request.selection_format not in (None, rules.action.selection_format):
        differs.append(
            f"it was trained with {rules.action.selection_format}, but --format says {request.selection_format}: "
            "leave --format out"
        )
    if rules.observation.reveal_target and not request.answers_visible:
        differs.append(
            "it looks at the answer, target_grid (observation.reveal_target=True), which test mode hides: train one "
            "without, or add --answers-visible to measure how well it edits, which is no score by the rules of ARC"
        )
    if differs:
        raise AgentMismatchError(f"the agent of {folder.path} does not fit this evaluation: {'; '.join(differs)}")
    if request.side is not None:
        rules = rules.with_fields(max_grid_height=request.side, max_grid_width=request.side)
    if request.max_steps is not None:
        rules = rules.with_fields(max_episode_steps=request.max_steps)
    agent = EditAgent(*policy_of(saved, request.seed, rules, request.precision))
    try:
        seen = pairs_seen_by(experiment.task, experiment.environment.augmentation)
    except (UnknownDatasetError, NotInstalledError):
        return Player(agent, rules, None)
    return Player(agent, rules, sum(pair in seen for task in tasks for pair in task.test))


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
    solve, run = load_solver(name, checkpoint), locate_run(Path(name))
    records = sorted(run.glob("checkpoints/*/*.json")) if run.is_dir() else []
    files = records or [Path(inspect.getsourcefile(inspect.unwrap(solve)) or "")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
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


def play(name: str, tasks: TaskSet, config: EvaluationConfig, request: PlayRequest, quiet: bool) -> Scored:
    """Let an agent play every test input."""
    player = load_player(name, tasks, request)
    if config.votes and isinstance(player.agent, RecordedAgent):
        raise typer.BadParameter(
            "recorded actions fit tasks as they are, not augmented; leave it out", param_hint="--votes"
        )
    with (
        products_in(request.precision),
        progress_bar("episodes", waiting="compiling", is_shown=not quiet) as show,
    ):
        result = evaluate(
            player.agent,
            _on_canvas(tasks, player.rules.grid_shape),
            player.rules,
            config,
            answers_visible=request.answers_visible,
            on_progress=show,
        )
    about = {
        "answers_visible": request.answers_visible,
        "precision": request.precision,
        "test_pairs_learned": player.num_learned,
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
    return Scored(result, about, tuple(notes))


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
