"""On how many processor cores this process runs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pinned_to_cores(num_cores: int) -> Iterator[int | None]:
    """Keep this process, and whatever it starts, on ``num_cores`` of the cores that it may use.

    Enter it before JAX runs anything: threads that exist already stay where they are. The last cores are taken, since
    an operating system serves its interrupts on the first. Afterwards the process may use all its cores again.

    Yields:
        The cores in use; None where the operating system has no such control (macOS, Windows).

    Raises:
        ValueError: ``num_cores`` is below 1 or more than the process may use.
    """
    if sys.platform != "linux":
        yield None
        return
    allowed = os.sched_getaffinity(0)
    if not 1 <= num_cores <= len(allowed):
        raise ValueError(
            f"the number of cores must lie in 1..{len(allowed)}, which this process may use; got {num_cores}"
        )
    os.sched_setaffinity(0, sorted(allowed)[-num_cores:])
    try:
        yield num_cores
    finally:
        os.sched_setaffinity(0, allowed)
