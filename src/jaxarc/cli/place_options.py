"""Options of several commands that say where the work is done: here, on a SLURM cluster, or on Ray."""

import re
import shutil
from typing import Annotated, Any, Literal, TypeAlias

import typer

from jaxarc.errors import UsageError
from jaxarc.extras import require_library
from jaxarc.jobs import HERE, Place

On: TypeAlias = Literal["local", "slurm", "ray"]
OnOption: TypeAlias = Annotated[
    On, typer.Option("--on", help="Where: local, or slurm or ray with --shards.", metavar="PLACE", show_default=False)
]
ShardsOption: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="How many parts are done side by side.", metavar="N")
]
SlurmOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--slurm", help="Options of sbatch: partition=cpu,time=30.", metavar="NAME=VALUE"),
]


def place_of(on: On, shards: int | None, slurm: list[str] | None, processes: int | None) -> Place:
    """Return the place that options name; :data:`HERE` where none says how many processes of this machine.

    Raises:
        UsageError: there is no SLURM here.
        ModuleNotFoundError: submitit or Ray is not installed; the message names the extra.
    """
    if slurm and on != "slurm":
        raise typer.BadParameter("is for --on slurm; leave it out", param_hint="--slurm")
    if on == "local":
        if shards is not None and processes is not None:
            raise typer.BadParameter("is on this machine what --processes says; leave one out", param_hint="--shards")
        count = shards or processes
        return HERE if count is None else Place("local", count)
    if shards is None:
        raise typer.BadParameter(f"--on {on} needs the number of parts; give it", param_hint="--shards")
    if on == "ray":
        require_library("ray")
        return Place(on, shards, processes or 1)
    require_library("submitit")
    if shutil.which("sbatch") is None:
        raise UsageError("--on slurm: there is no sbatch here; run the command on a login node of the cluster")
    return Place(on, shards, processes, tuple(sbatch_options(",".join(slurm or [])).items()))


def about_place(place: Place) -> dict[str, Any]:
    """Return what a summary says of a place."""
    if place.engine == "local":
        return {"processes": place.shards}
    return {"on": place.engine, "shards": place.shards, "processes": place.processes}


def sbatch_options(text: str) -> dict[str, str]:
    """Read ``partition=cpu,nodelist=n1,n2,time=30``: what begins no option belongs to the value before."""
    options: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        if option := re.fullmatch(r"(?:--)?([a-z][a-z-]*)=(.*)", part):
            options[option[1]] = option[2]
        elif options:
            options[list(options)[-1]] += f",{part}"
        else:
            raise typer.BadParameter(f"{part!r} is not NAME=VALUE; write partition=cpu,time=30", param_hint="--slurm")
    return options
