"""Tasks made by rules on the device, as many as wanted."""

from typing import TYPE_CHECKING

from jaxarc.lazy import lazy
from jaxarc.tasks.procedural.names import UnknownRuleError, procedural_names

if TYPE_CHECKING:
    from jaxarc.tasks.procedural.generator import procedural_tasks, register_rule
    from jaxarc.tasks.procedural.rule import ProceduralTasks, Rule

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
    **dict.fromkeys(["procedural_tasks", "register_rule"], "jaxarc.tasks.procedural.generator"),
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
