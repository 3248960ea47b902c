"""A fingerprint of what tasks say, whatever file they came in and whatever they are called."""

import hashlib
from collections.abc import Iterable

from jaxarc.tasks.raw_task import RawTask


def digest_of(tasks: Iterable[RawTask]) -> str:
    """Return the SHA-256, 64 hexadecimal digits, of the grids of all tasks.

    Equal for the same tasks in any order and under any names; another pair order, one changed cell, or one task more or
    less give another digest.
    """
    return hashlib.sha256(b"".join(sorted(_digest_of_task(task) for task in tasks))).hexdigest()


def _digest_of_task(task: RawTask) -> bytes:
    found = hashlib.sha256(bytes([len(task.train), len(task.test)]))
    for pair in task.pairs:
        for grid in pair:
            found.update(bytes(grid.shape))
            found.update(grid.tobytes())
    return found.digest()
