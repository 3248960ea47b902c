"""Search the answers of many test inputs, in several processes, within one budget of time."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import active_children, get_context
from typing import Final, NamedTuple

import numpy as np

from jaxarc.config import SearchConfig
from jaxarc.config.agent_training import MAX_COST
from jaxarc.search.guidance import guide_of
from jaxarc.search.search_library import search_library
from jaxarc.search.solve import Pair, SearchResult, solve

_PATIENCE: Final = 4.0  # shares of the time that is left which one test input may take


class Question(NamedTuple):
    """A test input with the demonstrations of its task; the answer is not among it."""

    task_id: str
    test_index: int
    train: tuple[Pair, ...]
    test_input: np.ndarray


class _Job(NamedTuple):
    question: Question
    config: SearchConfig
    num_left: int  # questions that are not begun, with this one
    processes: int
    deadline: float | None  # of all questions, of ``time.time``


def search_all(
    questions: Sequence[Question],
    config: SearchConfig,
    processes: int = 1,
    minutes: float | None = None,
) -> Iterator[tuple[Question, SearchResult]]:
    """Yield each question with its answers, as soon as it is done.

    Args:
        questions: of any tasks.
        config: limits of each question.
        processes: that work side by side; 1 works in this one.
        minutes: for all questions. When they are over, every further question gets the best answer there is without a
            search, so that none stays without one.

    Raises:
        ValueError: there is no process.
        GuidanceError: ``config.guidance`` is no weights.
        NativeLibraryError: the library of the search is neither installed nor can it be built.
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    search_library()  # built, if need be, before the clock and the processes start
    if guide_of(config.guidance) is None:
        config = replace(config, guidance="none")  # so that only this process says why
    deadline = None if minutes is None else time.time() + 60 * minutes
    total = len(questions)
    jobs = [_Job(one, config, total - index, processes, deadline) for index, one in enumerate(questions)]
    if processes == 1:
        yield from map(_answer, jobs)
        return
    others = set(active_children())
    # Spawned, as a fork of a process with the threads of JAX may hang.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin)
    try:
        for done in as_completed([pool.submit(_answer, job) for job in jobs]):
            yield done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(active_children()) - others:
            worker.terminate()  # what it still searches is not wanted


def _begin() -> None:
    """Leave Ctrl-C to the process that gave the work, and use one thread, as other processes use the other cores."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"


def _answer(job: _Job) -> tuple[Question, SearchResult]:
    """Search one answer; with a budget, go on to dearer programs while none fits and the share of time lasts."""
    question, config = job.question, job.config
    if job.deadline is None:
        return question, solve(question.train, question.test_input, config)
    began = time.time()
    seconds = min(_PATIENCE * max(job.deadline - began, 0.0) * job.processes / job.num_left, config.seconds)
    config = replace(config, seconds=seconds, max_cost=MAX_COST)
    return question, solve(question.train, question.test_input, config)
