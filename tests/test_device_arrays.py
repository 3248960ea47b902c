"""Arrays that a caller fills anew while a step runs, and arrays whose mask hides values."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
import jaxarc.games
from jaxarc.device_arrays import device_array, own_arrays
from jaxarc.envs.action_masks import FlatActionCodec
from jaxarc.nn.update import optimized_inference
from jaxarc.parallel import data_mesh, replicate
from jaxarc.prng import as_typed_key
from jaxarc.surrogate import CandidateSet, DataPrefetcher, GraphBatch, to_arrays
from jaxarc.tasks.task import mock_raw_task
from jaxarc.types import JaxArcTask

SIZE = {"max_grid_height": 6, "max_grid_width": 5}
ENV, PARAMS = jaxarc.make([mock_raw_task(6, 5)], selection_format="point", flat_actions=True, **SIZE)
STATE, _ = ENV.reset(jax.random.key(0), PARAMS)
GAME, GAME_PARAMS = jaxarc.games.make("crates")
GAME_STATE, _ = GAME.reset(jax.random.key(0), GAME_PARAMS)
GRIDS = (2, 6, 5)


class Labelled:
    """As an ``xarray.Dataset``: arrays by name."""

    def __init__(self, values):
        self.data_vars = {"x": values}


@jax.jit
def long_step(x):
    return jax.lax.fori_loop(0, 40, lambda _, x: jnp.tanh(x @ x), x)


def aligned(shape, dtype, value):
    """An array at an address of which JAX takes the memory as it is: a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + size].view(dtype).reshape(shape)
    array[...] = value
    return array


def seen(make, shape, dtype, first, second):
    """What is made of an array that holds ``first``, and ``second`` as soon as the call is over; a step is running."""
    make(aligned(shape, dtype, first))  # compiled
    buffer = aligned(shape, dtype, first)
    running = long_step(jnp.full((400, 400), 0.01))
    made = make(buffer)
    buffer[...] = second
    jax.block_until_ready(running)
    return jax.tree.leaves(made)


MAKERS = {
    "a mask": (lambda x: jaxarc.MaskAction(1, x), (256, 30, 30), np.bool_),
    "rows of points": (lambda x: jaxarc.PointAction(x, x, x), 1000, np.int32),
    "labelled data": (lambda x: to_arrays(Labelled(x)), (64, 90), np.float32),
    "a mapping": (lambda x: to_arrays({"x": x}), (64, 90), np.float32),
    "graphs": (lambda x: GraphBatch(x, x[..., 0] > 5), (2, 4, 4, 3), np.float32),
    "candidates": (lambda x: CandidateSet(x, x, x, x[..., 0] > 5), (2, 4, 4), np.float32),
    "prefetched": (lambda x: next(DataPrefetcher(iter([{"x": x}]))), (64, 90), np.float32),
    "weights": (lambda x: PARAMS.replace(weights=x).weights, 1, np.float32),
    "tasks": (lambda x: dataclasses.replace(PARAMS.tasks, inputs=x).inputs, PARAMS.tasks.inputs.shape, np.int8),
    "a task": (lambda x: JaxArcTask(x, x, 1, x, x, 1, 0).output_grids_examples, GRIDS, np.int8),
    "a flat action": (lambda x: ENV.step(STATE, x, PARAMS), (), np.int32),
    "numbers of actions": (lambda x: FlatActionCodec.of(PARAMS.config).to_structured(x), 64, np.int32),
    "a game's action": (lambda x: GAME.step(GAME_STATE, x, GAME_PARAMS), (), np.int32),
    "a key": (lambda x: jax.random.key_data(as_typed_key(x)), 2, np.uint32),
    "examples": (lambda x: optimized_inference(jnp.ones(()), x, model=lambda w, x: w * x), (64, 90), np.float32),
    "replicated": (lambda x: replicate({"x": x}, data_mesh()), (64, 90), np.float32),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_written_into_an_array_after_a_call_is_not_seen(name):
    make, shape, dtype = MAKERS[name]
    found = seen(make, shape, dtype, 1, 0)
    wanted = jax.tree.leaves(make(aligned(shape, dtype, 1)))
    for leaf, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(leaf, right)


def test_jax_itself_sees_what_is_written_later():
    """The reason for all this; where it fails, JAX copies at once again."""
    (leaf,) = seen(jnp.array, (64, 90), np.float32, 1, 4)
    assert np.asarray(leaf)[0, 0] == 4


def test_batches_of_reused_labelled_data_are_those_of_their_items():
    def items():
        buffer = aligned((64, 64), np.float32, 0)
        for number in range(12):
            buffer[...] = number
            yield Labelled(buffer)

    found = []
    with DataPrefetcher(items()) as batches:
        for batch in batches:
            running = long_step(jnp.full((200, 200), 0.01))
            found.append(int(batch["x"].min()))
            assert found[-1] == int(batch["x"].max())
            running.block_until_ready()
    assert found == list(range(12))


def test_device_arrays_keep_what_jax_makes_of_values():
    for value in (3, 2.5, True, [1, 2], [[True], [False]], np.float32(2), np.arange(3), jnp.ones(2)):
        mine, of_jax = device_array(value), jnp.asarray(value)
        assert (mine.dtype, mine.shape, mine.tolist()) == (of_jax.dtype, of_jax.shape, of_jax.tolist())
    assert jax.jit(lambda x: device_array([x, 2]))(1).tolist() == [1, 2]
    tree = {"x": jnp.ones(2), "name": "y"}
    assert own_arrays(tree) is tree
