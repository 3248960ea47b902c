"""Measure what a JAX program does: compilations, time, memory, communication, and whether its numbers are right."""

from jaxarc.files import CacheFolderError
from jaxarc.profiling.collectives import COLLECTIVES, Collective, count_collectives
from jaxarc.profiling.compilations import CompileCounter, enable_compilation_cache
from jaxarc.profiling.memory_use import (
    CompiledMemory,
    DeviceMemory,
    MemoryReport,
    compiled_memory,
    device_memory,
    memory_report,
    save_memory_profile,
)
from jaxarc.profiling.numerics import NumericsReport, WrongNumbersWarning, check_numerics
from jaxarc.profiling.timing import (
    OpsBenchmark,
    ProfilerBusyError,
    Timing,
    benchmark_ops,
    profile_fn,
    profile_server,
    trace,
)

__all__ = [
    "COLLECTIVES",
    "CacheFolderError",
    "Collective",
    "CompileCounter",
    "CompiledMemory",
    "DeviceMemory",
    "MemoryReport",
    "NumericsReport",
    "OpsBenchmark",
    "ProfilerBusyError",
    "Timing",
    "WrongNumbersWarning",
    "benchmark_ops",
    "check_numerics",
    "compiled_memory",
    "count_collectives",
    "device_memory",
    "enable_compilation_cache",
    "memory_report",
    "profile_fn",
    "profile_server",
    "save_memory_profile",
    "trace",
]
