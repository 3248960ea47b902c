"""Names of a package that are imported when somebody asks for them, so that the package itself is light."""

import importlib
import sys
from collections.abc import Callable, Mapping
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
