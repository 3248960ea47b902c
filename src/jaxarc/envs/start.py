"""Start an episode: its random keys, its pair, its start grid, its first state.

In a batch :func:`reset_where` starts one where one ended, and :func:`update_rows` does work on the rows that need it.
"""

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int8, Int32, PyTree, UInt32

from jaxarc.config import EpisodeConfig, JaxArcConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.canvas import Canvas, count_matches, count_union, grid_size, similarity
from jaxarc.envs.pairs import PairSource, PairTable, show_demonstrations
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState, empty_history
from jaxarc.fusion import compiles_for_cpu, materialize, materialize_call
from jaxarc.primitives import Kernel, choose_executor, vary_like, with_batch_rule
from jaxarc.prng import as_typed_key, from_key_data, split_words, to_randint
from jaxarc.tasks.augmentation import Augmentation
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
        demonstrations: the demonstrations of the task, in every mode; needed only where the config shows them.
        num_slots: how many demonstrations are shown at most.
    """
    if pair_index is None:
        pair_index = _first_pair(keys.pair, source.count, config.episode)
    else:
        pair_index = jnp.clip(pair_index, 0, source.count - 1)
    target = source.output_of(pair_index)
    grid = _start_grid(from_key_data(keys.start), source.input_of(pair_index), target, config)
    shape = config.grid_shape
    # The six sizes: of the start grid, of the target, and 0 x 0 of the clipboard.
    height, width = grid_size(grid, shape)
    empty = jnp.zeros((), jnp.int8)  # the clipboard
    sizes = jnp.stack([height, width, *grid_size(target, shape), empty, empty])
    zero = jnp.int32(0)
    # What is constant in a fresh state must vary over the same devices as it will after a step; see vary_like.
    fresh = (jnp.full_like(grid, PADDING), _no_selection(config), jnp.zeros((2,), jnp.bool_), empty_history(config))
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
        demonstrations=_demonstrations(demonstrations, num_slots, pair_index, config),
        grid_shape=shape,
        selection_format=config.action.selection_format,
    )


def _first_pair(word: UInt32[Array, ""], count: Int32[Array, ""], episode: EpisodeConfig) -> Int32[Array, ""]:
    if episode.mode == "trials":
        return jnp.int32(0)
    choice = episode.demo_selection if episode.mode == "train" else episode.test_selection
    return jnp.int32(0) if choice == "first" else to_randint(word, count)


def _demonstrations(
    source: PairSource | None, num_slots: int, pair_index: Int32[Array, ""], config: JaxArcConfig
) -> PairTable | None:
    """Load what is shown all episode long; where the pair can change, an observation leaves it out by itself."""
    if source is None or not config.observation.include_demonstrations:
        return None
    # The pair that is played is left out here if it is the same in the whole episode. In test mode it is no
    # demonstration.
    stays = config.episode.mode != "test" and not config.switches_pairs
    return show_demonstrations(source, num_slots, pair_index if stays else None)


def _no_selection(config: JaxArcConfig) -> Array:
    if config.action.selection_format == "mask":
        return jnp.zeros((config.grid_shape[1],), jnp.uint32)
    return jnp.array([0, 0, -1, -1], jnp.int8)


def _start_grid(
    key: Array, pair_input: Int8[Array, " HW"], target: Int8[Array, " HW"], config: JaxArcConfig
) -> Int8[Array, " HW"]:
    episode = config.episode
    shape = config.grid_shape
    if episode.start_grid == "input":
        return pair_input
    if episode.start_grid == "partial":
        return _partly_solved(key, pair_input, target, episode.partial_probability)
    inside = (cell_rows(shape) < episode.start_height) & (cell_columns(shape) < episode.start_width)
    if episode.start_grid == "empty":
        colors = jnp.zeros_like(pair_input)
    else:
        colors = jax.random.randint(key, pair_input.shape, 0, NUM_COLORS, jnp.int8)
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


RESET_FRACTION: Final = 1 / 16  # of a batch, in a block: an episode of 35 random operations lasts about 20 steps

State = TypeVar("State", bound=PyTree[Array])
Out = TypeVar("Out", bound=PyTree[Array])
ResetRows = Callable[[State, Bool[Array, " B"], EnvParams], State | None]


def reset_where(
    need: Bool[Array, ""],
    reset: Callable[[State, Any, EnvParams], State],
    state: State,
    facts: PyTree[Array],
    params: EnvParams,
    reset_rows: ResetRows[State] = lambda *_: None,
) -> State:
    """Replace a state where needed.

    Args:
        need: whether it is.
        reset: makes the new state of one environment from the old one and the facts.
        state: of one environment, or of a batch under ``vmap``.
        facts: what else ``reset`` needs of each environment.
        params: what all environments share.
        reset_rows: does the same for a batch in one call of the C++ library, or returns None where that cannot.
    """
    is_native = choose_executor(params.config.environment.executor) == "native"

    def update(rows: tuple[Bool[Array, " B"], State, Any], params: EnvParams, in_blocks: bool | None = None) -> State:
        # Resets are a kernel that few rows need: blocks of those are gathered, reset and put back. With 4,096
        # environments a block has 256 rows.
        one = lambda words, fact: _to_words(reset(_to_keys(words, state), fact, params))
        kernel = lambda states, facts: jax.vmap(one)(states, facts)
        return update_rows(rows[0], kernel, rows[1], rows[2], RESET_FRACTION, in_blocks)

    def update_natively(rows: tuple[Bool[Array, " B"], State, Any], params: EnvParams) -> State:
        states = reset_rows(rows[1], rows[0], params) if is_native else None
        return update(rows, params) if states is None else states

    def reset_apart(_: Kernel, has_axis: Any, rows: tuple[Bool[Array, "A B"], State, Any], params: EnvParams) -> State:
        """Each batch has params of its own: nothing to fold."""
        # All rows: under vmap the loop over blocks would run, in every batch, as long as the batch that needs the most.
        axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
        return jax.vmap(functools.partial(update, in_blocks=False), (0, axes))(rows, params)

    rows = (need, _to_words(state), facts)
    return _to_keys(with_batch_rule(update_natively, reset_apart)(rows, params), state)


def _to_words(state: PyTree[Array]) -> PyTree[Array]:
    """Return a state with the words of its typed keys, as an environment of a user may have them: words have bits."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, state)


def _to_keys(words: State, like: State) -> State:
    """Return the state whose words these are; keys are where ``like`` has them."""
    to_key = lambda leaf, key: jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(key)) if _is_key(key) else leaf
    return jax.tree.map(to_key, words, like)


def _is_key(leaf: Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


SMALLEST_BLOCK: Final = 16
WIDE_ROW: Final = 64  # elements from which on a row is put back by a gather, which skips other rows, not by a scatter
HUGE_ROW: Final = 1024  # elements from which on rows are put back one by one: to look at all of them would take longer


def update_rows(
    need: Bool[Array, " B"],
    kernel: Callable[[Out, PyTree[Array]], Out],
    out: Out,
    ins: PyTree[Array],
    block_fraction: float,
    in_blocks: bool | None = None,
) -> Out:
    """Return ``out`` with ``kernel(out, ins)`` in the rows that need it, and the other rows as they were.

    On a CPU a loop takes blocks of fixed size: gather the rows of a block, run the kernel on them, put its results
    back, and go on while rows are left. With blocks of two, the order 1 3 4 of three rows that need the kernel and
    B = 5::

        block 1: rows 1 3 -> kernel -> put back into 1 and 3
        block 2: rows 4 5 -> kernel -> put back into 4; 5 is past the last row and is dropped

    An accelerator runs the kernel on all rows and selects: the host would wait for the end of a loop.

    Args:
        need: which rows to update.
        kernel: batch-native function of the rows of ``out`` and ``ins``.
        out: arrays with a leading axis B, of the same structure as the kernel's result.
        ins: arrays with a leading axis B that the kernel only reads.
        block_fraction: rows of a block over rows of the batch; best about half of the share that usually needs it.
        in_blocks: whether to take blocks; by default as the backend likes it. The results are the same bit for bit.
    """
    batch = need.shape[0]
    update = lambda out, ins: jax.tree.map(lambda new, old: _select(need, new, old), kernel(out, ins), out)
    if not (compiles_for_cpu() if in_blocks is None else in_blocks):
        return update(out, ins)
    if batch == 1:  # the select is always true here; it makes the branches of one type under shard_map
        return lax.cond(need[0], update, lambda out, _: out, out, ins)
    # With B = 4,096 and the fraction 1/64 a block has 64 rows; with B = 256 it would have 4, and has 16.
    size = min(batch, max(int(batch * block_fraction), SMALLEST_BLOCK))
    # rank: how many rows up to this one need the kernel, one more than its index among them. Need 0 1 0 1 1 has the
    # ranks 0 1 1 2 3 and the order 1 3 4 5 5 5 5 with blocks of two, which may begin at any row.
    rank = _running_sum(need.astype(jnp.int32))
    total = rank[-1]
    order = jnp.full((batch + size,), batch, jnp.int32)
    index = jnp.where(need, rank - 1, batch + size)  # behind the end, where the scatter drops it
    order = order.at[index].set(jnp.arange(batch, dtype=jnp.int32), mode="drop")

    def update_block(carry: tuple[Out, Int32[Array, ""]]) -> tuple[Out, Int32[Array, ""]]:
        current, start = carry
        # int32[size], row numbers. Behind the last row comes B, which "clip" makes row B - 1. The kernel runs on it as
        # well, and its results are not put back.
        block = lax.dynamic_slice(order, (start,), (size,))
        picked = jax.tree.map(lambda x: jnp.take(x, block, axis=0, mode="clip"), (current, ins))
        new = materialize_call(kernel, *picked)
        # The same assignment twice: `index` says for each row of the batch where in the block it is, for a gather, and
        # `block` says for each row of the block where in the batch it belongs, for a scatter.
        index = rank - 1 - start
        is_here = need & (index >= 0) & (index < size)

        def put(old: Array, new: Array) -> Array:
            # Sizes, a few numbers a row, are scattered; grids are gathered and selected; larger rows are copied one by
            # one.
            if old[0].size < WIDE_ROW:
                return old.at[block].set(new, mode="drop")
            if old[0].size >= HUGE_ROW:
                return _put_each(old, new, block, jnp.minimum(total - start, size))
            return _select(is_here, jnp.take(new, index, axis=0, mode="clip"), old)

        return jax.tree.map(put, current, new), start + size

    return lax.while_loop(lambda carry: carry[1] < total, update_block, (out, jnp.int32(0)))[0]


def _running_sum(numbers: Int32[Array, " B"]) -> Int32[Array, " B"]:
    """Sums up to and including each entry, by doubling: ``jnp.cumsum`` takes five times as long on a CPU.

    Each pass adds the array to itself, moved right by 1, 2, 4, ... entries::

        1 0 1 1 1  ->  1 1 1 2 2  ->  1 1 2 3 3  ->  1 1 2 3 4
    """
    add = lambda sums, step: sums + jnp.pad(sums[:-step], (step, 0))
    sums = numbers
    step = 1
    while step < numbers.shape[0]:
        sums = materialize_call(functools.partial(add, step=step), sums, predicate_of=numbers)
        step *= 2
    return sums


def _put_each(old: Array, new: Array, taken: Int32[Array, " K"], count: Int32[Array, ""]) -> Array:
    """Put the first ``count`` of the new rows into rows ``taken`` of the old ones, in place."""

    def put(i: Int32[Array, ""], rows: Array) -> Array:
        return lax.dynamic_update_index_in_dim(rows, lax.dynamic_index_in_dim(new, i), taken[i], 0)

    return lax.fori_loop(jnp.int32(0), count, put, old)


def _select(need: Bool[Array, " B"], new: Array, old: Array) -> Array:
    """Choose row by row; rows are flat, because XLA's CPU backend is slow on more axes."""
    flat = lambda x: x.reshape(x.shape[0], -1)
    return jnp.where(need[:, None], flat(new), flat(old)).reshape(old.shape)
