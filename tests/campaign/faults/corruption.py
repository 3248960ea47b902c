"""Damage every kind of file that we read, at random places, and see that nobody takes it for another one.

``python -m campaign.faults.corruption --help``, with this folder's parent on the path; ``make corrupt`` does that.
"""

import argparse
import collections
import json
import platform
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from campaign.faults.corruptible import Kind, make_kinds

DAMAGES: Final[dict[str, Callable[[bytes, random.Random], bytes]]] = {
    "bit": lambda content, chance: _changed(content, chance, 1 << chance.randrange(8)),
    "byte": lambda content, chance: _changed(content, chance, chance.randrange(1, 256)),
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
    "longer": lambda content, chance: content + chance.randbytes(chance.randrange(1, 17)),
    "zeros": lambda content, chance: _zeroed(content, chance),
}
OUTCOMES: Final = ("refused", "made anew", "the same")


@dataclass
class Tally:
    """What became of the damaged files of a kind."""

    name: str
    outcomes: collections.Counter = field(default_factory=collections.Counter)
    findings: list[str] = field(default_factory=list)


def damage_often(kind: Kind, count: int, chance: random.Random, on_read: Callable[[], None] = lambda: None) -> Tally:
    """Damage a file of a kind again and again, and read it each time.

    Args:
        kind: of the files, which are put back each time.
        count: how often.
        chance: draws file, damage and place.
        on_read: called after each.
    """
    good = {file: file.read_bytes() for file in sorted(kind.folder.rglob("*")) if file.is_file()}
    expected, tally = kind.read(), Tally(kind.name)
    names = list(DAMAGES)
    for number in range(count):
        file, name = chance.choice([file for file in good if good[file]]), names[number % len(names)]
        bad = DAMAGES[name](good[file], chance)
        file.write_bytes(bad)
        outcome = _outcome(kind, expected, file)
        if bad != good[file] and outcome not in OUTCOMES:
            tally.findings.append(f"{name} in {file.name}, first at byte {_first_change(good[file], bad)}: {outcome}")
        tally.outcomes[outcome if outcome in OUTCOMES else "wrong"] += 1
        _put_back(kind.folder, good)
        on_read()
    return tally


def _outcome(kind: Kind, expected: Any, file: Path) -> str:
    """Read, and say in one of the words of ``OUTCOMES`` how that went, or in others what was wrong with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = kind.read()
        except kind.errors as error:
            return "refused" if _is_named(kind, file, str(error)) else f"no file is named by {error!r}"
        except Exception as error:  # whatever it is, it is a finding
            return f"a reader fails with {error!r}"
    told = [warning for warning in caught if issubclass(warning.category, kind.warnings)] if kind.warnings else []
    if any(not _is_named(kind, file, str(warning.message)) for warning in told):
        return f"no file is named by {told[0].message!r}"
    if found == expected:
        return "made anew" if told else "the same"
    return "refused" if told else "other contents are read"  # what is lost was told of


def _is_named(kind: Kind, file: Path, message: str) -> bool:
    """Tell whether a message names the file, or a folder that is read as a whole."""
    return str(file) in message or str(kind.folder) in message


def _put_back(folder: Path, good: dict[Path, bytes]) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file not in good:
            file.unlink()
    for file, content in good.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _changed(content: bytes, chance: random.Random, bits: int) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]


def _zeroed(content: bytes, chance: random.Random) -> bytes:
    place, length = chance.randrange(len(content)), chance.randrange(1, 65)
    end = min(place + length, len(content))
    return content[:place] + bytes(end - place) + content[end:]


def _first_change(good: bytes, bad: bytes) -> int:
    pairs = enumerate(zip(good, bad, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(good), len(bad)))


def main(arguments: list[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="damaged files of each kind (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of files, damages and places (0)")
    parser.add_argument("--only", action="append", help="one kind; may be given several times")
    parser.add_argument("--json", type=Path, help="write the summary here")
    chosen = parser.parse_args(arguments)
    begun, tallies = time.monotonic(), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="jaxarc-corruption-") as home,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        kinds = [kind for kind in make_kinds(Path(home)) if kind.name in (chosen.only or [kind.name])]
        bar = progress.add_task("damages", total=chosen.count * len(kinds))
        for kind in kinds:
            progress.update(bar, description=kind.name)
            chance = random.Random(f"{chosen.seed} {kind.name}")
            tallies.append(damage_often(kind, chosen.count, chance, lambda: progress.advance(bar)))
    return _report(tallies, chosen, time.monotonic() - begun, Console())


def _report(tallies: list[Tally], chosen: argparse.Namespace, seconds: float, console: Console) -> int:
    table = Table("file", "damages", *OUTCOMES, "findings")
    for tally in tallies:
        counts = [tally.outcomes.total(), *(tally.outcomes[outcome] for outcome in OUTCOMES), len(tally.findings)]
        table.add_row(tally.name, *(f"{count:,}" for count in counts))
    console.print(table)
    findings = [f"{tally.name}: {finding}" for tally in tallies for finding in tally.findings]
    for finding in findings[:40]:
        console.print(f"FINDING {finding}", markup=False, highlight=False, soft_wrap=True)
    total = sum(tally.outcomes.total() for tally in tallies)
    versions = {"python": platform.python_version(), **{name: version(name) for name in ("jax", "numpy")}}
    line = f"{total:,} damages, {len(findings)} findings, {seconds:.0f} s, seed {chosen.seed}, {versions}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    if chosen.json:
        summary = {
            "damages": {tally.name: dict(tally.outcomes) for tally in tallies},
            "findings": findings,
            "seconds": round(seconds, 1),
            "seed": chosen.seed,
            "versions": versions,
        }
        chosen.json.write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
