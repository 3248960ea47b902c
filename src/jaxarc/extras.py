"""The optional parts of the package: which libraries each needs, and how they are installed."""

import importlib
import importlib.util
from typing import Final

_COMMANDS: Final = {"typer": "typer", "rich": "rich"}
_DOWNLOADS: Final = {"pooch": "pooch", "requests": "requests", "urllib3": "urllib3"}
_GYMNASIUM: Final = {"gymnasium": "gymnasium"}
# Extra -> its libraries, by import name and by the name that pip knows; as in pyproject.toml.
EXTRAS: Final[dict[str, dict[str, str]]] = {
    "commands": _COMMANDS,
    "train": {**_COMMANDS, "hydra": "hydra-core", "optax": "optax", "matplotlib": "matplotlib"},
    "play": {**_COMMANDS, "starlette": "starlette", "uvicorn": "uvicorn"},
    "data": {**_COMMANDS, **_DOWNLOADS},
    "search": {**_COMMANDS, "scipy": "scipy"},
    "share": {**_COMMANDS, "fsspec": "fsspec"},
    "gymnasium": _GYMNASIUM,
    "gymnax": {"gymnax": "gymnax", "six": "six"},
    "stoa": {"stoa": "stoa-env"},
    "sb3": {"stable_baselines3": "stable-baselines3", "sb3_contrib": "sb3-contrib", **_GYMNASIUM},
    "envelope": {"envelope": "jax-envelope"},
    "tensorboard": {"tensorboardX": "tensorboardX"},
    "wandb": {"wandb": "wandb"},
    "mctx": {"mctx": "mctx"},
    "arc3": {"arcengine": "arcengine", "arc_agi": "arc-agi"},
    "slurm": {"submitit": "submitit"},
    "ray": {"ray": "ray"},
    "minari": {"minari": "minari", "h5py": "h5py", **_GYMNASIUM},
}


def missing_libraries(extra: str) -> list[str]:
    """Return the libraries of an extra that are not installed, by the names that pip knows."""
    return [name for module, name in EXTRAS[extra].items() if importlib.util.find_spec(module) is None]


def how_to_install_extra(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'jaxarc-rl[{extra}]', or '.[{extra}]' in a clone"


def how_to_install(module: str | None) -> str | None:
    """Say in a line how to install a module that was not found; None where no extra brings it.

    Args:
        module: name of a ``ModuleNotFoundError``, such as ``hydra.core``.
    """
    root = (module or "").partition(".")[0]
    root = "hydra" if root == "omegaconf" else root  # Hydra brings it, and it may be imported before
    extra = next((name for name, libraries in EXTRAS.items() if root in libraries), None)
    if extra is None:
        return None
    return f"{EXTRAS[extra][root]} is not installed: {how_to_install_extra(extra)}"


def require_library(module: str) -> None:
    """Import a library of an extra, for a package that cannot do without.

    Raises:
        ModuleNotFoundError: it is not there; the message says how to install it.
    """
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = how_to_install(error.name)
        raise ModuleNotFoundError(f"{error.msg}; {hint}" if hint else error.msg, name=error.name) from None
