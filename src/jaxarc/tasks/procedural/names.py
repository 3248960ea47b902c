"""Names of the rules, which can be listed without loading the rules."""

import difflib
from typing import Any, Final, NoReturn

from jaxarc.errors import UsageError

PREFIX: Final = "procedural/"
STARTER: Final = "starter"  # the small random grids of ``jaxarc.make("starter")``
ALL: Final = "all"  # a mixture, no rule
UNRELATED: Final = ("random",)  # has no rule to infer, so the mixture leaves it out
BUILT_IN: Final = (
    "random",
    "rotate",
    "flip-left-right",
    "flip-up-down",
    "transpose",
    "geometric",
    "color-map",
    "move-object",
    "move-to-wall",
    "gravity",
    "fill-enclosed",
    "copy-pattern",
    "crop",
    "count",
    "complete-symmetry",
)
registered: dict[str, Any] = {}
"""Rules of one's own by name, without ``procedural/``, see :func:`~jaxarc.tasks.procedural.register_rule`."""


class UnknownRuleError(UsageError, KeyError):
    """No rule has this name."""


def procedural_names() -> tuple[str, ...]:
    """List the names that :func:`~jaxarc.tasks.procedural.procedural_tasks` knows, each with ``procedural/``."""
    return tuple(PREFIX + name for name in (*BUILT_IN, *registered, ALL))


def refuse_rule(name: str) -> NoReturn:
    """Raise that there is no such rule, and name the nearest ones."""
    known = [*BUILT_IN, *registered, ALL]
    near = difflib.get_close_matches(name, known, n=2)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UnknownRuleError(
        f"no procedural task {name!r}; {hint}Known: {', '.join(known)}; register_rule(name, rule) adds one"
    )
