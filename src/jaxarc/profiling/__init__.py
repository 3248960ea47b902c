"""Measure what a JAX program does: compilations, time, memory, communication."""

from jaxarc.files import CacheFolderError
from jaxarc.profiling.collectives import COLLECTIVES, Collective, count_collectives
from jaxarc.profiling.compilation_cache import enable_compilation_cache
from jaxarc.profiling.compile_counter import CompileCounter
from jaxarc.profiling.costs import OperationCost, OperationCosts, costliest_operations
from jaxarc.profiling.memory import (
    CompiledMemory,
    DeviceMemory,
    TrainingMemory,
    compiled_memory,
    device_memory,
    save_memory_profile,
    training_memory,
)
from jaxarc.profiling.timing import OpsBenchmark, Timing, benchmark_ops, profile_fn
from jaxarc.profiling.tracing import ProfilerBusyError, profile_server, trace

__all__ = [
    "COLLECTIVES",
    "CacheFolderError",
    "Collective",
    "CompileCounter",
    "CompiledMemory",
    "DeviceMemory",
    "OperationCost",
    "OperationCosts",
    "OpsBenchmark",
    "ProfilerBusyError",
    "Timing",
    "TrainingMemory",
    "benchmark_ops",
    "compiled_memory",
    "costliest_operations",
    "count_collectives",
    "device_memory",
    "enable_compilation_cache",
    "profile_fn",
    "profile_server",
    "save_memory_profile",
    "trace",
    "training_memory",
]
