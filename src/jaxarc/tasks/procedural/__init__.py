"""Tasks made by rules on the device, as many as wanted."""

from jaxarc.tasks.procedural.names import UnknownRuleError, procedural_names, procedural_tasks, register_rule
from jaxarc.tasks.procedural.rule import ProceduralTasks, Rule

__all__ = [
    "ProceduralTasks",
    "Rule",
    "UnknownRuleError",
    "procedural_names",
    "procedural_tasks",
    "register_rule",
]
