"""``jaxarc tasks download | import | remove | export``: task sets into the data folder, out of it, and into files."""

import json
import zipfile
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import DownloadColumn, TransferSpeedColumn

from jaxarc.cli.console import print_error, progress_bar, warn
from jaxarc.datasets.archives import ARCHIVES, read_archive, read_zip
from jaxarc.datasets.catalogue import UnknownDatasetError, dataset_names, find_task, load_tasks
from jaxarc.datasets.installed import (
    arc_json,
    check_set_name,
    has_published_set,
    install,
    installed_names,
    installed_path,
    uninstall,
)
from jaxarc.datasets.json_files import read_json
from jaxarc.datasets.task_set import TaskSet
from jaxarc.errors import JaxarcError, visible
from jaxarc.files import file_names, write_whole


def download(
    name: Annotated[str | None, typer.Argument(help=f"One of {', '.join(ARCHIVES)}.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Download every set that is not there yet.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Fetch it even if it is there.")] = False,
) -> None:
    """Download a published task set into the data folder, and check that it is the right one.

    The folder is JAXARC_DATA, or else your data folder. A download that is cut off is tried again.

    Examples:
        jaxarc tasks download concept-arc
        jaxarc tasks download --all
    """
    if (name is None) != every:
        raise typer.BadParameter(f"give one name ({', '.join(ARCHIVES)}) or --all")
    failed = False
    for chosen in ARCHIVES if name is None else [name]:
        try:
            _download_one(chosen, again)
        except (JaxarcError, OSError) as error:  # the other sets may still be downloaded
            print_error(error)
            failed = True
    if failed:
        raise typer.Exit(1)


def import_tasks(
    path: Annotated[Path, typer.Argument(help="A zip archive, a folder or a file of ARC JSON.", show_default=False)],
    name: Annotated[
        str | None, typer.Option(help="What to call the set; by default the name of the file or folder.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a set of this name that is there.")] = False,
) -> None:
    """Check tasks and copy them into the data folder, where they are found by name.

    Under the name of a published set (such as mini-arc) the tasks must be exactly those of that set.

    Examples:
        jaxarc tasks import my_tasks/ --name my-tasks
        jaxarc tasks import ConceptARC.zip --name concept-arc
    """
    chosen = _name_for(path, name)
    tasks = _read(path, chosen)
    if installed_path(chosen).exists() and not replace:
        raise FileExistsError(
            f"{chosen!r} is installed already in {installed_path(chosen)}; "
            "give another --name, or --replace to replace it"
        )
    typer.echo(f"{chosen}: {len(tasks)} tasks in {install(tasks, chosen)}")


def remove(
    name: Annotated[str, typer.Argument(help="Name of an installed set, see jaxarc tasks list.", show_default=False)],
) -> None:
    """Remove a task set that was imported or downloaded from the data folder.

    Examples:
        jaxarc tasks remove my-tasks
    """
    try:
        check_set_name(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from error
    typer.echo(f"{name} is removed: {uninstall(name)}")


def export(
    name: Annotated[
        str, typer.Argument(help="A dataset, some of its tasks, or the id of one task.", metavar="DATASET|TASK")
    ],
    folder: Annotated[Path, typer.Argument(help="Gets one file ID.json for each task; made when missing.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace files that are there.")] = False,
) -> None:
    """Write tasks into a folder as ARC JSON, one file for each, to edit them or to use them elsewhere.

    A folder of such files is a dataset of every command.

    Examples:
        jaxarc tasks export arc-agi-1/training:max_side=5 my_tasks/
        jaxarc tasks export 007bbfb7 my_tasks/
        jaxarc play my_tasks/
    """
    try:
        chosen = list(load_tasks(name))
    except UnknownDatasetError:
        tasks, _, task_id = find_task(name)
        chosen = [tasks.raw_task(task_id)]
    names = file_names(task.task_id for task in chosen)
    files = {folder / f"{names[task.task_id]}.json": task for task in chosen}
    there = [file for file in files if file.exists()]
    if there and not replace:
        raise FileExistsError(
            f"{len(there):,} of {len(files):,} files are there already, such as {there[0]}; "
            "name another folder, or add --replace"
        )
    for file, task in files.items():
        content = arc_json(task) if names[task.task_id] == task.task_id else {task.task_id: arc_json(task)}
        write_whole(file, json.dumps(content).encode(), flush=False)
    renamed = [file for file, task in files.items() if file.stem != task.task_id]
    if renamed:
        first = files[renamed[0]].task_id
        warn(
            f"{len(renamed):,} of {len(files):,} ids cannot name a file on every system, such as {first!r}; the file "
            f"{renamed[0].name} holds it as a key, so it comes back"
        )
    typer.echo(visible(f"{len(files):,} tasks: {folder}"))


def _download_one(name: str, again: bool) -> None:
    from jaxarc.datasets.download import (
        download as download_set,  # requests takes a while to import, and few need it
    )

    if not again and name in ARCHIVES and has_published_set(name):
        typer.echo(f"{name} is already installed in {installed_path(name)}; --again fetches it anew")
        return
    with progress_bar(name, DownloadColumn(), TransferSpeedColumn()) as show:
        file = download_set(name, show, again=again)
    typer.echo(f"{name}: {ARCHIVES[name].num_tasks} tasks in {file}")


def _name_for(path: Path, name: str | None) -> str:
    file = path.resolve()
    chosen = name if name is not None else file.stem if file.suffix.lower() in (".zip", ".json") else file.name
    try:
        check_set_name(chosen)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--name") from error
    own = set(dataset_names()) - set(installed_names())
    families = {known.split("/")[0] for known in (*ARCHIVES, *own)}
    if chosen not in ARCHIVES and chosen.split("/")[0] in families:
        raise typer.BadParameter(
            f"{chosen!r} is among the names of jaxarc's own sets; give another", param_hint="--name"
        )
    return chosen


def _read(path: Path, name: str) -> TaskSet:
    if name in ARCHIVES:
        return read_archive(path, ARCHIVES[name], name)
    if path.is_file() and (path.suffix.lower() == ".zip" or zipfile.is_zipfile(path)):
        return read_zip(path)
    return read_json(path)
