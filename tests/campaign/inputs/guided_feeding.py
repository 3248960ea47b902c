"""Feeds one reader with inputs that coverage guides, in a process that ends with the last of them."""

import json
import os
import random
import shutil
import tempfile
import time
import warnings
from pathlib import Path
from typing import Final

import atheris

from campaign.inputs.input_mutation import mutate_json
from campaign.inputs.input_target import Finding, Maker, Target, feed

_MOST_BYTES: Final = 2**11  # of an input, or twice its largest seed
_STRUCTURED: Final = 0.4  # of the inputs are changed in their structure, the others in their bytes
_HANGS_S: Final = 120  # of a machine that may be busy; what takes 2 s of processor time is a finding anyway
_MOST_MEMORY_MB: Final = 2400
_EACH_S: Final = 2.0  # between reports


def feed_until_done(maker: Maker, count: int, seed: int, report: Path) -> None:
    """Feed so many inputs, and end this process.

    Args:
        maker: of the target.
        count: of inputs.
        seed: for what is drawn.
        report: gets what was fed, as JSON, every few seconds and at the end; inputs that are findings lie beside it.
    """
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    (folder / "files").mkdir()
    target, random_ = maker(folder / "files"), random.Random(seed)
    feeding = _Feeding(count, report, folder)

    def feed_one(content: bytes) -> None:
        feeding.note(feed(target, content))

    def change(content: bytes, max_size: int, _: int) -> bytes:
        changed = mutate_json(content, random_, target.words) if random_.random() < _STRUCTURED else None
        return changed if changed is not None and len(changed) <= max_size else atheris.Mutate(content, max_size)

    arguments = {
        "seed": seed,
        "max_len": max(_MOST_BYTES, 2 * max(map(len, target.seeds))),
        "timeout": _HANGS_S,
        "rss_limit_mb": _MOST_MEMORY_MB,
        "artifact_prefix": f"{report.with_suffix('')}-",
        "verbosity": 0,
    }
    if target.words:  # libFuzzer refuses an empty file
        arguments["dict"] = _write_words(folder / "words", target)
    flags = [f"-{name}={value}" for name, value in arguments.items()]
    atheris.Setup(["feeding", *flags, _write_seeds(folder / "corpus", target)], feed_one, custom_mutator=change)
    atheris.Fuzz()


class _Feeding:
    """What was fed so far."""

    def __init__(self, count: int, report: Path, folder: Path):
        self._most, self._report, self._folder = count, report, folder
        self._count, self._told = 0, 0.0
        self._findings: dict[str, dict[str, str]] = {}

    def note(self, finding: Finding | None) -> None:
        """Count an input, and end the process after the last: libFuzzer does not return."""
        self._count += 1
        if finding is not None and finding.place not in self._findings:  # one input of each place is kept
            file = self._report.with_name(f"{self._report.stem}-{len(self._findings)}.input")
            file.write_bytes(finding.content)
            self._findings[finding.place] = {"place": finding.place, "what": finding.what, "input": str(file)}
        is_last = self._count >= self._most
        if is_last or (self._count % 64 == 0 and time.monotonic() - self._told > _EACH_S):
            self._told = time.monotonic()
            part = self._report.with_suffix(".part")
            part.write_text(json.dumps({"inputs": self._count, "findings": list(self._findings.values())}))
            part.replace(self._report)
        if is_last:
            shutil.rmtree(self._folder)
            os._exit(0)


def _write_seeds(folder: Path, target: Target) -> str:
    folder.mkdir()
    for number, content in enumerate(target.seeds):
        (folder / str(number)).write_bytes(content)
    return str(folder)


def _write_words(file: Path, target: Target) -> Path:
    escape = lambda word: "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogatepass")[:60])
    file.write_text("".join(f'"{escape(word)}"\n' for word in target.words))
    return file
