"""Experts by name: our own, and everybody's as ``module:attribute``."""

import difflib
import importlib
from typing import Any, Final

from jaxarc.experts.expert import Expert, ExpertError
from jaxarc.experts.traces.batch_expert import BatchExpert
from jaxarc.experts.traces.trace import Caught

EXPERTS: Final = {
    "painter": "jaxarc.experts.painter:Painter",
    "greedy": "jaxarc.experts.traces.greedy:GreedyExpert",
}


class UnknownExpertError(ExpertError):
    """There is no expert of this name, or what has the name is none."""


def find_expert(name: str) -> Expert | BatchExpert:
    """Return the expert of a name; a class is called without arguments.

    Args:
        name: one of :data:`EXPERTS`, or ``module:attribute`` of a module that can be imported.

    Raises:
        UnknownExpertError: it cannot be found, or lacks ``name``, ``version`` or ``solve``.
    """
    module, colon, attribute = EXPERTS.get(name, name).partition(":")
    if not colon:
        near = difflib.get_close_matches(name, EXPERTS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(EXPERTS)}, or module:attribute"
        raise UnknownExpertError(f"no expert {name!r}; {hint}")
    with Caught() as caught:
        found: Any = getattr(importlib.import_module(module), attribute)
        return _checked(found() if isinstance(found, type) else found, name)
    if isinstance(caught.error, UnknownExpertError):
        raise caught.error
    raise UnknownExpertError(
        f"the expert {name!r} cannot be loaded ({type(caught.error).__name__}: {caught.error}); "
        "give module:attribute of a module that Python finds from here"
    ) from caught.error


def _checked(expert: Any, name: str) -> Expert | BatchExpert:
    missing = [word for word in ("name", "version") if word not in dir(expert)]
    if not isinstance(expert, BatchExpert) and "solve" not in dir(expert):
        missing.append("solve")
    if missing:
        lacks = " and no ".join(missing)
        raise UnknownExpertError(f"{name!r} is no expert: it has no {lacks}; see jaxarc.experts.Expert")
    return expert
