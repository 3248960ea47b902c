"""``jaxarc watch``: the live view of a training run, in the browser."""

import os
from pathlib import Path
from typing import Annotated, Final

import jax
import typer
from rich.console import Console

from jaxarc.cli.local_pages import OpenOption, PortOption, require_play_extra, serve
from jaxarc.training import open_run_folder

_NICENESS: Final = 10  # the run comes first


def watch(
    run: Annotated[Path, typer.Argument(help="Folder of a run of jaxarc train, going on or finished.", metavar="RUN")],
    episodes: Annotated[
        int, typer.Option(min=0, help="Pairs that the newest checkpoint plays; 0 leaves them out.")
    ] = 12,
    agent_seed: Annotated[
        int | None, typer.Option(help="Of a run with several seeds: the agent of this one plays; by default the first.")
    ] = None,
    pause: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks for a newer checkpoint.")] = 5.0,
    port: PortOption = 0,
    opens: OpenOption = True,
) -> None:
    """Watch a training run in the browser: curves as they grow, what the newest agent does, and how each task goes.

    The folder is only read, the run is not slowed down: episodes are played at low priority and on the CPU.
    """
    require_play_extra()
    from jaxarc.play.episode_viewer import EpisodeViewer
    from jaxarc.play.local_site import LocalSite
    from jaxarc.play.watch_site import RunView, WatchSite

    folder = open_run_folder(run)
    jax.config.update("jax_platforms", "cpu")  # an accelerator, and its memory, belongs to the run
    os.nice(_NICENESS)
    view = RunView(folder)
    viewer = EpisodeViewer(folder, episodes, pause, agent_seed) if episodes and view.has_agent else None
    if viewer is not None:
        viewer.start()
    serve(LocalSite(WatchSite(view, viewer).app(), port), opens, Console())
