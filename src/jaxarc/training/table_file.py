"""Tables of a run as lines of JSON, each with its checksum and how many there are, so that a reader misses none."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxarc.files import CHECKSUM, add_checksum, verify_checksum, write_whole


def write_table(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    rows = list(rows)
    write_whole(path, "".join(json.dumps(add_checksum({**row, "of": len(rows)})) + "\n" for row in rows).encode())


def read_table(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the rows, and how many are damaged or missing; a table that is not there has none.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], 0
    rows = [row for line in lines if (row := read_row(line)) is not None]
    wanted = [row["of"] for row in rows if type(row.get("of")) is int]  # earlier files do not tell
    return rows, max([len(lines), *wanted]) - len(rows)


def read_row(line: bytes) -> dict[str, Any] | None:
    """Read a line of JSON; None for what is no object, or not as it was written."""
    try:
        content = json.loads(line)
        row = verify_checksum(content)
    except (ValueError, RecursionError):  # a ChecksumError is one
        return None
    return None if "of" in row and CHECKSUM not in content else row  # such a row had a checksum when it was written
