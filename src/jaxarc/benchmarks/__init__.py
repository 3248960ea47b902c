"""How fast the environment is, measured through the calls that users make.

:func:`core_rows` and its like list what can be measured, :func:`measure_rows` measures it, and the results say how and
on what.
"""

from jaxarc.benchmarks.adapter_rows import adapter_rows
from jaxarc.benchmarks.core_rows import DEFAULT_SIZES, core_rows, operation_rows
from jaxarc.benchmarks.cores import pinned_to_cores
from jaxarc.benchmarks.machine import describe_machine, versions
from jaxarc.benchmarks.measuring import RowResult, measure_rows
from jaxarc.benchmarks.row import Row, UnknownRowError, choose_rows
from jaxarc.benchmarks.scaling_rows import NUM_CORES, scaling_rows
from jaxarc.benchmarks.surrogate_rows import surrogate_rows
from jaxarc.benchmarks.task_rows import task_rows
from jaxarc.benchmarks.trace_rows import trace_rows
from jaxarc.benchmarks.training_rows import DEFAULT_TRAINING_SIZES, training_rows
from jaxarc.benchmarks.workbench import QUICK, THOROUGH, Effort, Workbench

__all__ = [
    "DEFAULT_SIZES",
    "DEFAULT_TRAINING_SIZES",
    "NUM_CORES",
    "QUICK",
    "THOROUGH",
    "Effort",
    "Row",
    "RowResult",
    "UnknownRowError",
    "Workbench",
    "adapter_rows",
    "choose_rows",
    "core_rows",
    "describe_machine",
    "measure_rows",
    "operation_rows",
    "pinned_to_cores",
    "scaling_rows",
    "surrogate_rows",
    "task_rows",
    "trace_rows",
    "training_rows",
    "versions",
]
