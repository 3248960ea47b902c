"""The command ``jaxarc``: a table of commands, each loaded when it is called.

``jaxarc --help`` prints the table below and loads no command, no JAX: it answers in a fraction of a second.
"""

import importlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from jaxarc.cli.console import print_error
from jaxarc.cli.processes import leave, left_at_once
from jaxarc.errors import JaxarcError


class CommandEntry(NamedTuple):
    """A command: its module and name below ``jaxarc.cli``, and its line in the list of commands."""

    module: str
    attribute: str  # a function, or a Typer of commands
    help: str
    is_hidden: bool = False


COMMANDS: Final = {
    "train": CommandEntry("train", "app", "Train an agent on real ARC tasks, and evaluate it on unseen ones."),
    "compare": CommandEntry("compare", "compare", "Draw the learning curves of runs, and compare how they ended."),
    "rollout": CommandEntry("rollout", "rollout", "Play random actions, and print steps per second and returns."),
    "evaluate": CommandEntry("evaluate", "evaluate", "Score an agent by the rules of ARC, or evaluate a surrogate."),
    "judge": CommandEntry("evaluate", "judge_app", "Now called: jaxarc evaluate RUN.", is_hidden=True),
    "play": CommandEntry("local_pages", "play", "Solve tasks by hand, in the browser."),
    "watch": CommandEntry("local_pages", "watch", "Watch a training run in the browser."),
    "replay": CommandEntry("replay", "replay", "Write episodes into one HTML file, or as a picture."),
    "tasks": CommandEntry("tasks", "app", "List, draw, count, verify, download and import ARC tasks."),
    "traces": CommandEntry("traces", "app", "Record, verify, draw, export and import what experts do."),
    "benchmark": CommandEntry("benchmark", "app", "Measure how fast the environment is, and how fast agents learn."),
    "profile": CommandEntry("profile", "app", "Measure which operations take the time."),
}


class LazyGroup(TyperGroup):
    """Lists the commands from a table, and imports the module of a command when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a stand-in that knows only its name and its help."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        return TyperCommand(cmd_name, help=entry.help, hidden=entry.is_hidden, rich_markup_mode="rich")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called itself."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None or name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command."""
    entry = COMMANDS[name]
    found = getattr(importlib.import_module(f"jaxarc.cli.{entry.module}"), entry.attribute)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    cls=LazyGroup,
    help="Reinforcement learning on ARC puzzles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    add_completion=False,
)


@app.callback()
def jaxarc() -> None:
    """Reinforcement learning on ARC puzzles."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a mistake that the user can correct is one line on stderr, without a traceback.

    Exit codes: 0 success, also after Ctrl-C if something was learned and kept; 1 for data and files that cannot be
    read and for training that diverged, 2 for a wrong command line or config, 130 for Ctrl-C before there was anything
    to keep. An error of jaxarc carries its code, see :mod:`jaxarc.errors`.
    """
    with left_at_once():
        try:
            app(args=arguments if arguments is None else list(arguments))
        except JaxarcError as error:
            print_error(error)
            leave(error.exit_code)
        except OSError as error:
            print_error(error)
            leave(1)
        except KeyboardInterrupt:
            leave(130)


if __name__ == "__main__":
    main()
