"""Coverage-guided fuzzing of every reader and of the builder of configs: ``make fuzz-input ARGS="--inputs 10000000"``.

Every input must give a valid object, or an error that the reader documents, of one line, within 2 s and 1 GiB. The
guide is atheris (libFuzzer): it changes the bytes of small files as we write them, with the words of the reader as its
dictionary, and the choices by which hypothesis changes their structure. Needs Linux and requirements-fuzz.txt.
"""

import contextlib
import io
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import warnings
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Final

import atheris
from hypothesis import given, settings
from rich.console import Console
from rich.progress import Progress

from campaign.summary import finish, parser_of

_NO_READERS: Final = [
    f"jaxarc.{name}" for name in ("envs", "agents", "surrogate", "benchmarks", "profiling", "wrappers")
]
with (
    contextlib.redirect_stderr(io.StringIO()),
    atheris.instrument_imports(include=["jaxarc"], exclude=_NO_READERS, enable_loader_override=False),
):
    from campaign.inputs.input_feeding import MAKERS, SHARES, Finding, feed, wrong_inputs
    from campaign.inputs.input_target import Target

_FORK: Final = multiprocessing.get_context("fork")  # everything is imported by then, and JAX has not begun
_CHOICES: Final = b"\x00"  # the first byte of what hypothesis makes an input of; no seed begins with it
_ZEROS: Final = bytes(2**10)  # the simplest choices, where those that are given do not suffice
_MOST_BYTES: Final = 2**11  # of an input, or twice its largest seed
_HANGS_S: Final = 120  # of a machine that may be busy; what takes 2 s of processor time is a finding anyway
_MOST_MEMORY_MB: Final = 2400


def feed_until_done(name: str, count: int, seed: int, folder: Path, fed: Synchronized) -> None:
    """Feed so many inputs to one reader, and end this process, as libFuzzer does not return.

    Args:
        name: of the reader.
        count: of inputs.
        seed: for what is drawn.
        folder: gets a log, and the first input of each finding.
        fed: counts the inputs.
    """
    log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    warnings.simplefilter("ignore")
    home = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    (home / "files").mkdir()
    target, places = MAKERS[name](home / "files"), set[str]()

    def judge(content: bytes) -> None:
        finding = feed(target, content)
        if finding is not None and finding.place not in places:
            places.add(finding.place)
            _note(folder, name, finding, folder / f"{name}-{len(places)}.input")
        fed.value += 1
        if fed.value >= count:
            shutil.rmtree(home)
            os._exit(0)

    feed_changed = settings(database=None)(given(wrong_inputs(target))(judge)).hypothesis.fuzz_one_input

    def feed_one(data: bytes) -> None:
        if data.startswith(_CHOICES):
            feed_changed(data[1:] + _ZEROS)
        else:
            judge(data)

    flags = {
        "seed": seed + 1,  # 0 would draw one
        "max_len": max(_MOST_BYTES, 2 * max(map(len, target.seeds))),
        "timeout": _HANGS_S,
        "rss_limit_mb": _MOST_MEMORY_MB,
        "artifact_prefix": f"{folder / name}-",
        "verbosity": 0,
    }
    if target.words:  # libFuzzer refuses an empty file
        flags["dict"] = _write_words(home / "words", target)
    arguments = [f"-{flag}={value}" for flag, value in flags.items()]
    atheris.Setup([name, *arguments, _write_seeds(home / "corpus", target)], feed_one)
    atheris.Fuzz()


def _note(folder: Path, name: str, finding: Finding, file: Path) -> None:
    file.write_bytes(finding.content)
    line = {"target": name, "place": finding.place, "what": finding.what, "input": str(file)}
    with (folder / "findings.jsonl").open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def _write_seeds(folder: Path, target: Target) -> str:
    folder.mkdir()
    choices = [_CHOICES + bytes([start]) * 64 for start in range(0, 256, 16)]
    for number, content in enumerate([*target.seeds, *choices]):
        (folder / str(number)).write_bytes(content)
    return str(folder)


def _write_words(file: Path, target: Target) -> Path:
    escape = lambda word: "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogatepass")[:60])
    file.write_text("".join(f'"{escape(word)}"\n' for word in target.words))
    return file


def main() -> int:
    """Run the campaign."""
    parser, began = parser_of(__doc__), time.monotonic()
    parser.add_argument("--inputs", type=int, default=10_000_000, help="in all, default %(default)s")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once, default %(default)s")
    parser.add_argument("--targets", nargs="+", choices=list(MAKERS), metavar="NAME", help=f"of {', '.join(MAKERS)}")
    options, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="fuzz-input-"))
    (folder / "findings.jsonl").touch()
    names = options.targets or list(MAKERS)
    whole = sum(SHARES[MAKERS[name]] for name in names)
    counts = {name: max(1, round(options.inputs * SHARES[MAKERS[name]] / whole)) for name in names}
    fed, deaths = _run(counts, options.seed, options.jobs, folder)
    findings = [json.loads(line) for line in (folder / "findings.jsonl").read_text().splitlines()]
    summary = {"inputs": sum(fed.values()), "targets": fed, "logs": str(folder)}
    return finish(options, began, summary, findings + deaths, ("atheris", "jax", "numpy"))


def _run(counts: dict[str, int], seed: int, jobs: int, folder: Path) -> tuple[dict[str, int], list[str]]:
    """Feed every reader in a process of its own; return how much each was fed, and processes that died."""
    fed = {name: _FORK.Value("Q", 0, lock=True) for name in counts}
    waiting, deaths = sorted(counts, key=lambda name: -counts[name]), list[str]()
    running: dict[str, ForkProcess] = {}
    with Progress(*Progress.get_default_columns(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("inputs", total=sum(counts.values()))
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                arguments = (name, counts[name], seed, folder, fed[name])
                running[name] = _FORK.Process(target=feed_until_done, args=arguments)
                running[name].start()
            time.sleep(0.5)
            for name in [name for name, process in running.items() if not process.is_alive()]:
                if code := running.pop(name).exitcode:
                    deaths.append(f"{name}: its process died with {code} after {fed[name].value:,} inputs, see its log")
            progress.update(bar, completed=sum(count.value for count in fed.values()), description=", ".join(running))
    return {name: count.value for name, count in fed.items()}, deaths


if __name__ == "__main__":
    sys.exit(main())
