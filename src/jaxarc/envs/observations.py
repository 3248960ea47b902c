"""Observations, the space of them, and the info of a step."""

import itertools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, Shaped

from jaxarc.config import JaxArcConfig
from jaxarc.constants import NUM_COLORS, NUM_OPERATIONS, PADDING
from jaxarc.envs.action_masks import flat_action_mask, legal_operation_mask
from jaxarc.envs.pairs import PairSource, PairTable
from jaxarc.envs.state import ArcEnvState
from jaxarc.fusion import materialize_call
from jaxarc.spaces import Box, Dict, Space
from jaxarc.types import Info, Observation

_Value: TypeAlias = Callable[[Any, PairSource], Observation]  # of an entry, from a state and the pairs that it plays


def observe(state: ArcEnvState, source: PairSource, config: JaxArcConfig) -> Observation:
    """Show the working grid, and what else ``config.observation`` asks for.

    With ``layout="dict"`` it is the grid alone, or a dictionary. ``demonstrations`` has ``inputs`` and ``outputs``,
    grids with a leading axis of slots, ``mask``, bool[slots], true where a slot holds a demonstration, and ``count``.
    In training and in trials the slot of the pair that is played is empty: its output would be the answer.

    The other layouts are one array, in which the entries follow one another, sorted by name:

    - ``"stacked"``, float32[H, W, C] with entries 0 .. 1. A grid takes 11 channels, one for each color and the last for
      padding; a mask of cells takes one; a number takes one that is constant, divided by its largest value. Example:
      ``reveal_target`` on 3x3 gives 3x3x22, first the target, then the working grid. With ``grid_format="tokens"`` it
      is int32, a grid takes one channel of 0 .. 10, and no number is divided.
    - ``"flat"``, float32[N]: the same entries, each as a vector, so that a number takes one element.

    Args:
        state: of one environment or a batch.
        source: the pairs that the state plays.
        config: the one that the state was made with.
    """
    num_slots = 0 if state.demonstrations is None else state.demonstrations.inputs.shape[-2]
    shown = _entries(config, num_slots)
    entries = {name: value(state, source) for name, (_, value) in shown.items()}
    if config.observation.layout == "dict":
        return entries if len(entries) > 1 else entries["working_grid"]
    boxes = _boxes({name: space for name, (space, _) in shown.items()})
    # Dictionaries are flattened in the order of their sorted names, by JAX and by ``_boxes`` alike.
    parts = [_part(leaf, box, config) for leaf, box in zip(jax.tree.leaves(entries), boxes, strict=True)]
    return jnp.concatenate(parts, axis=-1)


def shows_only_the_grid(config: JaxArcConfig) -> bool:
    """Whether an observation depends on nothing but the working grid."""
    return config.observation.layout == "dict" and list(_entries(config, 0)) == ["working_grid"]


def _entries(config: JaxArcConfig, num_slots: int) -> dict[str, tuple[Space, _Value]]:
    """List what a config shows, each entry with its space and with how it is read; a row for each that there is."""
    rule = config.observation
    limits = config.environment
    show = lambda flat: _shown(flat, config)
    grid = _space_of_grids(config)
    grids = _space_of_grids(config, num_slots)
    flags = lambda *shape: Box(0, 1, shape, jnp.bool_)
    number = lambda high: Box(0, high, (), jnp.int32)
    demonstrations = Dict({"inputs": grids, "outputs": grids, "mask": flags(num_slots), "count": number(num_slots)})
    table: dict[str, tuple[bool, Space, _Value]] = {
        "working_grid": (True, grid, lambda state, _: show(state.canvas.grid)),
        "target_grid": (rule.reveal_target, grid, lambda state, _: show(state.canvas.target)),
        "input_grid": (rule.include_input, grid, lambda state, source: show(source.input_of(state.pair_index))),
        "clipboard": (rule.include_clipboard, grid, lambda state, _: show(state.canvas.clipboard)),
        "selection": (rule.include_selection, flags(*config.grid_shape), lambda state, _: state.selected),
        "demonstrations": (
            rule.include_demonstrations,
            demonstrations,
            lambda state, _: _demonstrations(state.demonstrations, state.pair_index, config),
        ),
        "operations": (
            rule.include_operations,
            flags(NUM_OPERATIONS),
            lambda state, _: legal_operation_mask(state, config),
        ),
        "step_count": (rule.include_step_count, number(limits.max_episode_steps), lambda state, _: state.step_count),
        "submission_count": (
            rule.include_submission_count,
            number(limits.max_submissions),
            lambda state, _: state.submission_count,
        ),
    }
    return {name: (space, value) for name, (is_shown, space, value) in table.items() if is_shown}


def _demonstrations(pairs: PairTable, pair_index: Int32[Array, "*B"], config: JaxArcConfig) -> dict[str, Observation]:
    inputs = pairs.inputs
    outputs = pairs.outputs
    if config.episode.mode == "train" and config.episode.switches_pairs:
        # Where the pair can change within an episode, the state holds all demonstrations, and the one that is played
        # now is emptied here. Where it cannot, the state was made without it.
        slots = jnp.arange(inputs.shape[-2], dtype=jnp.int32).reshape(*(1,) * pair_index.ndim, -1)
        is_played = (slots == pair_index[..., None])[..., None]
        inputs, outputs = (jnp.where(is_played, jnp.int8(PADDING), grids) for grids in (inputs, outputs))
    # The first cell of a grid is always active, so it tells whether the slot is in use.
    mask = inputs[..., 0] > PADDING
    return {
        "inputs": _shown(inputs, config),
        "outputs": _shown(outputs, config),
        "mask": mask,
        "count": mask.sum(axis=-1, dtype=jnp.int32),
    }


def observation_space(config: JaxArcConfig, num_slots: int) -> Space:
    """Describe what :func:`observe` returns.

    Args:
        config: says what is shown.
        num_slots: of demonstrations, where they are shown.
    """
    entries = {name: space for name, (space, _) in _entries(config, num_slots).items()}
    if config.observation.layout == "dict":
        return Dict(entries) if len(entries) > 1 else entries["working_grid"]
    boxes = _boxes(entries)
    return _joined_space(sum(_size(box, config) for box in boxes), max(int(box.high) for box in boxes), config)


def add_number(
    observation: Observation, name: str, number: Int32[Array, "*B"], high: int, config: JaxArcConfig
) -> Observation:
    """Add a number to an observation of any layout: the entry of this name, or one more channel or element at the end.

    Args:
        observation: of one environment or a batch.
        name: of the entry.
        number: 0 .. high.
        high: its largest value.
        config: the one that the observation was made with.
    """
    if config.observation.layout == "dict":
        entries = observation if isinstance(observation, dict) else {"working_grid": observation}
        return {**entries, name: number}
    return jnp.concatenate([observation, _part(number, Box(0, high, (), jnp.int32), config)], axis=-1)


def add_number_space(space: Space, name: str, high: int, config: JaxArcConfig) -> Space:
    """Describe what :func:`add_number` returns for an observation of a space."""
    if isinstance(space, Box) and config.observation.layout != "dict":
        return _joined_space(space.shape[-1] + 1, max(int(space.high), high), config)
    entries = space.entries if isinstance(space, Dict) else {"working_grid": space}
    return Dict({**entries, name: Box(0, high, (), jnp.int32)})


def _joined_space(size: int, high: int, config: JaxArcConfig) -> Box:
    """Return the space of a joined observation; ``size`` counts its channels or elements."""
    has_tokens = config.observation.grid_format == "tokens"
    is_flat = config.observation.layout == "flat"
    shape = (size,) if is_flat else (*config.grid_shape, size)
    return Box(0, high if has_tokens else 1, shape, jnp.int32 if has_tokens and not is_flat else jnp.float32)


def entry_slices(config: JaxArcConfig, num_slots: int) -> dict[str, slice]:
    """Return the slice of each entry along the last axis of a joined observation; the arguments are its space's."""
    entries = sorted(_entries(config, num_slots).items())
    sizes = [sum(_size(box, config) for box in _boxes({name: space})) for name, (space, _) in entries]
    ends = itertools.accumulate(sizes)
    return {name: slice(end - size, end) for (name, _), size, end in zip(entries, sizes, ends, strict=True)}


def _boxes(spaces: dict[str, Space]) -> list[Box]:
    return jax.tree.leaves(spaces, is_leaf=lambda space: isinstance(space, Box))


def _fills_cells(box: Box) -> bool:
    """Whether an entry has values for each cell: grids of numbers and masks of cells, but not 42 operations."""
    return box.shape != () and (box.dtype != jnp.bool_ or len(box.shape) == 2)


def _size(box: Box, config: JaxArcConfig) -> int:
    """How many channels or elements an entry takes."""
    size = math.prod(box.shape)
    return (
        size // math.prod(config.grid_shape) if config.observation.layout == "stacked" and _fills_cells(box) else size
    )


def _part(value: Array, box: Box, config: JaxArcConfig) -> Array:
    """Turn one entry into channels, [*B, H, W, C], or elements, [*B, N].

    The row ``2 -1`` becomes ``0 0 1 0 0 0 0 0 0 0 0`` and ``0 0 0 0 0 0 0 0 0 0 1``; step 5 of at most 20 becomes 0.25.
    As tokens the row becomes ``3 0``, and step 5 stays 5.
    """
    batch = value.shape[: value.ndim - len(box.shape)]
    value = joined_value(value, int(box.high), config)
    if config.observation.layout == "flat":
        return value.reshape(*batch, math.prod(box.shape))
    if not _fills_cells(box):
        return jnp.broadcast_to(value.reshape(*batch, 1, 1, -1), (*batch, *config.grid_shape, math.prod(box.shape)))
    # [*B, P, H, W, 11] -> [*B, H, W, P * 11]; a single grid has no axis P, and tokens and masks have 1 in place of 11.
    per_cell = box.shape[-1] if len(box.shape) > 2 else 1
    grids = value.reshape(*batch, -1, *config.grid_shape, per_cell)
    return jnp.moveaxis(grids, -4, -2).reshape(*batch, *config.grid_shape, -1)


def joined_value(value: Shaped[Array, "*shape"], high: int, config: JaxArcConfig) -> Shaped[Array, "*shape"]:
    """Turn numbers into those of a joined observation: shares of the largest one, or as they are among tokens."""
    has_tokens = config.observation.grid_format == "tokens"
    value = value.astype(jnp.int32 if has_tokens and config.observation.layout != "flat" else jnp.float32)
    return value / jnp.float32(high) if high > 1 and not has_tokens else value


def grid_form(config: JaxArcConfig) -> str:
    """How a grid is shown: as ``"planes"``, ``"one_hot"`` channels or ``"tokens"``."""
    rule = config.observation
    return "one_hot" if rule.layout != "dict" and rule.grid_format == "planes" else rule.grid_format


def _shown(flat: Array, config: JaxArcConfig) -> Array:
    """Show flat grids, [..., HW] with -1 as padding, as planes, channels or tokens."""
    form = grid_form(config)
    lead = flat.shape[:-1]
    if form == "tokens":  # 0 .. 10, and 0 is padding
        return flat.astype(jnp.int32) + 1
    if form == "planes":
        return flat.reshape(*lead, *config.grid_shape)
    # One-hot, [..., H, W, 11]: color 2 becomes 0 0 1 0 0 0 0 0 0 0 0, and padding has the last channel.
    channels = jnp.array([*range(NUM_COLORS), PADDING], jnp.int8)
    hot = flat[..., None] == channels.reshape(*(1,) * flat.ndim, -1)
    return hot.astype(jnp.int8).reshape(*lead, *config.grid_shape, NUM_COLORS + 1)


def _space_of_grids(config: JaxArcConfig, *lead: int) -> Box:
    """Describe what :func:`_shown` returns, with these axes in front."""
    form = grid_form(config)
    height, width = config.grid_shape
    if form == "tokens":
        return Box(0, NUM_COLORS, (*lead, height * width), jnp.int32)
    if form == "planes":
        return Box(PADDING, NUM_COLORS - 1, (*lead, height, width), jnp.int8)
    return Box(0, 1, (*lead, height, width, NUM_COLORS + 1), jnp.int8)


def make_info(state: ArcEnvState, source: PairSource, invalid_action: Bool[Array, "*B"], config: JaxArcConfig) -> Info:
    """Metrics of the episode, with the same keys on every step and at reset.

    On a pair with a hidden target ``similarity`` is 0, and ``success`` false unless ``reward.score_on_submit``. With
    ``action.mask_in_info`` there is ``action_mask``, the bool[actions] of
    :func:`~jaxarc.envs.action_masks.flat_action_mask`.
    """
    # Metrics reach the agent too, so they must not tell more about a hidden output than the reward does.
    hidden = source.hides(state.pair_index)
    similarity = jnp.where(hidden, jnp.float32(0), state.similarity_score)
    success = state.is_solved & (~hidden | config.reward.score_on_submit)
    info: Info = {
        "terminated": state.terminated,
        "truncated": state.truncated,
        "discount": state.discount,
        "success": success,
        "similarity": similarity,
        "invalid_action": invalid_action,
        "step_count": state.step_count,
        "submission_count": state.submission_count,
        "task_index": state.task_index,
        "pair_index": state.pair_index,
    }
    if config.action.mask_in_info:
        info["action_mask"] = flat_action_mask(state, config)
    return info


def make_info_in_branch(
    state: ArcEnvState, source: PairSource, invalid_action: Bool[Array, "*B"], config: JaxArcConfig
) -> Info:
    """Return what :func:`make_info` does; on a CPU its kernels run one after the other.

    XLA's runtime hands kernels to another thread where more than nine are ready at once, as those of ten numbers are. A
    call from Python then waits for that thread longer than it steps. In a branch with small arrays alone it does not.
    """
    make = lambda state, source, invalid_action: make_info(state, source, invalid_action, config)
    return materialize_call(make, state, source, invalid_action)
