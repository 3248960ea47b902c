"""What several processes find out together: each of these functions is to be called by all of them, in one order.

Where there is only one process they cost nothing.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import jax
import numpy as np
from jax.experimental.multihost_utils import process_allgather, sync_global_devices

from jaxarc.parallel.processes import ProcessMismatchError

_MOST_NAMED: Final = 5  # differences in one message


def allgather_text(text: str) -> list[str]:
    """Tell a text to all processes, and return what each of them told, in their order."""
    if jax.process_count() == 1:
        return [text]
    words = np.frombuffer(text.encode(), np.uint8)
    sizes = process_allgather(np.int32(words.size))
    room = 1 << int(sizes.max()).bit_length()  # few different lengths, for each is compiled
    rows = process_allgather(np.pad(words, (0, room - words.size)))
    return [row[:size].tobytes().decode() for row, size in zip(rows, sizes, strict=True)]


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    return flag if jax.process_count() == 1 else bool(process_allgather(np.bool_(flag)).any())


def broadcast_flag(flag: bool) -> bool:
    """Return the flag of process 0, for what depends on its clock."""
    return flag if jax.process_count() == 1 else bool(process_allgather(np.bool_(flag))[0])


def barrier(place: str) -> None:
    """Wait until all processes are here."""
    sync_global_devices(place)


def require_same(facts: Mapping[str, Any]) -> None:
    """Compare facts, which JSON can write, between the processes.

    Raises:
        ProcessMismatchError: they differ; all processes raise it, and it names each fact with the value of two of them.
    """
    mine, *_ = everyone = [json.loads(text) for text in allgather_text(json.dumps(dict(facts)))]
    missing = "nothing"
    differ = [
        f"{name} is {mine.get(name, missing)!r} in process 0 and {other.get(name, missing)!r} in process {number}"
        for number, other in enumerate(everyone)
        for name in {**mine, **other}
        if mine.get(name, missing) != other.get(name, missing)
    ]
    if differ:
        more = f"; and {len(differ) - _MOST_NAMED} more" * (len(differ) > _MOST_NAMED)
        raise ProcessMismatchError(
            f"all processes of a run must be alike, but {'; '.join(differ[:_MOST_NAMED])}{more}. Start all of them "
            "with the same command, code and data"
        )


def digest(tree: Any) -> str:
    """Return a hash of all bytes of the arrays of a tree, which must lie whole in this process."""
    told = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.asarray(leaf)
        told.update(f"{array.dtype}{array.shape}".encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()[:16]
