"""Code that is loaded when somebody asks for it: names of a package, files of others, what waits for a library."""

import functools
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxarc.extras import how_to_install


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Args:
        package: its ``__name__``; what ``__dir__`` lists stands in its ``__all__``.
        homes: name -> the module that defines it; ``{"tasks": "jaxarc.tasks"}`` in ``jaxarc`` is that module itself.
    """

    def import_name(name: str) -> Any:
        if name not in homes:
            listed = ", ".join(list_names())
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {listed}")
        try:
            module = importlib.import_module(homes[name])
        except ModuleNotFoundError as error:
            hint = how_to_install(error.name)
            if hint is not None and hint not in str(error):
                error.add_note(hint)
            raise
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    def list_names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return import_name, list_names


def load_code(where: str) -> ModuleType:
    """Return the module that a user named; a file of Python is run once as long as it does not change.

    A file hides no other module: ``random.py`` is not what ``import random`` finds. Modules that it imports are looked
    for in its folder, too, and a module by its name in the working directory.

    Raises:
        UsageError: no home folder is known for the file's ``~``.
        OSError: the file cannot be read.
        Exception: what its code raises.
    """
    if not is_file_of_code(where):
        _look_in(Path.cwd())
        return importlib.import_module(where)
    from jaxarc.files import user_path  # files.py writes, and importing the core loads nothing that does

    path = user_path(where).resolve()
    return _run_file(path, path.stat().st_mtime_ns)


def is_file_of_code(where: str) -> bool:
    """Whether a name is that of a file of Python."""
    return where.lower().endswith(".py")


def line_of(error: BaseException | None, file: str | Path) -> int | None:
    """Return the last line of a file that an error passed, if it did."""
    frames = [] if error is None else traceback.extract_tb(error.__traceback__)
    passed = [frame.lineno for frame in frames if frame.filename == str(file)]
    return passed[-1] if passed else None


@functools.cache
def _run_file(path: Path, mtime: int) -> ModuleType:
    _look_in(path.parent)
    name = _name_of(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as an import does, so that its classes can be pickled
    spec.loader.exec_module(module)
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _name_of(path: Path) -> str:
    """Return the name by which Python would import a file, if it would; else, as for random.py, one of its own."""
    if path.stem.isidentifier():
        known = sys.modules.get(path.stem)
        found = importlib.util.find_spec(path.stem) if known is None else known.__spec__
        if found is not None and found.origin is not None and Path(found.origin).resolve() == path:
            return path.stem
    return f"{path.stem} of {path.parent}"


def when_imported(library: str, then: Callable[[], Any]) -> None:
    """Call a function if a library is imported already, and after each import of it from now on.

    Gymnasium 1 reads no entry points of packages, and ``gymnasium.make("jaxarc:...")`` imports only what is not
    imported yet, so that nothing else tells a package that its ids are asked for.
    """
    if library in sys.modules:
        then()
    sys.meta_path.insert(0, _Follower(library, then))


class _Follower:
    """Finds one library where Python finds it, with a call behind its execution."""

    def __init__(self, library: str, then: Callable[[], Any]):
        self._library = library
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._library:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_follow(module: ModuleType) -> None:
                execute(module)
                self._then()

            spec.loader.exec_module = execute_and_follow
        return spec
