"""The observation as one array of channels, for convolutional and plain networks alike."""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.compilation import compiled
from jaxarc.envs.environment import Action, Environment, State, Step, checks_actions
from jaxarc.envs.params import EnvParams
from jaxarc.envs.spaces import Box, Dict, Space
from jaxarc.types import Observation, PRNGKey
from jaxarc.wrappers.wrapper import Wrapper

_CHANNELS = NUM_COLORS + 1  # of a grid: the ten colors, and the padding


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StackedObservations(Wrapper[State]):
    """Shows an observation as one array ``float32[H, W, C]`` with entries 0 .. 1.

    Its entries follow one another along the last axis, sorted by name. A grid takes 11 channels, one for each color and
    the last for padding; a mask takes one; a number takes one that is constant, divided by its largest value; several
    grids, such as demonstrations, take the channels of each. Example: ``reveal_target`` on 3x3 gives 3x3x22, first the
    target, then the working grid.

    Wrap it directly around the environment, and :class:`AutoReset` around it: then ``info["final_observation"]`` is
    stacked too.
    """

    env: Environment[State]

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[State, Float32[Array, "H W C"]]:
        state, observation = self.env.reset(key, params, task_index, pair_index)
        return state, self._stack(observation, params)

    def reset_next(self, state: State, params: EnvParams) -> tuple[State, Float32[Array, "H W C"]]:
        state, observation = self.env.reset_next(state, params)
        return state, self._stack(observation, params)

    def step(self, state: State, action: Action, params: EnvParams) -> Step[State]:
        return _step(self, state, action, params)

    def observe(self, state: State, params: EnvParams) -> Float32[Array, "H W C"]:
        return self._stack(self.env.observe(state, params), params)

    def observation_space(self, params: EnvParams) -> Box:
        """Arrays ``float32[H, W, C]``.

        Raises:
            ValueError: grids are shown as tokens, which have no rows and columns.
        """
        channels = sum(_num_channels(leaf) for leaf in _boxes(self.env.observation_space(params), params))
        return Box(0, 1, (*params.config.grid_shape, channels), jnp.float32)

    def _stack(self, observation: Observation, params: EnvParams) -> Float32[Array, "H W C"]:
        boxes = _boxes(self.env.observation_space(params), params)
        # Dictionaries are flattened in the order of their sorted names, by JAX and by ``_boxes`` alike.
        leaves = jax.tree.leaves(observation)
        parts = [_to_channels(leaf, box, params.config.grid_shape) for leaf, box in zip(leaves, boxes, strict=True)]
        return jnp.concatenate(parts, axis=-1)


@compiled(may_raise=lambda wrapper, state, action, params: checks_actions(params))
def _step(wrapper: StackedObservations[State], state: State, action: Action, params: EnvParams) -> Step[State]:
    state, observation, reward, done, info = wrapper.env.step(state, action, params)
    return state, wrapper._stack(observation, params), reward, done, info


def _boxes(space: Space, params: EnvParams) -> list[Box]:
    if params.config.observation.grid_format == "tokens":
        raise ValueError(
            "stacked observations need rows and columns, which observation.grid_format='tokens' has not; choose "
            "'planes' or 'one_hot'"
        )
    if isinstance(space, Dict):
        return [box for name in sorted(space.entries) for box in _boxes(space.entries[name], params)]
    if not isinstance(space, Box):
        raise TypeError(
            f"observations are stacked of arrays, got a {type(space).__name__}; wrap the environment itself"
        )
    return [space]


def _is_planes(box: Box) -> bool:
    return box.low == PADDING


def _is_one_hot(box: Box) -> bool:
    return box.dtype == jnp.int8 and not _is_planes(box)


def _num_channels(box: Box) -> int:
    if _is_planes(box):
        return math.prod(box.shape[:-2]) * _CHANNELS
    if _is_one_hot(box):
        return math.prod(box.shape[:-3]) * _CHANNELS
    return 1 if len(box.shape) == 2 else math.prod(box.shape)


def _to_channels(value: Array, box: Box, grid_shape: tuple[int, int]) -> Float32[Array, "H W C"]:
    """Turn one entry of an observation into channels.

    The row ``2 -1`` becomes ``0 0 1 0 0 0 0 0 0 0 0`` and ``0 0 0 0 0 0 0 0 0 0 1``; step 5 of at most 20 becomes a
    channel of 0.25.
    """
    height, width = grid_shape
    if _is_planes(box):
        colors = jnp.array([*range(NUM_COLORS), PADDING], jnp.int8)
        value = value[..., None] == colors.reshape(*(1,) * value.ndim, -1)
    if _is_planes(box) or _is_one_hot(box):
        # [P, H, W, 11] -> [H, W, P * 11]; a single grid has no axis P.
        grids = value.astype(jnp.float32).reshape(-1, height, width, _CHANNELS)
        return jnp.moveaxis(grids, 0, 2).reshape(height, width, -1)
    share = value.astype(jnp.float32) / jnp.float32(box.high)
    if value.ndim == 2:
        return share[..., None]
    return jnp.broadcast_to(share.reshape(1, 1, -1), (height, width, value.size))
