"""Recorded traces in a place that a group shares: a folder, a web address, or one of fsspec such as s3://bucket/traces.

A place holds packs: files of traces, a line each, in the order of their units. A pack is named by the SHA-256 of its
content. So it never changes, equal packs are stored once, and damage is noticed.
"""

import hashlib
import http.client
import re
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from jaxarc.errors import Caught, JaxarcError, JaxarcWarning
from jaxarc.files import user_path, write_whole
from jaxarc.traces.cache import TraceCache
from jaxarc.traces.units import Trace

_UNIT: Final = re.compile(r"[0-9a-f]{64}")
_PACK: Final = re.compile(rf"{_UNIT.pattern}\.jsonl")
_SILENCE_S: Final = 60.0  # of a web server


class PlaceError(JaxarcError, OSError):
    """A place cannot be read or written, or holds no traces."""


class DamagedPackWarning(JaxarcWarning):
    """A pack does not have the content that its name says, and is left out."""


class _Place(NamedTuple):
    """How a place is used; each of these raises an OSError."""

    names: Callable[[], list[str]]  # of its files
    read: Callable[[str], bytes]
    write: Callable[[str, bytes], object]


def push_traces(address: str, cache: TraceCache) -> tuple[int, int]:
    """Store what a place lacks of the traces of a cache, as one pack.

    Args:
        address: of the place: a folder, or an address of fsspec.
        cache: the traces.

    Returns:
        How many traces were stored, and how many were there already, or shorter ones of their units.

    Warns:
        DamagedPackWarning: a pack of the place is damaged; its traces count as missing.

    Raises:
        PlaceError: the place cannot be read or written, its protocol needs a package that is not installed, or the
            cache is empty.
        OSError: the folder cannot be read or written.
    """
    traces = list(cache.traces())
    if not traces:
        raise PlaceError(f"there are no traces in {cache.path}; record some with: jaxarc traces record DATASET")
    place = _open(address)
    packs = [trace for pack in _read_packs(place, address) for trace in pack or ()]
    # The shortest trace of a unit comes last, and stays.
    there = {one.unit_hash: len(one.actions) for one in sorted(packs, key=lambda one: -len(one.actions))}
    new = [one for one in traces if one.unit_hash not in there or len(one.actions) < there[one.unit_hash]]
    if new:
        content = "".join(f"{trace.to_json()}\n" for trace in new).encode()
        place.write(f"{hashlib.sha256(content).hexdigest()}.jsonl", content)
    return len(new), len(traces) - len(new)


def pull_traces(address: str, cache: TraceCache) -> tuple[int, int]:
    """Put the traces of a place into a cache; a trace there stays unless that of the place is shorter.

    Args:
        address: of the place, or of one of its packs.
        cache: gets the traces.

    Returns:
        How many were put into the cache, and how many packs are damaged.

    Warns:
        DamagedPackWarning: a pack is damaged, and left out.

    Raises:
        PlaceError: as :func:`push_traces`, or there is no pack.
        OSError: the folder cannot be read, or the cache cannot be written.
    """
    packs = list(_read_packs(_open(address), address))
    if not packs:
        raise PlaceError(f"there are no traces in {address}; store some with: jaxarc traces push PLACE")
    found = [trace for pack in packs if pack is not None for trace in pack]
    return cache.put_shorter(found), packs.count(None)


def _read_packs(place: _Place, address: str) -> Iterator[list[Trace] | None]:
    """Yield the traces of each pack; None for one that is damaged."""
    for name in filter(_PACK.fullmatch, sorted(set(place.names()))):
        try:
            yield _read_pack(name, place.read(name))
        except ValueError as error:
            fault = f"{name} of {address} is damaged ({error}) and left out; remove it, and push its traces again"
            warnings.warn(fault, DamagedPackWarning, stacklevel=3)
            yield None


def _read_pack(name: str, content: bytes) -> list[Trace]:
    if f"{hashlib.sha256(content).hexdigest()}.jsonl" != name:
        raise ValueError("its content is not that of its name")
    traces = [Trace.from_json(line) for line in content.decode().splitlines()]
    for trace in traces:  # anybody can name a file by its content
        numbers = (number for action in trace.actions for number in action)
        if not _UNIT.fullmatch(str(trace.unit_hash)) or any(type(number) is not int for number in numbers):
            raise ValueError(f"not a trace: {trace.to_json()[:60]!r}")
    return traces


def _open(address: str) -> _Place:
    head, _, last = address.rstrip("/").rpartition("/")
    if _PACK.fullmatch(last):
        return _open(head or ".")._replace(names=lambda: [last])
    if re.match(r"https?://", address):
        return _open_web(address.rstrip("/"))
    if "://" in address:
        return _open_fsspec(address)
    folder = user_path(Path(address))
    return _Place(
        lambda: [path.name for path in folder.iterdir()] if folder.exists() else [],
        lambda name: (folder / name).read_bytes(),
        lambda name, content: write_whole(folder / name, content),
    )


def _open_web(address: str) -> _Place:
    def read(name: str) -> bytes:
        try:
            with urllib.request.urlopen(f"{address}/{name}", timeout=_SILENCE_S) as answer:
                return answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise PlaceError(f"{address}/{name} cannot be read: {error}") from error

    def refuse(name: str, content: bytes) -> NoReturn:
        raise PlaceError(f"{address} can only be read; push to the folder that it serves")

    return _Place(lambda: _PACK.findall(read("").decode(errors="replace")), read, refuse)  # a page of links


def _open_fsspec(address: str) -> _Place:
    import fsspec

    def ask(do: Callable, *arguments: object) -> Any:
        with Caught() as caught:
            return do(*arguments)
        raise PlaceError(f"{address}: {caught.error}") from caught.error

    files, root = ask(fsspec.url_to_fs, address)
    return _Place(
        lambda: [path.rpartition("/")[2] for path in ask(files.ls, root, False)] if ask(files.exists, root) else [],
        lambda name: ask(files.cat_file, f"{root}/{name}"),
        lambda name, content: ask(files.pipe_file, f"{root}/{name}", content),
    )
