"""Code that is loaded when somebody asks for it: names of a package, files of others, what waits for a library."""

import functools
import hashlib
import importlib
import importlib.util
import sys
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


def load_file(file: Path) -> ModuleType:
    """Run a file of Python that a user named, once as long as it does not change, and return its module.

    Its name hides no other module: ``random.py`` is not what ``import random`` finds. Modules that the file imports are
    looked for in its folder, too.

    Raises:
        OSError: the file cannot be read.
        Exception: what its code raises.
    """
    path = file.resolve()
    return _run_file(path, path.stat().st_mtime_ns)


@functools.cache
def _run_file(path: Path, mtime: int) -> ModuleType:
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(f"_jaxarc_file_{digest}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # as an import does, so that its classes can be pickled
    spec.loader.exec_module(module)
    return module


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
