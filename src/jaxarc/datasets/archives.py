"""What can be downloaded: where each archive lies, what it must hold, and what the names of its files mean."""

import dataclasses
import re
from collections.abc import Callable
from typing import Final, NamedTuple

_ROOT: Final = "(?:[^/]+/)?"  # GitHub puts everything below one folder, named after the repository


class Label(NamedTuple):
    """What the path of a file says about the task in it."""

    task_id: str
    title: str = ""
    concept: str = ""


@dataclasses.dataclass(frozen=True)
class Archive:
    """One published task set.

    GitHub makes its archives on request and does not promise their bytes, so what is pinned is the digest of the tasks:
    a repository that has changed is noticed and refused.
    """

    url: str  # of a zip file
    homepage: str
    license: str
    num_tasks: int
    digest: str  # of the tasks, see jaxarc.datasets.digest
    label: Callable[[str], Label | None]  # of a path in the archive, with slashes; None: not a task of this set
    example: str  # a path that has a label, for messages
    loose_cells: bool = False  # null stands for color 0, and "7" for 7
    sha256: str | None = None  # of the zip file, where its bytes are promised


def any_json(path: str) -> Label | None:
    """Take every JSON file as a task named after the file; hidden ones, and those that macOS adds, are left out."""
    *folders, file = path.split("/")
    if not file.endswith(".json") or any(part.startswith((".", "__MACOSX")) for part in (*folders, file)):
        return None
    return Label(file.removesuffix(".json"))


def _concept_arc(path: str) -> Label | None:
    """Take the ten tasks of each concept and its minimal task; upstream keeps copies and drafts beside them."""
    if found := re.fullmatch(_ROOT + r"(?:corpus/)?([A-Za-z0-9]+)/(\1\d+)\.json", path):
        return Label(found[2], concept=found[1])
    if found := re.fullmatch(_ROOT + r"MinimalTasks/(([A-Za-z0-9]+)Minimal)\.json", path):
        return Label(found[1], concept=found[2])
    return None


def printable(text: str) -> str:
    """Put a question mark for each letter that a terminal would not show."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _mini_arc(path: str) -> Label | None:
    """Name a task by the code at the end of its file name, the one part that all copies of the set agree on."""
    found = re.fullmatch(_ROOT + r"(?:data/MiniARC/)?([^/]+)_(l6[a-z0-9]{16,18})\.json", path)
    if not found:
        return None
    words = printable(found[1]).replace("_", " ").split()
    return Label(found[2], title=" ".join(words))


def _arc_agi(path: str) -> Label | None:
    found = re.fullmatch(_ROOT + r"(?:data/)?(training|evaluation)/([0-9a-f]{8})\.json", path)
    return Label(found[2], concept=found[1]) if found else None


ARCHIVES: Final[dict[str, Archive]] = {
    "arc-agi-1": Archive(
        url="https://github.com/fchollet/ARC-AGI/archive/aa922be204204ec148a1137fe6ed4d34ddde812b.zip",
        homepage="https://github.com/fchollet/ARC-AGI",
        license="Apache-2.0",
        num_tasks=800,
        digest="5ca064b2cb6a2266e4e8dc196d95f4aea3be8d2b47c696c92485cba7a242b667",
        label=_arc_agi,
        example="data/training/007bbfb7.json",
    ),
    "arc-agi-2": Archive(
        url="https://github.com/arcprize/ARC-AGI-2/archive/f3283f727488ad98fe575ea6a5ac981e4a188e49.zip",
        homepage="https://github.com/arcprize/ARC-AGI-2",
        license="Apache-2.0",
        num_tasks=1120,
        digest="c44f871c60e4d9a8c5caadd91983699d2f5a1daa74ecb559e1d0737a540e4508",
        label=_arc_agi,
        example="data/training/007bbfb7.json",
    ),
    "concept-arc": Archive(
        url="https://github.com/victorvikram/ConceptARC/archive/HEAD.zip",
        homepage="https://github.com/victorvikram/ConceptARC",
        license="MIT",
        num_tasks=176,
        digest="f949e813e565f95a9751c0ba481bcebab35ddf97bbb6fb6e178380f49ba73316",
        label=_concept_arc,
        example="corpus/Copy/Copy1.json",
    ),
    "mini-arc": Archive(
        url="https://github.com/KSB21ST/MINI-ARC/archive/HEAD.zip",
        homepage="https://github.com/KSB21ST/MINI-ARC",
        license="Apache-2.0",
        num_tasks=149,
        digest="91e5b9b4d8701a75cfaacd6833c6b3636b627d0707b31f653b14d21de3ec8333",
        label=_mini_arc,
        example="data/MiniARC/Good_axis_l69ctqaoulgvm1zso2.json",
        loose_cells=True,
    ),
}
