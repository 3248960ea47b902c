"""How fast the environment is, measured through the calls that users make.

:func:`core_rows` and its like list what can be measured, :func:`measure_rows` measures it, and the results say how and
on what.
"""

from jaxarc.benchmarks.core import DEFAULT_SIZES, core_rows
from jaxarc.benchmarks.measure import (
    Row,
    RowResult,
    UnknownRowError,
    choose_rows,
    describe_machine,
    measure_rows,
    pinned_to_cores,
    versions,
)
from jaxarc.benchmarks.suite import QUICK, THOROUGH, Budget, EnvSpec, Suite
from jaxarc.benchmarks.training import DEFAULT_TRAINING_SIZES, training_rows

__all__ = [
    "DEFAULT_SIZES",
    "DEFAULT_TRAINING_SIZES",
    "QUICK",
    "THOROUGH",
    "Budget",
    "EnvSpec",
    "Row",
    "RowResult",
    "Suite",
    "UnknownRowError",
    "choose_rows",
    "core_rows",
    "describe_machine",
    "measure_rows",
    "pinned_to_cores",
    "training_rows",
    "versions",
]
