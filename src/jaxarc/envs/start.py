"""Start an episode: its random keys, its task and pair, its start grid, its first state.

These are the rules, of one environment; :mod:`jaxarc.envs.executor` starts those of a batch that need it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int8, Int32, UInt32

from jaxarc.config import EpisodeConfig, JaxArcConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.canvas import Canvas, count_matches, count_union, grid_size, similarity
from jaxarc.envs.pairs import PairSource, PairTable, generate_pairs, pairs_in_play, show_demonstrations
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState, empty_history
from jaxarc.fusion import materialize
from jaxarc.primitives import vary_like
from jaxarc.prng import as_typed_key, from_key_data, split_words, to_randint, to_uniform
from jaxarc.tasks.augmentation import Augmentation, draw_augmentation
from jaxarc.tasks.buffer import next_task_index, sample_task_index
from jaxarc.types import JaxArcTask, PRNGKey, cell_columns, cell_rows


class EpisodeKeys(NamedTuple):
    """Random words of one reset, each for one use."""

    task: UInt32[Array, ""]
    pair: UInt32[Array, ""]
    start: UInt32[Array, " words"]  # data of the key of the start grid
    state: UInt32[Array, " words"]  # data of the key of the next episode
    augmentation: UInt32[Array, " words"]  # data of the key of the augmentation
    generation: UInt32[Array, " words"]  # data of the key of a generated task


def split_for_episode(key: PRNGKey) -> EpisodeKeys:
    """Draw everything that a reset needs from one key."""
    # [6, words]: task and pair take one word each of theirs, the other four rows are keys. Drawn once, or
    # every kernel that reads one of them would encrypt it again.
    words = materialize(split_words(as_typed_key(key), 6))
    return EpisodeKeys(words[0, 0], words[1, 0], *words[2:])


def start_first(
    key: PRNGKey, params: EnvParams, task_index: Int32[Array, ""] | None, pair_index: Int32[Array, ""] | None
) -> tuple[ArcEnvState, PairSource]:
    """Start an episode on a task that is given, or drawn by weight; return its state, and the pairs that it plays."""
    keys = split_for_episode(key)
    if task_index is None:
        task_index = _draw_task(keys, params)
    return _start_on(keys, params, jnp.clip(task_index, 0, params.tasks.num_tasks - 1), pair_index)


def start_next(state: ArcEnvState, params: EnvParams) -> tuple[ArcEnvState, PairSource]:
    """Start the episode that follows the one of a state; return its state, and the pairs that it plays."""
    # Everything the next episode draws comes from the state's key, which this episode has not used, so that a stored
    # state goes on with the same episodes.
    keys = split_for_episode(state.key)
    in_turn = params.config.episode.task_order == "in_turn"
    task_index = next_task_index(state.task_index, params.weights) if in_turn else _draw_task(keys, params)
    return _start_on(keys, params, task_index, None)


def _draw_task(keys: EpisodeKeys, params: EnvParams) -> Int32[Array, ""]:
    # Searched once, not again for every cell of the task's grids.
    return materialize(sample_task_index(to_uniform(keys.task), params.weights))


def _start_on(
    keys: EpisodeKeys, params: EnvParams, task_index: Int32[Array, ""], pair_index: Int32[Array, ""] | None
) -> tuple[ArcEnvState, PairSource]:
    tasks = params.tasks
    config = params.config
    # 1. How the task is changed, if at all; 2. its pairs, made anew by a generator or found in the buffer; 3. the first
    # state on one of them. Demonstrations to show are pairs of train mode, whichever mode is played.
    augmentation = None
    if config.augmentation.is_active:
        key = from_key_data(keys.augmentation)
        num_train = tasks.num_train_of(task_index)
        augmentation = draw_augmentation(key, num_train, tasks.num_slots, config.augmentation)
    generated = generate_pairs(keys.generation, tasks, task_index, augmentation)
    source = pairs_in_play(tasks, generated, task_index, augmentation, config.episode.mode)
    demonstrations, num_slots = None, 0
    if config.observation.include_demonstrations:
        demonstrations = pairs_in_play(tasks, generated, task_index, augmentation, "train")
        num_slots = params.num_slots
    state = start_episode(
        keys,
        source,
        task_index,
        config,
        pair_index=params.pair_index if pair_index is None else pair_index,
        augmentation=augmentation,
        pairs=generated,
        demonstrations=demonstrations,
        num_slots=num_slots,
    )
    return state, source


def start_episode(
    keys: EpisodeKeys,
    source: PairSource,
    task_index: Int32[Array, ""],
    config: JaxArcConfig,
    *,
    pair_index: Int32[Array, ""] | None = None,
    augmentation: Augmentation | None = None,
    task_data: JaxArcTask | None = None,
    pairs: PairTable | None = None,
    demonstrations: PairSource | None = None,
    num_slots: int = 0,
) -> ArcEnvState:
    """Make the first state of an episode on one of the source's pairs.

    Args:
        keys: random words; pair and start grid depend on them, and the key of the next episode.
        source: the pairs of the task.
        task_index: the task's index, kept in the state.
        config: fixes shapes and rules.
        pair_index: the pair to play, the last one if there are not so many; by default the config says which.
        augmentation: what the source does to the task, kept in the state.
        task_data: kept in the state by the guide API.
        pairs: the table of a generated task, kept in the state.
        demonstrations: those of the task, in every mode, where the config shows them; kept in the state.
        num_slots: how many of them are shown at most.
    """
    if pair_index is None:
        pair_index = _first_pair(keys.pair, source.count, config.episode)
    else:
        pair_index = jnp.clip(pair_index, 0, source.count - 1)
    target = source.output_of(pair_index)
    grid = _start_grid(keys.start, source.input_of(pair_index), target, config)
    shape = config.grid_shape
    # The six sizes: of the start grid, of the target, and 0 x 0 of the clipboard.
    height, width = grid_size(grid, shape)
    empty = jnp.zeros((), jnp.int8)  # the clipboard
    sizes = jnp.stack([height, width, *grid_size(target, shape), empty, empty])
    shown = None
    if demonstrations is not None:
        # The pair that is played is left out here if it is the same in the whole episode; where it can change, an
        # observation leaves it out by itself. In test mode it is no demonstration.
        stays = config.episode.mode != "test" and not config.episode.switches_pairs
        shown = show_demonstrations(demonstrations, num_slots, pair_index if stays else None)
    zero = jnp.int32(0)
    # What is constant in a fresh state must vary over the same devices as it will after a step; see vary_like.
    has_mask = config.action.selection_format == "mask"
    nothing = jnp.zeros((shape[1],), jnp.uint32) if has_mask else jnp.array([0, 0, -1, -1], jnp.int8)
    fresh = (jnp.full_like(grid, PADDING), nothing, jnp.zeros((2,), jnp.bool_), empty_history(config))
    clipboard, selection, endings, records = vary_like(fresh, keys.state)
    return ArcEnvState(
        canvas=Canvas(grid, clipboard, target, selection, sizes),
        counts=jnp.stack([zero, zero, task_index, pair_index, zero]),
        similarity_score=similarity(count_matches(grid, target), count_union(sizes[:4])),
        endings=endings,
        key=keys.state,
        action_records=records,
        augmentation=augmentation,
        task_data=task_data,
        pairs=pairs,
        demonstrations=shown,
        grid_shape=shape,
        selection_format=config.action.selection_format,
    )


def _first_pair(word: UInt32[Array, ""], count: Int32[Array, ""], episode: EpisodeConfig) -> Int32[Array, ""]:
    if episode.mode == "trials":
        return jnp.int32(0)
    choice = episode.demo_selection if episode.mode == "train" else episode.test_selection
    return jnp.int32(0) if choice == "first" else to_randint(word, count)


def _start_grid(
    words: UInt32[Array, " words"], pair_input: Int8[Array, " HW"], target: Int8[Array, " HW"], config: JaxArcConfig
) -> Int8[Array, " HW"]:
    episode = config.episode
    shape = config.grid_shape
    if episode.start_grid == "input":
        return pair_input
    if episode.start_grid == "partial":
        return _partly_solved(from_key_data(words), pair_input, target, episode.partial_probability)
    inside = (cell_rows(shape) < episode.start_height) & (cell_columns(shape) < episode.start_width)
    if episode.start_grid == "empty":
        colors = jnp.zeros_like(pair_input)
    else:
        colors = jax.random.randint(from_key_data(words), pair_input.shape, 0, NUM_COLORS, jnp.int8)
    return jnp.where(inside, colors, jnp.int8(PADDING))


def _partly_solved(
    key: Array, pair_input: Int8[Array, " HW"], target: Int8[Array, " HW"], probability: float
) -> Int8[Array, " HW"]:
    """The input; or, with the given probability, the target's size with a random share of its cells right."""
    key_chance, key_share, key_cells = jax.random.split(key, 3)
    # One share for the whole grid, uniform in [0, 1): starts range from nothing right to nearly solved. With the target
    # 3 3 5, the input 1 2 (then padding) and only the first cell drawn as right, the start is 3 2 0.
    partly = jax.random.bernoulli(key_chance, jnp.float32(probability))
    share = jax.random.uniform(key_share, dtype=jnp.float32)
    right = jax.random.uniform(key_cells, target.shape, jnp.float32) < share
    mixed = jnp.where(right, target, jnp.maximum(pair_input, jnp.int8(0)))
    return jnp.where(partly, jnp.where(target > PADDING, mixed, jnp.int8(PADDING)), pair_input)
