"""How a campaign ends: its summary, with the versions, on the screen and in a file; exit code 1 for any finding."""

import argparse
import json
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with what all campaigns take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    parser.add_argument("--json", type=Path, help="write the summary here")
    return parser


def finish(
    options: argparse.Namespace,
    began: float,
    summary: dict[str, Any],
    findings: Sequence[Any],
    libraries: Sequence[str] = ("jax", "numpy"),
) -> int:
    """Print and write the summary, and return the exit code; ``began`` is of ``time.monotonic``."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in libraries}}
    seconds = round(time.monotonic() - began, 1)
    summary = {**summary, "findings": list(findings), "seconds": seconds, "seed": options.seed, "versions": versions}
    text = json.dumps(summary, indent=1)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 1 if findings else 0
