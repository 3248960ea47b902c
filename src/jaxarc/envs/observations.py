"""Observations, the space of them, and the info of a step."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from jaxarc.config import JaxArcConfig
from jaxarc.constants import NUM_COLORS, NUM_OPERATIONS, PADDING
from jaxarc.envs.action_masks import legal_operation_mask
from jaxarc.envs.pairs import PairSource, PairTable
from jaxarc.envs.spaces import Box, Dict, Space
from jaxarc.envs.state import ArcEnvState
from jaxarc.types import Info, Observation


def observe(state: ArcEnvState, source: PairSource, config: JaxArcConfig) -> Observation:
    """Show the working grid; as an entry of a dictionary when ``config.observation`` asks for more.

    ``demonstrations`` has ``inputs`` and ``outputs``, grids with a leading axis of slots, ``mask``, bool[slots], true
    where a slot holds a demonstration, and ``count``. In training the slot of the pair that is played is empty: its
    output would be the answer.

    Args:
        state: of one environment or a batch.
        source: the pairs that the state plays.
        config: the one that the state was made with.
    """
    shown = _Grids(config)
    rule = config.observation
    more: dict[str, Observation] = {}
    if rule.reveal_target:
        more["target_grid"] = shown.encode(state.canvas.target)
    if rule.include_input:
        more["input_grid"] = shown.encode(source.input_of(state.pair_index))
    if rule.include_clipboard:
        more["clipboard"] = shown.encode(state.canvas.clipboard)
    if rule.include_selection:
        more["selection"] = state.selected
    if state.demonstrations is not None:
        more["demonstrations"] = _demonstrations(state.demonstrations, state.pair_index, shown)
    if rule.include_operations:
        more["operations"] = legal_operation_mask(state, config)
    if rule.include_step_count:
        more["step_count"] = state.step_count
    if rule.include_submission_count:
        more["submission_count"] = state.submission_count
    grid = shown.encode(state.canvas.grid)
    return {"working_grid": grid, **more} if more else grid


def _demonstrations(pairs: PairTable, pair_index: Int32[Array, "*B"], shown: "_Grids") -> dict[str, Observation]:
    inputs = pairs.inputs
    outputs = pairs.outputs
    config = shown.config
    if config.episode.mode == "train" and config.switches_pairs:
        # Where the pair can change within an episode, the state holds all demonstrations, and the one that is played
        # now is emptied here. Where it cannot, the state was made without it.
        slots = jnp.arange(inputs.shape[-2], dtype=jnp.int32).reshape(*(1,) * pair_index.ndim, -1)
        is_played = (slots == pair_index[..., None])[..., None]
        inputs, outputs = (jnp.where(is_played, jnp.int8(PADDING), grids) for grids in (inputs, outputs))
    # The first cell of a grid is always active, so it tells whether the slot is in use.
    mask = inputs[..., 0] > PADDING
    return {
        "inputs": shown.encode(inputs),
        "outputs": shown.encode(outputs),
        "mask": mask,
        "count": mask.sum(axis=-1, dtype=jnp.int32),
    }


def observation_space(config: JaxArcConfig, num_slots: int) -> Space:
    """Describe what :func:`observe` returns.

    Args:
        config: says what is shown.
        num_slots: of demonstrations, where they are shown.
    """
    shown = _Grids(config)
    rule = config.observation
    flag = lambda shape: Box(0, 1, shape, jnp.bool_)
    more: dict[str, Space] = {}
    for name, is_shown in (
        ("target_grid", rule.reveal_target),
        ("input_grid", rule.include_input),
        ("clipboard", rule.include_clipboard),
    ):
        if is_shown:
            more[name] = shown.space()
    if rule.include_selection:
        more["selection"] = flag(config.grid_shape)
    if rule.include_demonstrations:
        more["demonstrations"] = Dict(
            {
                "inputs": shown.space((num_slots,)),
                "outputs": shown.space((num_slots,)),
                "mask": flag((num_slots,)),
                "count": Box(0, num_slots, (), jnp.int32),
            }
        )
    if rule.include_operations:
        more["operations"] = flag((NUM_OPERATIONS,))
    if rule.include_step_count:
        more["step_count"] = Box(0, config.environment.max_episode_steps, (), jnp.int32)
    if rule.include_submission_count:
        more["submission_count"] = Box(0, config.environment.max_submissions, (), jnp.int32)
    return Dict({"working_grid": shown.space(), **more}) if more else shown.space()


class _Grids:
    """How flat grids are shown: as planes, channels or tokens."""

    def __init__(self, config: JaxArcConfig):
        self.config = config
        self.form = config.observation.grid_format
        self.shape = config.grid_shape

    def encode(self, flat: Array) -> Array:
        lead = flat.shape[:-1]
        # Grids are stored flat, [..., HW], with -1 as padding. Tokens are the same moved to 0 .. 10.
        if self.form == "tokens":  # 0 is padding
            return flat.astype(jnp.int32) + 1
        if self.form == "planes":
            return flat.reshape(*lead, *self.shape)
        # One-hot, [..., H, W, 11]: color 2 becomes 0 0 1 0 0 0 0 0 0 0 0, and padding has the last channel.
        channels = jnp.array([*range(NUM_COLORS), PADDING], jnp.int8)
        hot = flat[..., None] == channels.reshape(*(1,) * flat.ndim, -1)
        return hot.astype(jnp.int8).reshape(*lead, *self.shape, NUM_COLORS + 1)

    def space(self, lead: tuple[int, ...] = ()) -> Box:
        height, width = self.shape
        if self.form == "tokens":
            return Box(0, NUM_COLORS, (*lead, height * width), jnp.int32)
        if self.form == "planes":
            return Box(PADDING, NUM_COLORS - 1, (*lead, height, width), jnp.int8)
        return Box(0, 1, (*lead, height, width, NUM_COLORS + 1), jnp.int8)


def make_info(state: ArcEnvState, source: PairSource, invalid_action: Bool[Array, "*B"], config: JaxArcConfig) -> Info:
    """Metrics of the episode, with the same keys on every step and at reset.

    On a pair with a hidden target ``similarity`` is 0, and ``success`` false unless ``reward.score_on_submit``.
    """
    # Metrics reach the agent too, so they must not tell more about a hidden output than the reward does.
    hidden = source.hides(state.pair_index)
    similarity = jnp.where(hidden, jnp.float32(0), state.similarity_score)
    success = state.is_solved & (~hidden | config.reward.score_on_submit)
    return {
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
