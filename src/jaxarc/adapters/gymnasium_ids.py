"""Names by which ``gymnasium.make`` and ``gymnasium.make_vec`` find our environments."""

from typing import Any, Final

try:
    import gymnasium
except ImportError as error:
    raise ImportError('register_gymnasium needs gymnasium; pip install "jaxarc[gymnasium]"') from error

from jaxarc.adapters.environment_ids import environment_ids, make_chosen
from jaxarc.adapters.to_gymnasium import GymnasiumEnv
from jaxarc.adapters.to_gymnasium_vector import GymnasiumVectorEnv

_VECTOR_ONLY: Final = ("num_envs", "autoreset_mode", "render_mode")


def register_gymnasium() -> tuple[str, ...]:
    """Register every dataset with Gymnasium, single and vectorized; ids that are registered stay as they are.

    ``gymnasium.make("jaxarc/arc-agi-1-training-v1", selection_format="bbox")`` takes the arguments of
    :func:`jaxarc.make`, with ``flat_actions=True`` for one integer per action, and ``render_mode``;
    ``gymnasium.make_vec`` those of :class:`GymnasiumVectorEnv` too. Nothing is loaded before that.

    Returns:
        The ids.
    """
    ids = environment_ids()
    for name, dataset in ids.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="jaxarc.adapters.gymnasium_ids:make_single",
                vector_entry_point="jaxarc.adapters.gymnasium_ids:make_vector",
                kwargs={"dataset": dataset},
            )
    return tuple(ids)


def make_single(render_mode: str | None = None, **choice: Any) -> GymnasiumEnv:
    """Make what ``gymnasium.make`` returns."""
    return GymnasiumEnv(*make_chosen(**choice), render_mode=render_mode)


def make_vector(**choice: Any) -> GymnasiumVectorEnv:
    """Make what ``gymnasium.make_vec`` returns."""
    own = {name: choice.pop(name) for name in _VECTOR_ONLY if name in choice}
    return GymnasiumVectorEnv(*make_chosen(**choice), **own)
