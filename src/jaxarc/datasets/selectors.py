"""The grammar of names: ``NAME[@VERSION][:CLAUSE[,CLAUSE...]]``, such as ``arc-agi-1/training:first 10,max_side=8``."""

import difflib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.datasets.subset import SubsetError

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")  # of a path on Windows, whose colon is no separator
_MAX_SUBSET_BYTES: Final = 2**20


def split_clauses(name: str) -> tuple[str, str | None]:
    """Cut a name at its first colon into what to load and which of its tasks; ``None`` where there is no colon."""
    start = 2 if _DRIVE.match(name) else 0
    place = name.find(":", start)
    return (name, None) if place < 0 else (name[:place], name[place + 1 :])


def split_version(name: str) -> tuple[str, str | None]:
    """Cut a name at its last ``@``; ``None`` where there is none."""
    base, at, version = name.rpartition("@")
    return (base, version) if at else (name, None)


def parse_clauses(text: str) -> dict[str, Any]:
    """Turn ``first 10,max_side=8`` into keywords of :meth:`jaxarc.datasets.TaskSet.select`.

    ``without_errata`` stays a keyword of its own: only the catalogue knows the errata of a dataset.

    Raises:
        SubsetError: a clause is unknown, comes twice, or has a wrong value.
        FileNotFoundError: the file of a clause ``file=...`` is not there.
    """
    keywords: dict[str, Any] = {}
    for clause in text.split(","):
        key, value = _split_clause(clause)
        found = _read_subset(Path(value)) if key == "file" and value else {key: _parse(key, value, clause)}
        for name, parsed in found.items():
            if name in keywords:
                raise SubsetError(f"the clause {name!r} comes twice in {text!r}; write it once")
            keywords[name] = parsed
    return keywords


def _split_clause(clause: str) -> tuple[str, str]:
    key, _, value = clause.strip().replace("=", " ", 1).partition(" ")
    return key, value.strip()


def _parse(key: str, value: Any, where: str) -> Any:
    if key not in _PARSERS:
        near = difflib.get_close_matches(key, _PARSERS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SubsetError(
            f"unknown clause {key!r} in {where!r}; {hint}Known clauses: {', '.join(_PARSERS)}, such as 'first 10' or "
            "'max_side=10'"
        )
    try:
        return _PARSERS[key](value)
    except _WrongValueError as error:
        raise SubsetError(f"the clause {key!r} in {where!r} takes {error}, got {value!r}; correct it") from error


class _WrongValueError(Exception):
    """Says what a clause takes."""


def _whole_number(low: int, high: int | None = None) -> Callable[[Any], int]:
    wanted = f"a whole number of {low} or more" if high is None else f"a whole number in {low}..{high}"

    def parse(value: Any) -> int:
        if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,9}", value):
            raise _WrongValueError(wanted)
        if int(value) < low or (high is not None and int(value) > high):
            raise _WrongValueError(wanted)
        return int(value)

    return parse


def _flag(value: Any) -> bool:
    if value not in ("", "true", "false"):
        raise _WrongValueError("no value")
    return value != "false"


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _WrongValueError("a name")
    return value


def _ids(value: Any) -> list[str]:
    ids = value.split("+") if isinstance(value, str) else value
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) and one for one in ids):
        raise _WrongValueError("task ids with a plus between them, or in a file a list of them")
    return ids


def _file(value: Any) -> str:
    raise _WrongValueError("the path of a YAML file, in a name and not in such a file")


_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "first": _whole_number(1),
    "max_side": _whole_number(1, MAX_GRID_SIZE),
    "min_side": _whole_number(1, MAX_GRID_SIZE),
    "same_shape": _flag,
    "concept": _word,
    "ids": _ids,
    "without": _ids,
    "without_errata": _flag,
    "file": _file,
}


def _read_subset(file: Path) -> dict[str, Any]:
    """Read a YAML file: a list of ids, or a mapping of clauses."""
    if not file.is_file():
        raise FileNotFoundError(f"no file {file} for the clause 'file'; give the path of a YAML file of task ids")
    if file.stat().st_size > _MAX_SUBSET_BYTES:
        raise SubsetError(f"{file}: more than {_MAX_SUBSET_BYTES:,} bytes; a subset is a list of ids")
    try:
        # The base loader leaves every value a string: 22168020 is an id, and no other loader would keep 00576224.
        content = yaml.load(file.read_bytes(), Loader=yaml.BaseLoader)  # makes strings, lists and mappings only
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise SubsetError(f"{file}: not YAML ({reason}); write one '- id' per line") from error
    clauses = {"ids": content} if isinstance(content, list) else content
    if not isinstance(clauses, dict) or not clauses:
        raise SubsetError(f"{file}: a subset is a list of ids or a mapping such as 'max_side: 10'; write one")
    return {key: _parse(str(key), value, str(file)) for key, value in clauses.items()}
