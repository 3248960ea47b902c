"""Mutants that no test can tell from the source, as ``known_mutants.toml`` lists them."""

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

_LIST: Final = Path(__file__).with_name("known_mutants.toml")


class Known(NamedTuple):
    """One of them."""

    file: str  # below the package
    was: str  # the line, with single spaces
    becomes: str
    reason: str


def known_mutants() -> list[Known]:
    """Read the list; an entry may name several things that a line becomes."""
    entries = tomllib.loads(_LIST.read_text(encoding="utf-8"))["mutant"]
    return [
        Known(entry["file"], entry["was"], becomes, entry["reason"])
        for entry in entries
        for becomes in ([entry["becomes"]] if isinstance(entry["becomes"], str) else entry["becomes"])
    ]
