"""Tasks made by rules on the device, as many as wanted."""

from jaxarc.tasks.procedural.generator import ProceduralTasks
from jaxarc.tasks.procedural.names import UnknownRuleError, procedural_names, procedural_tasks, register_rule
from jaxarc.tasks.procedural.rule import Rule
from jaxarc.tasks.procedural.samples import sample_task_set

__all__ = [
    "ProceduralTasks",
    "Rule",
    "UnknownRuleError",
    "procedural_names",
    "procedural_tasks",
    "register_rule",
    "sample_task_set",
]
