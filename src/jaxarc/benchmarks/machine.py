"""What a measurement ran on."""

import platform
from importlib import metadata
from pathlib import Path
from typing import Final

import jax

_CPU_FACTS: Final = Path("/proc/cpuinfo")
_PACKAGES: Final = ("jax", "jaxlib", "equinox", "numpy", "jaxarc")


def describe_machine(num_cores: int | None) -> str:
    """Name the processor, the cores in use and, where there is one, the accelerator that JAX computes on.

    Args:
        num_cores: cores that the process was pinned to; None when it was not.
    """
    used = "all cores" if num_cores is None else f"{num_cores} core{'s' if num_cores > 1 else ''}"
    parts = [_processor(), used]
    device = jax.devices()[0]
    if device.platform != "cpu":
        parts.append(device.device_kind)
    return ", ".join(parts)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide how fast a step is."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}


def _processor() -> str:
    if _CPU_FACTS.is_file():
        for line in _CPU_FACTS.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine() or "unknown processor"
