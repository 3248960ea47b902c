"""``jaxarc info``: versions, devices, folders and extras, as a report of a fault needs them."""

import importlib.metadata
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any, Final

import jax
from rich.console import Console
from rich.table import Table

import jaxarc
from jaxarc.cli.console import JsonOption, escape, message_of, print_json
from jaxarc.config.choices import config_folder
from jaxarc.datasets.installed import data_folder
from jaxarc.errors import JaxarcError
from jaxarc.extras import EXTRAS, missing_libraries
from jaxarc.files import compiled_folder
from jaxarc.jobs import host_memory
from jaxarc.native.library import cache_folder, native_library
from jaxarc.parallel import host_cores
from jaxarc.primitives import choose_executor
from jaxarc.profiling import check_numerics
from jaxarc.traces.cache import default_folder

_LIBRARIES: Final = ("jax", "jaxlib", "equinox", "numpy")


def info(as_json: JsonOption = False) -> None:
    """Print versions, devices, folders with their sizes, and which extras are installed.

    The installed JAX computes a few small programs, which NumPy checks: some versions compute wrong numbers.

    Examples:
        jaxarc info
        jaxarc info --json > info.json
    """
    facts = _facts()
    if as_json:
        print_json(facts)
        return
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # a path is shown whole
    for name, value in facts["versions"].items():
        table.add_row(name, escape(value))
    table.add_row("machine", escape(f"{facts['system']}, {facts['cores']} cores, {_size(facts['free_memory'])} free"))
    for device in facts["devices"]:
        table.add_row("device", escape(device))
    for name in ("executor", "library"):
        table.add_row(name, escape(facts[name] or "none"))
    table.add_row(
        "numbers", "; ".join(f"WRONG in {name}: {how}" for name, how in facts["wrong_numbers"].items()) or "right"
    )
    for name, folder in facts["folders"].items():
        table.add_row(name, escape(f"{folder['path']} ({_size(folder['bytes'])})"))
    for name, missing in facts["extras"].items():
        words = f"not installed; run: pip install {' '.join(missing)}" if missing else "installed"
        table.add_row(f"extra {name}", escape(words))
    Console(soft_wrap=True).print(table, highlight=False)


def _facts() -> dict[str, Any]:
    system = platform.uname()
    versions = {"jaxarc": jaxarc.__version__, "python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in _LIBRARIES}
    executor = _executor()
    library = native_library() if executor.startswith("native") else None
    folders = {"native kernels": cache_folder(), "data": data_folder()}
    folders |= {"traces": default_folder(), "configs": config_folder()}
    return {
        "versions": versions,
        "system": f"{system.system} {system.release} {system.machine}, {sys.executable}",
        "cores": host_cores(),
        "free_memory": host_memory(),
        "devices": [f"{device.platform} {device.id}: {device.device_kind}" for device in jax.devices()],
        "executor": executor,
        "library": str(library.path) if library else None,
        "wrong_numbers": check_numerics().wrong,
        "folders": {
            "compiled programs": _compiled(),
            **{name: {"path": str(path), "bytes": _bytes_in(path)} for name, path in folders.items()},
        },
        "extras": {extra: missing_libraries(extra) for extra in EXTRAS},
    }


def _executor() -> str:
    """Return the executor that runs a step here; the native one is built for it if need be."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = choose_executor("auto")
    return ", because ".join([chosen, *(str(warning.message) for warning in caught)])


def _compiled() -> dict[str, Any]:
    try:
        folder = compiled_folder(None)
    except (JaxarcError, OSError) as error:  # a report says what is wrong, and goes on
        return {"path": message_of(error), "bytes": None}
    return {"path": str(folder), "bytes": _bytes_in(folder)}


def _bytes_in(folder: Path) -> int | None:
    """Return the size of all files below a folder; None where it is not there."""
    if not folder.is_dir():
        return None
    return sum(os.lstat(Path(parent, name)).st_size for parent, _, names in os.walk(folder) for name in names)


def _size(num_bytes: int | None) -> str:
    if num_bytes is None:
        return "nothing yet"
    return f"{num_bytes / 2**30:,.1f} GiB" if num_bytes >= 2**30 else f"{num_bytes / 2**20:,.1f} MiB"
