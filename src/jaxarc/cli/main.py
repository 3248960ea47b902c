"""The command ``jaxarc``."""

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.markup import escape

from jaxarc.cli import benchmark, compare, evaluate, judge, play, replay, rollout, train, watch
from jaxarc.cli.profile import app as profile_app
from jaxarc.cli.several_processes import leave, left_at_once
from jaxarc.cli.system_errors import say
from jaxarc.cli.tasks import app as tasks_app
from jaxarc.cli.traces import app as traces_app
from jaxarc.cli.train_help import TrainCommand
from jaxarc.errors import JaxarcError

app = typer.Typer(
    help="Reinforcement learning on ARC puzzles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    add_completion=False,
)
app.command("train", cls=TrainCommand, help=train.HELP)(train.train)
app.command("compare")(compare.compare)
app.command("rollout")(rollout.rollout)
app.command("evaluate")(evaluate.evaluate)
app.command("judge")(judge.judge)
app.command("play")(play.play)
app.command("watch")(watch.watch)
app.command("replay")(replay.replay)
app.add_typer(tasks_app, name="tasks")
app.add_typer(traces_app, name="traces")
app.add_typer(benchmark.app, name="benchmark")
app.add_typer(profile_app, name="profile")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a mistake that the user can mend is one line on stderr, without a traceback.

    Exit codes: 0 success, also after Ctrl-C when something was learned and kept; 1 for data and files that cannot be
    read and for training that diverged, 2 for a wrong command line or config, 130 for Ctrl-C before there was anything
    to keep.
    """
    with left_at_once():
        try:
            app(args=arguments if arguments is None else list(arguments))
        except JaxarcError as error:
            _fail(error, error.exit_code)
        except OSError as error:
            _fail(error, 1)
        except KeyboardInterrupt:
            leave(130)


def _fail(error: BaseException, code: int) -> None:
    message = " ".join(say(error).split())
    Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {escape(message)}", highlight=False)
    leave(code)


if __name__ == "__main__":
    main()
