"""Processes that cannot run JAX: forks of one in which it had started. Its threads are not in them, and calls hang."""

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

import jax

from jaxarc.errors import JaxarcError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ForkedProcessError(JaxarcError, RuntimeError):
    """This process was forked from one in which JAX ran, and a compiled call in it would wait forever."""


def require_own_jax() -> None:
    """Raise in a process that cannot run JAX, such as a worker that Gymnasium's ``AsyncVectorEnv`` forked.

    Raises:
        ForkedProcessError: saying how to start workers.
    """
    if _was_forked:
        raise ForkedProcessError(
            f"process {os.getpid()} was forked after JAX had started, and JAX hangs in it; start workers with "
            "context='spawn' (gymnasium.make_vec: vector_kwargs={'context': 'spawn'}), or step all environments in one "
            "process with vectorization_mode='vector_entry_point'"
        )


def in_own_process(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a compiled function refuse calls in a process that cannot run JAX; see :func:`require_own_jax`."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        require_own_jax()
        return function(*args, **named)

    return call


_was_forked = False  # after JAX had started


def _note_fork() -> None:
    global _was_forked
    # JAX refuses to change this option once it has started, and has no other public way to ask whether it has.
    name = "jax_num_cpu_devices"
    value = jax.config.values[name]
    try:
        jax.config.update(name, value + 1)
    except RuntimeError:
        _was_forked = True
    else:
        jax.config.update(name, value)


with suppress(AttributeError):  # Windows, where no process forks
    os.register_at_fork(after_in_child=_note_fork)
