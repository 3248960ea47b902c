"""Processes that have imported the package already: they are forked from one that has."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path


def start_forked(preloaded: list[str], target: Callable[..., None], *arguments: object) -> BaseProcess:
    """Start a process that has some modules, and so the whole package, imported.

    Args:
        preloaded: modules of this folder; those of the first call count.
        target: called in the process.
        arguments: of the target.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(preloaded)
    process = context.Process(target=target, args=arguments)
    before = os.environ.get("PYTHONPATH")
    # The server of Python 3.11 does not take our sys.path over, and says nothing where it cannot import.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), before)))
    try:
        process.start()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return process
