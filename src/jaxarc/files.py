"""Write files whole, read others' texts, name files, put checksums on JSON, and find the user's folders.

``write_whole`` writes to a temporary name in the same folder, flushes it to the disk and renames it.
``read_lines`` and ``read_json_lines`` read texts that other programs wrote, such as recordings and tables.
``file_names`` turns ids into names of files, so that no name from a file is a path.
``add_checksum`` and ``verify_checksum`` find a change that leaves the text valid JSON. ``compiled_folder`` returns the
folder in which JAX keeps compiled programs, private and sound.
"""

import codecs
import hashlib
import json
import os
import re
import secrets
import stat
import tempfile
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from jaxarc.errors import JaxarcError, JaxarcWarning, UsageError, visible

CHECKSUM: Final = "sha256"  # the field that add_checksum adds
COMPILED_BYTES: Final = 2**30  # of compiled programs that are kept; the least recently used go first
_NAME_BYTES: Final = 150  # systems take 255; the rest is for endings, dates and the names of temporary files
_DEVICES: Final = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE
)  # of Windows
_PACKAGE: Final = Path(__file__).resolve().parent
TRAINED: Final = _PACKAGE / "trained"  # agents that the package brings, as runs
_DIGITS: Final = 16  # hexadecimal digits of the SHA-256 that are kept


class CutFileWarning(JaxarcWarning):
    """The last line of a file is incomplete: what wrote it was stopped, or the copy is not whole."""


class ChecksumError(JaxarcError, ValueError):
    """An object of JSON does not match its checksum."""


def write_whole(path: str | Path, content: bytes, *, flush: bool = True) -> Path:
    """Write ``content`` so that a reader finds either the old file or the whole new one, even after a crash.

    Args:
        path: where to; missing folders are made.
        content: the bytes.
        flush: wait until the disk has the file. Without it the file survives a crash of the process, but not always one
            of the machine: for files that carry a checksum and can be made again.

    Returns:
        The path.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the old file is then untouched.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Files of tempfile are their owner's alone, and to ask for the umask is to change it, in all threads at once.
    name = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    with names_file(target):
        try:
            with name.open("xb") as file:
                file.write(content)
                if flush:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(name, target)
        finally:
            with suppress(OSError):  # there is none, or the disk says what is wrong above
                name.unlink()
        if flush:
            _sync_folder(target.parent)
    return target


@contextmanager
def names_file(path: Path) -> Iterator[None]:
    """Let an error of the system name this file: it names none, or a temporary one, when writing fails.

    Raises:
        OSError: the same error, with the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # an error of ours, which says all
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def decode_text(content: bytes, source: str, error: type[JaxarcError]) -> str:
    """Decode UTF-8 with or without a byte order mark, as editors and spreadsheets write it.

    Raises:
        error: the bytes are not UTF-8; the message starts with ``source``.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(f"{source}: not UTF-8 text (byte {wrong.start}); save the file as UTF-8") from wrong


def read_lines(path: str | Path, error: type[JaxarcError]) -> Iterator[str]:
    """Read a text that another program wrote, line by line, with their ends.

    Only a line feed ends a line: U+2028, U+2029 and U+0085, at which :meth:`str.splitlines` splits, may stand in JSON
    and in tables.

    Args:
        path: the file, UTF-8 with or without a byte order mark.
        error: the class of errors for this kind of file.

    Raises:
        error: a line is not UTF-8.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield decode_text(line, f"{path}, line {number}", error)


def read_json_lines(path: str | Path, error: type[JaxarcError]) -> Iterator[tuple[str, Any]]:
    """Read a file of JSON that has one value a line, and pass over blank lines; see :func:`read_lines`.

    A last line that is cut, as after a kill of what wrote it, is left out with a :class:`CutFileWarning`.

    Yields:
        Where the value stands, the start of a message about it, and the value.

    Raises:
        error: a line is not UTF-8 or not JSON.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}, line {number}"
            if not line.removeprefix(codecs.BOM_UTF8).strip():
                continue
            try:
                found = _json_of(decode_text(line, where, error), where, error)
            except error:
                if number == 1 or line.endswith(b"\n"):
                    raise
                warnings.warn(f"{where} is cut and left out; what wrote it was stopped", CutFileWarning, stacklevel=2)
                return
            yield where, found


def _json_of(text: str, where: str, error: type[JaxarcError]) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise error(f"{where}: not JSON ({wrong}); write one object a line") from wrong


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """Name a file for each text, such as an id that a file gave: one name in a folder, on every system, never a path.

    A text that is such a name stays as it is. Others keep their letters and get a digest: ``a/b`` becomes
    ``a-b-c14cddc0``. These are texts with separators, drives, control characters or a dot in front, the devices of
    Windows, what is longer than 150 bytes, and of names that differ only in case or in how Unicode writes them all but
    the first.

    Returns:
        By text, names without an ending, no two of them equal in any case.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for text in texts:
        digits = 0 if _is_file_name(text) else 8
        while (name := _with_digest(text, digits)).casefold() in taken and text not in names:
            digits += 8
        names.setdefault(text, name)
        taken.add(name.casefold())
    return names


def file_name(text: str) -> str:
    """Name a file for one text, see :func:`file_names`."""
    return file_names([text])[text]


def _is_file_name(text: str) -> bool:
    return (
        bool(re.fullmatch(r"\w(.*[^. ])?", text))
        and text.isprintable()
        and not set(text) & set('/\\:*?"<>|')
        and not _DEVICES.fullmatch(text)
        and unicodedata.is_normalized("NFC", text)
        and len(text.encode()) <= _NAME_BYTES
    )


def _with_digest(text: str, digits: int) -> str:
    """Return a text, or with some digits of its digest its letters and these."""
    if not digits:
        return text
    letters = re.sub(r"[^\w.+=-]+", "-", unicodedata.normalize("NFC", text)).strip("-. ")[:20]  # 80 bytes or less
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{letters or '_'}-{digest}" if not _DEVICES.fullmatch(letters) else f"_{letters}-{digest}"


def add_checksum(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields and their checksum: ``{"a": 1}`` becomes ``{"a": 1, "sha256": "015abd7f5cc57a2d"}``."""
    return {**fields, CHECKSUM: _checksum(fields)}


def verify_checksum(content: Any) -> dict[str, Any]:
    """Return the fields of an object without its checksum; an object that has no checksum passes.

    Raises:
        ChecksumError: the content is not an object, or its checksum belongs to other fields.
    """
    if not isinstance(content, Mapping):
        raise ChecksumError("it is no JSON object")
    fields = without_checksum(content)
    if CHECKSUM in content and content[CHECKSUM] != _checksum(fields):
        raise ChecksumError(
            f"its {CHECKSUM!r} does not match its other fields; bring the file back, or take {CHECKSUM!r} out if you "
            "changed it on purpose"
        )
    return fields


def without_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without the checksum, which is not compared: for files that people edit."""
    return {name: value for name, value in content.items() if name != CHECKSUM}


def _checksum(fields: Mapping[str, Any]) -> str:
    # Sorted names: the order of the fields does not matter.
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class CacheFolderError(JaxarcError, PermissionError):
    """Other users can write programs into the cache folder, or JAX cannot take its name."""


def code_digest(package: Path = _PACKAGE) -> str:
    """Return a hash of the names and the text of all Python files of a package, this one when left out."""
    digest = hashlib.sha256()
    # The names count as well: a file that moved is other code.
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package).as_posix()}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def compiled_folder(directory: str | Path | None = None) -> Path:
    """Make the folder of compiled programs private, and remove what a killed process wrote in part.

    Args:
        directory: made when missing with mode 0700; when left out, that of :func:`user_cache`.

    Raises:
        CacheFolderError: the folder belongs to another user, or others may write into it, or its name is no text.
        OSError: it cannot be made or written, or is no folder.
    """
    from filelock import FileLock, Timeout  # not needed by the core, which imports this module

    folder = Path(os.path.abspath(user_cache("compiled") if directory is None else user_path(directory)))
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise CacheFolderError(
            f"JAX takes no folder that Python cannot read as text, got {visible(str(folder))}; set PYTHONUTF8=1"
        ) from None
    private_folder(folder)
    # JAX writes a program and then, into a second file, when it was used. A program without the second file may be half
    # a program, and keeps JAX from writing any other. The lock is JAX's own: who holds it may be between the two.
    with suppress(Timeout), FileLock(folder / ".lockfile", timeout=1):
        for program in folder.glob("*-cache"):
            if not program.with_name(f"{program.name.removesuffix('-cache')}-atime").exists():
                program.unlink()
    return folder


def user_cache(name: str) -> Path:
    """Return a folder of the user's cache: ``jaxarc/NAME`` in ``XDG_CACHE_HOME`` or ``~/.cache``, made or not."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return at_home(lambda: named if named.is_absolute() else Path.home() / ".cache", ".cache") / "jaxarc" / name


def user_path(path: str | Path) -> Path:
    """Return a path with the home folder in place of ``~`` or ``~NAME`` in front.

    Raises:
        UsageError: there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # no HOME and no entry of this user, or no such user
        raise UsageError(
            f"{path}: no home folder is known for its '~'; set HOME, or give the path from / on"
        ) from error


def at_home(find: Callable[[], str | Path], name: str) -> Path:
    """Return a folder of the user; where no home is known, as in a container whose user has no entry, one of this name.

    That one is in a folder of this user for temporary files, which is made, and private.

    Args:
        find: returns the folder, or raises RuntimeError where no home is known.
        name: of the one in its place.

    Raises:
        CacheFolderError: another user has the temporary folder, or may write into it.
        OSError: it cannot be made.
    """
    with suppress(RuntimeError):
        if (found := Path(find())).is_absolute():
            return found
    user = os.geteuid() if os.name == "posix" else "user"
    temporary = Path(tempfile.gettempdir()) / f"jaxarc-{user}"
    private_folder(temporary)
    return temporary / name


def private_folder(folder: Path) -> None:
    """Make a folder of programs, and see that nobody else can write programs into it.

    Raises:
        CacheFolderError: the folder belongs to another user, or others may write into it.
        OSError: it cannot be made, or is no folder.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name != "posix":
        return
    status = folder.stat()
    rule = "JAX runs the programs in it, so it must belong to you and only you may write into it"
    if status.st_uid != os.geteuid():
        raise CacheFolderError(
            f"compilation cache {folder} belongs to user {status.st_uid}, and you are user {os.geteuid()}; {rule}; "
            "name a folder of your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise CacheFolderError(
            f"compilation cache {folder} has mode {mode:04o}; {rule}; run chmod 700 on it after making sure that all "
            "files in it are yours, or name another folder"
        )


def locate_run(path: Path) -> Path:
    """Return a path as it is, or, of a bare name that is not there, the trained agent that the package brings.

    ``Path("ladder_l2_small")`` becomes its folder in the package, which is for reading only.
    """
    is_name = path.name == str(path) and not path.exists()
    return TRAINED / path if is_name and (TRAINED / path).is_dir() else path
