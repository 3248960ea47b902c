"""Write the golden episodes anew: ``python tests/golden/make_golden.py``, after ``ENVIRONMENT_VERSION`` was raised.

Episodes that were written under the present version stay as they are; that is what makes them golden.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import golden_episodes as golden

from jaxarc.constants import ENVIRONMENT_VERSION


def write_all(folder: Path = golden.FOLDER, version: int = ENVIRONMENT_VERSION, cases=tuple(golden.CASES)) -> list[str]:
    """Write the cases and return the names of the files that are new.

    Raises:
        FileExistsError: a file of this version or a later one is there.
    """
    for case in cases:
        path = folder / f"{case}.json"
        if path.exists() and (written := json.loads(path.read_text(encoding="utf-8"))["version"]) >= version:
            raise FileExistsError(
                f"{path.name} holds episodes of version {written}, and the environment has version {version}; raise "
                "ENVIRONMENT_VERSION in jaxarc/constants.py and say under Semantics in CHANGELOG.md what changed"
            )
    for case in cases:
        episodes = {"version": version, **golden.record(case)}
        (folder / f"{case}.json").write_text(_to_text(episodes), encoding="utf-8")
    return [f"{case}.json" for case in cases]


def _to_text(episodes: dict) -> str:
    """One line per action and per hash, so that a difference shows where an episode changed."""
    lists = {"actions", "hashes"}
    head = [f'  "{name}": {json.dumps(value)},' for name, value in episodes.items() if name not in lists]
    blocks = []
    for name in sorted(lists):
        tasks = ["    [\n" + ",\n".join(f"      {json.dumps(x)}" for x in task) + "\n    ]" for task in episodes[name]]
        blocks.append(f'  "{name}": [\n' + ",\n".join(tasks) + "\n  ]")
    return "\n".join(["{", *head, ",\n".join(blocks), "}"]) + "\n"


if __name__ == "__main__":
    write_all()
