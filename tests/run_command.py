"""Run the command ``jaxarc`` inside the test process, and keep what it prints."""

import contextlib
import io
import os
from typing import NamedTuple
from unittest import mock

from jaxarc.cli.main import main


class CommandResult(NamedTuple):
    """The exit code of a command, and its output."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def run_command(*arguments: object, columns: int = 200) -> CommandResult:
    """Run ``jaxarc`` with these arguments on a terminal of so many columns; any other error than an exit is raised."""
    stdout = io.StringIO()
    stderr = io.StringIO()
    code = 0
    with (
        mock.patch.dict(os.environ, {"COLUMNS": str(columns), "TERM": "dumb"}),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return CommandResult(code, stdout.getvalue(), stderr.getvalue())
