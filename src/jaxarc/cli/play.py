"""``jaxarc play``: solve tasks by hand, in the browser."""

from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console

from jaxarc.cli.local_pages import OpenOption, PortOption, require_play_extra, serve
from jaxarc.cli.trace_options import FormatOption, action_format_of, lasting_name
from jaxarc.cli.trace_replay import place_of_pair
from jaxarc.tasks import TaskSet, UnknownDatasetError, UnknownTaskError, load_tasks

_FIRST: Final = "arc-agi-1/training/d037b0a7"  # 3x3, and seen through at a glance
_SEARCHED: Final = ("arc-agi-1/training", "arc-agi-1/evaluation", "arc-agi-2/training", "arc-agi-2/evaluation")


class Found(NamedTuple):
    """A task, and the others of its dataset."""

    tasks: TaskSet
    dataset: str  # the name that loads them
    task_id: str


def play(
    task: Annotated[
        str, typer.Argument(help="A task such as arc-agi-1/training/007bbfb7, its id alone, or a dataset.")
    ] = _FIRST,
    pair: Annotated[str, typer.Option(help="Where to begin: train/0, test/0, ...")] = "train/0",
    action_format: FormatOption = "mask",
    folder: Annotated[Path, typer.Option(help="Gets a file for each episode.")] = Path("plays"),
    port: PortOption = 0,
    opens: OpenOption = True,
) -> None:
    """Solve tasks by hand, in the browser: every click is an action of the environment, with its reward.

    What is done is saved at once, as a trace that jaxarc traces verify replays.
    """
    require_play_extra()
    from jaxarc.play.game import Game
    from jaxarc.play.local_site import LocalSite
    from jaxarc.play.play_site import PlaySite

    console, form = Console(), action_format_of(action_format)
    found = find_task(task)
    place = place_of_pair(found.tasks, found.task_id, pair)
    with Console(stderr=True).status("Compiling the environment ..."):
        game = Game(found.tasks, found.dataset, place, form, folder)
    console.print(f"{place.node} of {found.dataset}; episodes are saved in {folder}", markup=False, soft_wrap=True)
    serve(LocalSite(PlaySite(game).app(), port), opens, console)


def find_task(word: str) -> Found:
    """Find what a word means: a dataset, a task behind the name of its dataset, or the id of a task that is here.

    Raises:
        UnknownTaskError: nothing of it; names what was looked through.
    """
    try:
        tasks = load_tasks(word)
    except UnknownDatasetError:
        return _find_by_id(word)
    return Found(tasks, lasting_name(word), tasks.task_ids[0])


def _find_by_id(word: str) -> Found:
    dataset, _, task_id = word.rpartition("/")
    if dataset:
        tasks = load_tasks(dataset)
        return Found(tasks, lasting_name(dataset), tasks.raw_task(task_id).task_id)
    for name in _SEARCHED:
        if task_id in (tasks := load_tasks(name)):
            return Found(tasks, name, task_id)
    raise UnknownTaskError(
        f"{word!r} is neither a dataset nor a task of {', '.join(_SEARCHED)}; write DATASET/TASK for a task of another"
    )
