"""Tasks made by rules on the device, as many as wanted."""

import importlib
from typing import TYPE_CHECKING, Any

from jaxarc.tasks.procedural.names import UnknownRuleError, procedural_names

if TYPE_CHECKING:
    from jaxarc.tasks.procedural.rule import ProceduralTasks, Rule
    from jaxarc.tasks.procedural.rules import procedural_tasks, register_rule

__all__ = [
    "ProceduralTasks",
    "Rule",
    "UnknownRuleError",
    "procedural_names",
    "procedural_tasks",
    "register_rule",
]

# Rules run on the device and bring JAX; their names do not.
_HOMES = {
    **dict.fromkeys(["ProceduralTasks", "Rule"], "jaxarc.tasks.procedural.rule"),
    **dict.fromkeys(["procedural_tasks", "register_rule"], "jaxarc.tasks.procedural.rules"),
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'jaxarc.tasks.procedural' has no attribute {name!r}; it has {', '.join(__all__)}")
