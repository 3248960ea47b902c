"""The ids of our environments, and their registration with Gymnasium, without JAX or the adapters themselves."""

from typing import Any

from jaxarc.constants import ENVIRONMENT_VERSION
from jaxarc.datasets import dataset_names
from jaxarc.tasks.procedural.names import STARTER


def environment_id(dataset: str) -> str:
    """Return the id of a dataset, with one slash: ``jaxarc/arc-agi-1-training-v1`` for ``arc-agi-1/training``."""
    return f"jaxarc/{dataset.replace('/', '-')}-v{ENVIRONMENT_VERSION}"


def environment_ids() -> dict[str, str]:
    """Return id -> dataset for the starter environment and all known datasets, installed or not."""
    return {environment_id(name): name for name in (STARTER, *dataset_names())}


def register_gymnasium(name: str | None = None, **choice: Any) -> tuple[str, ...]:
    """Register every dataset with Gymnasium, single and vectorized; ids that are registered stay as they are.

    ``import jaxarc`` does it, before ``import gymnasium`` or after.

    ``gymnasium.make("jaxarc/arc-agi-1-training-v1", max_grid_height=10, max_grid_width=10)`` takes the arguments of
    :func:`jaxarc.make`, and ``render_mode``. Where they name neither a layout nor a form of actions, the observation is
    one array and an action one integer. ``gymnasium.make_vec`` takes those of
    :class:`~jaxarc.adapters.GymnasiumVectorEnv` too. Nothing is loaded before that.

    With a name, register an id of your own, for clients that take nothing but an id:
    ``register_gymnasium("mine/gravity-v0", dataset="procedural/gravity", layout="flat")``.

    Args:
        name: ``namespace/name-v0``; None for the ids of all datasets.
        **choice: the arguments of :func:`jaxarc.make` that the name stands for; ``gymnasium.make`` may add to them.

    Returns:
        The ids.

    Raises:
        TypeError: a name without ``dataset``, or arguments without a name.
    """
    try:
        import gymnasium
    except ImportError as error:
        raise ImportError("register_gymnasium needs gymnasium; pip install gymnasium") from error
    if (name is None) != ("dataset" not in choice) or (name is None and choice):
        raise TypeError(
            f"register_gymnasium takes a name and dataset=..., or nothing; got name={name!r} and {sorted(choice)}"
        )
    choices = {known: {"dataset": dataset} for known, dataset in environment_ids().items()}
    if name is not None:
        choices = {name: choice}
    for known, arguments in choices.items():
        if known == name or known not in gymnasium.registry:
            gymnasium.register(
                id=known,
                entry_point="jaxarc.adapters.to_gymnasium:make_single",
                vector_entry_point="jaxarc.adapters.to_gymnasium_vector:make_vector",
                kwargs=arguments,
            )
    return tuple(choices)
