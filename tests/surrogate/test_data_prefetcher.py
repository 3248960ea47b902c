import gc
import inspect
import itertools
import threading
import time

import jax
import numpy as np
import pytest

from jaxarc.surrogate.prefetcher import DataPrefetcher


def loader_threads():
    return [thread for thread in threading.enumerate() if thread.name == "jaxarc-prefetch"]


def wait_until(condition, seconds=5):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _no_thread_stays():
    yield
    assert not loader_threads()


def test_the_signature_is_the_documented_one():
    parameters = inspect.signature(DataPrefetcher).parameters
    assert list(parameters)[:2] == ["data_iterator", "buffer_size"]
    assert parameters["buffer_size"].default == 4


@pytest.mark.parametrize("buffer_size", [1, 2, 4, 16])
def test_items_come_in_order_and_end(buffer_size):
    items = DataPrefetcher(range(50), buffer_size)
    assert items.queue.maxsize == buffer_size
    assert [int(item) for item in items] == list(range(50))
    with pytest.raises(StopIteration):
        next(items)


def test_items_are_on_the_device_before_they_are_asked_for():
    seen = []

    def load():
        for number in range(3):
            seen.append(threading.current_thread().name)
            yield {"data": np.full(4, number, np.float32)}

    with DataPrefetcher(load()) as items:
        loaded = list(items)
    assert set(seen) == {"jaxarc-prefetch"}
    assert all(isinstance(item["data"], jax.Array) for item in loaded)


class Labelled:
    """Data by name, as an ``xarray.Dataset`` has it."""

    def __init__(self, **data_vars):
        self.data_vars = data_vars


def test_labelled_data_become_arrays_on_the_device():
    with DataPrefetcher(Labelled(x=[[number, 1.0]], n=np.int64(number)) for number in range(2)) as items:
        loaded = list(items)
    assert [set(item) for item in loaded] == [{"x", "n"}] * 2
    assert all(isinstance(value, jax.Array) for item in loaded for value in item.values())
    np.testing.assert_array_equal(loaded[1]["x"], [[1, 1]])


def test_items_go_where_they_are_placed():
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    with DataPrefetcher([np.zeros(4)], placement=split) as items:
        assert next(items).sharding == split


class TornFileError(RuntimeError):
    pass


def test_an_error_is_raised_to_the_consumer_after_the_items_before_it():
    def load():
        yield 1
        yield 2
        raise TornFileError("torn")

    items = DataPrefetcher(load())
    assert [int(next(items)), int(next(items))] == [1, 2]
    with pytest.raises(TornFileError, match="torn") as caught:
        next(items)
    assert "load" in [entry.name for entry in caught.traceback]
    with pytest.raises(StopIteration):
        next(items)


def test_no_more_is_loaded_than_fits():
    loaded = []

    def load():
        for number in itertools.count():
            loaded.append(number)
            yield number

    with DataPrefetcher(load(), buffer_size=3) as items:
        for consumed in range(1, 4):
            next(items)
            time.sleep(0.05)
            assert len(loaded) <= consumed + 3 + 1


def test_closing_ends_an_endless_iterator():
    items = DataPrefetcher(itertools.count())
    next(items)
    items.close()
    items.close()
    assert items.queue.empty()
    assert list(items) == []


def test_an_iterator_may_write_over_its_last_item():
    memory = np.zeros(4096 + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4  # where JAX would take an array as it is
    item = memory[start : start + 4096]

    def load():
        for number in range(3):
            item[:] = number
            yield item

    with DataPrefetcher(load()) as items:
        wait_until(lambda: item[0] == 2)
        assert [int(item[0]) for item in items] == [0, 1, 2]


def test_what_is_dropped_without_being_closed_ends_its_thread():
    items = DataPrefetcher(itertools.count())
    next(items)
    assert loader_threads()
    del items
    gc.collect()
    wait_until(lambda: not loader_threads())
    assert not loader_threads()


def test_closing_wakes_a_consumer_that_waits_in_another_thread():
    may_go_on, taken = threading.Event(), []

    def load():
        may_go_on.wait()
        yield 1

    items = DataPrefetcher(load())
    consumer = threading.Thread(target=lambda: taken.append(list(items)), daemon=True)
    closer = threading.Thread(target=items.close, daemon=True)
    consumer.start()
    closer.start()
    wait_until(lambda: not consumer.is_alive())
    assert taken == [[]]
    may_go_on.set()
    closer.join()


def test_loading_goes_on_while_the_last_item_is_worked_on():
    began = [threading.Event() for _ in range(12)]

    def load():
        for number, event in enumerate(began):
            event.set()
            yield number

    for number in DataPrefetcher(load(), 1):
        # The work on an item does not end before the next one is being loaded.
        assert began[min(number + 1, 11)].wait(60)
