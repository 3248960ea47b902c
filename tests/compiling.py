"""How a test compiles that wants what users get, where the others compile as quickly as they can; what runs here."""

import functools
import warnings
from unittest import mock

import jax
from jax.errors import JaxRuntimeError

from jaxarc.envs.operations import flood_fill
from jaxarc.primitives import choose_executor

with warnings.catch_warnings():
    # Without a C++ compiler the native executor is XLA's, with a warning, and its tests are skipped.
    warnings.simplefilter("ignore")
    EXECUTORS = tuple(dict.fromkeys([choose_executor("native"), "xla"]))


def known_options(options):
    """Return those of some options of XLA that it knows: some come and go."""
    return {name: value for name, value in options.items() if is_known(name, value)}


def is_known(name, value):
    try:
        jax.jit(lambda: None).lower().compile({name: value})
    except JaxRuntimeError:
        return False
    return True


# For jax.jit's compiler_options: what users get, and what every other test does, whatever environment variables say.
AS_USERS = known_options(
    {
        "xla_cpu_use_fusion_emitters": True,
        "xla_backend_optimization_level": 3,
        "xla_llvm_disable_expensive_passes": False,
    }
)
QUICKLY = known_options(
    {
        "xla_cpu_use_fusion_emitters": False,
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
    }
)


def interpreted_triton():
    """Trace the flood fill of XLA as the kernel for NVIDIA's GPUs, to run on a CPU."""
    kernel = functools.partial(flood_fill._connected_in_triton, interpret=True)
    return mock.patch.object(flood_fill, "_connected_in_xla", kernel)
