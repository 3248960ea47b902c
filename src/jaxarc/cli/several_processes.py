"""Where several processes run one command: one of them speaks, all use one folder, and each ends when it has to."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import jax

from jaxarc.parallel import ProcessError, allgather_text, is_distributed, is_primary
from jaxarc.training import Experiment, RunFolder


def without_place(experiment: Experiment) -> Experiment:
    """Leave out which process this is and where all meet: a run is the same, and goes on, anywhere."""
    parallel = experiment.parallel.replace(coordinator_address=None, num_processes=None, process_id=None)
    return experiment.replace(parallel=parallel)


def shared_folder(make: Callable[[], RunFolder]) -> RunFolder:
    """Let process 0 make a run folder, and open it in all.

    Raises:
        ProcessError: this process does not see it.
    """
    if jax.process_count() == 1:
        return make()
    path = Path(allgather_text(str(make().path.resolve()) if is_primary() else "")[0])
    folder = RunFolder(path)
    if not folder.config.is_file():
        raise ProcessError(
            f"process {jax.process_index()} does not see the run folder {path} that process 0 made; set "
            "logging.run_root to a folder on a disk that all machines share"
        )
    return folder


class left_at_once:  # noqa: N801  a context manager, as those of contextlib
    """Ends a process that others wait for as soon as an error leaves the block, whatever it is.

    The interpreter's own way out would first wait for the other processes, which wait for this one.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or not is_distributed():
            return
        if isinstance(error, SystemExit):
            leave(error.code if isinstance(error.code, int) else int(error.code is not None))
        traceback.print_exception(error)
        leave(1)


def leave(code: int) -> NoReturn:
    """End this process with an exit code, at once where others might wait for it, or never answer any more."""
    if is_distributed():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
