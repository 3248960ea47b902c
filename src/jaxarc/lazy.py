"""Names of a package that are imported when somebody asks for them, and what waits for a library of others."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
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
            if hint is not None:
                error.add_note(hint)
            raise
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    def list_names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return import_name, list_names


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
