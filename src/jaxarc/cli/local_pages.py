"""``jaxarc play`` and ``jaxarc watch``: pages on this machine, opened in a browser."""

import contextlib
import datetime
import os
import re
import secrets
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import jax
import typer
from rich.console import Console

import jaxarc.games
from jaxarc.cli.console import AgentSeedOption, GameOption, NetworkOption, RewardOption, load_own_parts, print_line
from jaxarc.cli.signals import signals_interrupt
from jaxarc.cli.trace_options import FormatOption, pair_id_of
from jaxarc.datasets import load_tasks
from jaxarc.datasets.catalogue import FoundTask, find_task
from jaxarc.experts import ActionFormat
from jaxarc.extras import how_to_install_extra, missing_libraries
from jaxarc.games.frames import OwnFrames
from jaxarc.games.game_names import PREFIX, names_file
from jaxarc.runs import locate_run, open_run_folder
from jaxarc.traces.trace_files import TraceFileError

if TYPE_CHECKING:
    from jaxarc.play.local_site import LocalSite
    from jaxarc.play.play_site import PlayedTasks

PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: any free port.")]
OpenOption = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        help="Also answer requests that a proxy passes on under this host name, such as hub.example or "
        "hub.example:8443; may be repeated.",
    ),
]

_NICENESS: Final = 10  # the run that is watched comes first
_FIRST: Final = "arc-agi-1/training/d037b0a7"  # 3x3, and seen through at a glance


def require_play_extra() -> None:
    """Refuse to go on where the libraries for local pages are not installed, before anything is loaded."""
    missing = missing_libraries("play")
    if missing:
        raise typer.BadParameter(
            f"local pages need {' and '.join(missing)}, not installed here: {how_to_install_extra('play')}"
        )


def hosts_of(names: list[str] | None) -> tuple[str, ...]:
    """Return the names of ``--allow-host``, or refuse what is no host name."""
    for name in names or []:
        if not re.fullmatch(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?", name):
            raise typer.BadParameter(
                f"{name!r} is no host name; leave out scheme and path: hub.example", param_hint="--allow-host"
            )
    return tuple(name.lower() for name in names or [])


def serve(site: "LocalSite", opens: bool, console: Console) -> None:
    """Serve until Ctrl-C, which is how such a command ends well."""
    print_line(console, site.url)
    print_line(console, "Open it in a browser on this machine; Ctrl-C ends it.")
    for host in site.allowed_hosts:
        path = site.url.partition(f":{site.port}")[2]
        print_line(console, f"Behind the proxy {host}: open its address for port {site.port}, with {path} at the end.")
    if opens:
        # The command line of a browser can be read by other users: the address on it leads in once only.
        webbrowser.open(site.entrance)
    # The server has handlers of its own while it runs, and raises the signal again when it has ended.
    with contextlib.suppress(KeyboardInterrupt), signals_interrupt():
        site.run()


def play(
    task: Annotated[
        str,
        typer.Argument(
            help="A task such as arc-agi-1/training/007bbfb7, its id alone, or a dataset; the file of an episode, "
            "PLAYS/NAME.jsonl, to continue it; or a game, such as games/ice, or one of your own, file.py:NAME."
        ),
    ] = _FIRST,
    pair: Annotated[str, typer.Option(help="First pair: train/0, test/0, ...")] = "train/0",
    action_format: FormatOption = "mask",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder that gets a file for each episode.")] = Path(
        "plays"
    ),
    port: PortOption = 0,
    opens: OpenOption = True,
    allow_host: AllowHostOption = None,
) -> None:
    """Solve tasks by hand in the browser. Every change is an action of the environment, with its reward.

    Every action is saved at once, as a trace that jaxarc traces verify replays. Naming such a file continues its
    episode, on its pair and with its actions, in a file of its own. Of a game the file is a recording of ARC-AGI-3,
    which jaxarc replay shows.

    Examples:
        jaxarc play
        jaxarc play 007bbfb7 --pair test/0
        jaxarc play my_tasks/ --format bbox
        jaxarc play plays/NAME.jsonl
        jaxarc play games/ice
        jaxarc play own.py:mower
    """
    require_play_extra()
    hosts = hosts_of(allow_host)
    from jaxarc.play.game_site import GameSite
    from jaxarc.play.local_site import LocalSite
    from jaxarc.play.play_site import PlaySite

    if task.startswith(PREFIX) or names_file(task):
        frames = OwnFrames(*jaxarc.games.make(task))
        file = output / f"{frames.name}-{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-{secrets.token_hex(4)}.jsonl"
        serve(LocalSite(GameSite(frames, file).app(), port, hosts), opens, Console())
        return
    played = _played(task, pair, action_format, output)
    console = Console()
    print_line(console, f"{played.episode.pair_id.node} of {played.dataset}; episodes are saved in {output}")
    serve(LocalSite(PlaySite(played).app(), port, hosts), opens, console)


def _played(task: str, pair: str, action_format: ActionFormat, folder: Path) -> "PlayedTasks":
    """Begin an episode, or lay out the one of a file as it was left."""
    from jaxarc.play.episode import HELPED, WrongMoveError, read_human_episode
    from jaxarc.play.play_site import PlayedTasks

    compiling = Console(stderr=True).status("Compiling the environment ...")
    path = Path(task)
    if path.suffix.lower() != ".jsonl":
        found = find_task(task)
        pair_id = pair_id_of(found.tasks, found.task_id, pair)
        with compiling:
            return PlayedTasks(found.tasks, found.dataset, pair_id, action_format, folder)
    line = read_human_episode(path)
    found = FoundTask(load_tasks(line.dataset), line.dataset, line.pair_id.task_id) if line.dataset else None
    tasks, dataset, _ = found or find_task(line.pair_id.task_id)
    with compiling:
        try:
            played = PlayedTasks(tasks, dataset, line.pair_id, line.spec.action_format, folder)
            played.episode.take_up(line.actions, line.spec.expert == HELPED, path)
        except WrongMoveError as error:
            raise TraceFileError(f"{path} cannot be gone on with: {error}") from error
    return played


def watch(
    run: Annotated[
        Path, typer.Argument(help="Run folder of jaxarc train, running or finished, or ladder_l2_small.", metavar="RUN")
    ],
    episodes: Annotated[int, typer.Option(min=0, help="Pairs that the newest checkpoint plays; 0: none.")] = 12,
    agent_seed: AgentSeedOption = None,
    game: GameOption = None,
    network: NetworkOption = None,
    reward: RewardOption = None,
    pause: Annotated[float, typer.Option(min=0.1, help="Seconds between two checks for a newer checkpoint.")] = 5.0,
    port: PortOption = 0,
    opens: OpenOption = True,
    allow_host: AllowHostOption = None,
) -> None:
    """Monitor a training run in the browser: learning curves, episodes of the newest agent, and results per task.

    The folder is only read. Episodes are played at low priority on the CPU, so the run is not slowed down.

    Examples:
        jaxarc watch ladder_l2_small
        jaxarc watch runs/NAME
        jaxarc watch runs/NAME --episodes 0 --port 8017 --no-open
    """
    require_play_extra()
    hosts = hosts_of(allow_host)
    from jaxarc.play.episode_viewer import EpisodeViewer
    from jaxarc.play.local_site import LocalSite
    from jaxarc.play.watch_site import RunView, WatchSite

    load_own_parts(network, reward, game)
    folder = open_run_folder(locate_run(run))
    jax.config.update("jax_platforms", "cpu")  # an accelerator, and its memory, belongs to the run
    with contextlib.suppress(AttributeError):  # Windows
        os.nice(_NICENESS)
    view = RunView(folder)
    viewer = EpisodeViewer(folder, episodes, pause, agent_seed) if episodes and view.has_agent else None
    if viewer is not None:
        viewer.start()
    serve(LocalSite(WatchSite(view, viewer).app(), port, hosts), opens, Console())
