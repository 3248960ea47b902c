"""The command ``jaxarc``: a table of commands, each loaded when it is called.

``jaxarc --help`` prints the table below and loads no command, no JAX: it answers in a fraction of a second.
"""

import importlib
import inspect
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from jaxarc import __version__
from jaxarc.cli.console import message_of, print_error, warn, warnings_in_one_line
from jaxarc.cli.signals import signals_end_the_command
from jaxarc.errors import JaxarcError
from jaxarc.extras import how_to_install
from jaxarc.files import COMPILED_BYTES, compiled_folder, user_path

COMMANDS: Final = {  # name -> module below jaxarc.cli, its function or Typer, its line in the list of commands
    "train": ("train_command", "app", "Train an agent on real ARC tasks, and evaluate it on unseen ones."),
    "compare": ("compare", "compare", "Draw the learning curves of runs, and compare how they ended."),
    "rollout": ("rollout_command", "rollout", "Play random actions, and print steps per second and returns."),
    "evaluate": ("evaluate_command", "evaluate", "Score an agent by the rules of ARC, or evaluate a surrogate."),
    "search": ("search_command", "search", "Search programs that explain a task, and answer its test inputs."),
    "play": ("local_pages", "play", "Solve tasks by hand, in the browser."),
    "watch": ("local_pages", "watch", "Watch a training run in the browser."),
    "replay": ("replay_command", "replay", "Write episodes into one HTML file, or as a picture."),
    "tasks": ("tasks", "app", "List, draw, count, verify, download, import and export ARC tasks."),
    "traces": ("traces", "app", "Record, verify, draw, export and import what experts do."),
    "games": ("games_command", "app", "List, draw and check the games, whose levels are as in ARC-AGI-3."),
    "benchmark": ("benchmark", "app", "Measure how fast the environment is, and how fast agents learn."),
    "profile": ("profile", "app", "Measure where time and memory go."),
    "info": ("info", "info", "Print versions, devices, folders and extras."),
}

_FEWEST_COLUMNS: Final = 20  # a terminal that says less does not know, as one of 0
_NO_CACHE: Final = "--no-cache"


class LazyGroup(TyperGroup):
    """Lists the commands from a table, and imports the module of a command when it is called."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # the names that a mistyped one is compared with

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read ``help tasks show`` as ``tasks show --help``, and ``--no-cache`` wherever it stands."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        if _NO_CACHE in args:
            args = [_NO_CACHE, *(word for word in args if word != _NO_CACHE)]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a stand-in that knows only its name and its help."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][-1], rich_markup_mode="rich")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called itself."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None or name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command."""
    module, attribute, _ = COMMANDS[name]
    found = getattr(importlib.import_module(f"jaxarc.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    for one in subcommands(command):
        one.help = _reflowed(inspect.cleandoc(one.help or ""))
    return command


def subcommands(command: Any) -> Iterator[Any]:
    """Yield a command, and those below it."""
    yield command
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            yield from subcommands(below)


def _reflowed(text: str) -> str:
    """Join the lines of each paragraph, as the terminal wraps them anew; indented lines are examples, and stay."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        paragraphs.append("".join(f"\n{line}" if line.startswith(" ") else f" {line}" for line in lines).strip(" "))
    return "\n\n".join(paragraphs)


app = typer.Typer(
    cls=LazyGroup,
    help="Reinforcement learning on ARC puzzles.",
    epilog="[bold]jaxarc help COMMAND[/] or [bold]jaxarc COMMAND -h[/] explains a command, with examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},  # commands inherit it
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"jaxarc {__version__}")
        raise typer.Exit


def _keep_compiled_programs(is_refused: bool) -> None:
    """Let JAX, once a command loads it, keep compiled programs and read those that earlier commands left.

    It reads this from variables of the environment. A folder that the user chose by them stays, and so does a JAX that
    is loaded already, as in a notebook.
    """
    if is_refused or "jax" in sys.modules or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder = compiled_folder()
    except (JaxarcError, OSError) as error:
        warn(f"programs are compiled anew in every command: {message_of(error)}; {_NO_CACHE} leaves this warning out")
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(COMPILED_BYTES)
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    # A disk that fills up costs time, and no warning for each program.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")


@app.callback()
def jaxarc(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version of jaxarc."),
    ] = False,
    no_cache: Annotated[
        bool,
        typer.Option(
            _NO_CACHE,
            envvar="JAXARC_NO_CACHE",
            callback=_keep_compiled_programs,
            help="Compile anew, and keep no compiled programs for later commands.",
        ),
    ] = False,
) -> None:
    """Reinforcement learning on ARC puzzles."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a mistake that the user can correct is one line on stderr, without a traceback.

    Exit codes: 0 success, also after Ctrl-C if something was learned and kept; 2 where a name, a value or a path on the
    command line or in a config is wrong, or is not there; 1 where all of these are right, and data, files, the machine
    or training fail; 130 for Ctrl-C before there was anything to keep. An error of jaxarc carries its code, see
    :mod:`jaxarc.errors`.
    """
    _fit_the_terminal()
    with signals_end_the_command(), warnings_in_one_line():
        try:
            words = [_at_home(word) for word in (sys.argv[1:] if arguments is None else arguments)]
            code = app(args=words, prog_name="jaxarc", standalone_mode=False)
        except typer.TyperException as error:
            message = _usage_message(error)
            if message:  # a command that was called without arguments has printed its help
                print_error(message)
            sys.exit(error.exit_code)
        except JaxarcError as error:
            print_error(error)
            sys.exit(error.exit_code)
        except ModuleNotFoundError as error:
            hint = how_to_install(error.name)
            if hint is None:
                raise
            print_error(hint)
            sys.exit(1)
        except OSError as error:
            _name_stdout(error)
            print_error(error)
            sys.exit(2 if isinstance(error, FileNotFoundError) else 1)
        except KeyboardInterrupt:
            code = 130
        except (RuntimeError, AssertionError):
            if _finds_a_device():
                raise
            wanted = os.environ.get("JAX_PLATFORMS") or os.environ.get("JAX_PLATFORM_NAME", "")
            print_error(f"JAX finds no device of the platform {wanted!r} here; write JAX_PLATFORMS=cpu, or unset it")
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def _fit_the_terminal() -> None:
    """Print all letters, and no lines of no width: where the encoding lacks a letter, ``?`` stands for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")
    if os.environ.get("COLUMNS", "").isdecimal() and int(os.environ["COLUMNS"]) < _FEWEST_COLUMNS:
        del os.environ["COLUMNS"]


def _name_stdout(error: OSError) -> None:
    """Let an error of the system that names no file name the standard output, where printing it failed."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    is_printing = frame.f_globals["__name__"].partition(".")[0] in ("rich", "typer", "click")
    if error.errno is not None and error.filename is None and is_printing:
        error.filename = "standard output"


def _finds_a_device() -> bool:
    """Whether JAX, if it is loaded, has a device to run on; it fails late, in many ways, where there is none."""
    try:
        return "jax" not in sys.modules or bool(sys.modules["jax"].devices())
    except (RuntimeError, AssertionError):
        return False


def _at_home(word: str) -> str:
    """Put the home folder in place of ``~`` in ``~/tasks`` and ``--output=~/out``, which not every shell does."""
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    return f"{option}{equals}{user_path(value)}" if value.startswith("~/") else word


def _usage_message(error: Any) -> str:
    """Return what Typer says of a wrong command line, and where to read on."""
    message = error.format_message()
    if not message or error.ctx is None:
        return message
    stop = "" if message.endswith((".", "?", "!")) else "."
    return f"{message}{stop} See: {error.ctx.command_path} --help"


if __name__ == "__main__":
    main()
