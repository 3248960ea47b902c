"""Our spaces as Gymnasium's, and Gymnasium's actions as ours."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from jaxarc.adapters.action_fields import action_of_fields, action_of_vector, field_sizes
from jaxarc.envs.spaces import ActionSpace, Box, Dict, Discrete, Space
from jaxarc.types import Observation


def to_gymnasium_space(space: Space) -> spaces.Space:
    """Return Gymnasium's space of the same values.

    Points and boxes become a ``MultiDiscrete`` of operation and coordinates, masks a ``Dict`` of both. Of observations,
    bools are int8, and a number has the shape (1,): agents such as those of stable-baselines3 want an axis.

    Raises:
        TypeError: Gymnasium has nothing for this kind of space.
    """
    match space:
        case Box(dtype=jnp.bool_):
            return spaces.MultiBinary(space.shape)
        case Box():
            return spaces.Box(space.low, space.high, space.shape or (1,), space.dtype)
        case Discrete():
            return spaces.Discrete(space.n)
        case Dict():
            return spaces.Dict({name: to_gymnasium_space(entry) for name, entry in space.entries.items()})
        case ActionSpace(selection_format="mask"):
            operation = spaces.Discrete(field_sizes(space)["operation"])
            return spaces.Dict({"operation": operation, "selection": spaces.MultiBinary(space.grid_shape)})
        case ActionSpace():
            return spaces.MultiDiscrete(list(field_sizes(space).values()))
    raise TypeError(f"no space of Gymnasium stands for a {type(space).__name__}; wrap the environment first")


def require_action(space: spaces.Space, action: Any) -> Any:
    """Return an action as arrays for the device.

    Raises:
        ValueError: it does not lie in the space.
    """
    if not space.contains(action):
        raise ValueError(f"an action must lie in {space}, got {action!r}; see action_space.sample()")
    return jax.tree.map(_narrow, action)


def to_gymnasium_observation(observation: Observation, batch_axes: int = 0) -> Any:
    """Copy an observation to the host, into arrays that nobody else holds, in the shapes of the Gymnasium space."""

    def copy(value: Any) -> np.ndarray:
        array = np.array(value, np.int8 if value.dtype == np.bool_ else None)
        return array[..., None] if array.ndim == batch_axes else array

    return jax.tree.map(copy, observation)


def to_our_action(space: Space, action: Any) -> Any:
    """Return the action that our environment takes for one of Gymnasium's; batches work as single actions do."""
    if not isinstance(space, ActionSpace):
        return action
    return action_of_fields(space, action) if space.selection_format == "mask" else action_of_vector(space, action)


def _narrow(value: Any) -> np.ndarray:
    """Cast Gymnasium's int64, which JAX would refuse or warn of, to int32; masks stay as small as they are."""
    array = np.asarray(value)
    return array.astype(np.int32) if array.dtype.itemsize > 4 else array
