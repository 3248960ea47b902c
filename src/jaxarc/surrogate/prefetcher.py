"""Load the next batches in a thread while the present step runs.

The consumer and the thread share a bounded queue::

    iterator -> thread: copy, put on the device -> queue of buffer_size items -> next(prefetcher) -> step

With ``buffer_size=2`` and a step that takes longer than loading, items 4 and 5 are in the queue and the thread holds
item 6 while step 3 runs. An error of the iterator waits behind the last good item, as the end does.
"""

import contextlib
import queue
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import jax
from jax.sharding import Sharding

from jaxarc.device_arrays import own_arrays
from jaxarc.surrogate.columns import LabelledData, to_arrays

Item = TypeVar("Item")

_END: Final = object()  # after the last item
_POLL_SECONDS: Final = 0.05  # how often a waiting thread checks whether the prefetcher was closed


class DataPrefetcher(Generic[Item]):
    """Iterates over another iterator; a thread loads its items ahead and puts them on the device.

    The order stays. An error of the iterator is raised to the consumer, after the items before it. Up to
    ``buffer_size`` items wait, and the thread holds one more. Use it in a ``with`` block, or call :meth:`close`, so
    that the thread ends though items are left. When several threads consume, each item goes to one of them, and so
    does the error.

    Attributes:
        queue: of loaded items, at most ``buffer_size``.
    """

    def __init__(
        self,
        data_iterator: Iterable[Item],
        buffer_size: int = 4,
        placement: Sharding | None = None,
    ):
        """Start the thread.

        Args:
            data_iterator: of pytrees of arrays, or of labelled data, of which :func:`~jaxarc.surrogate.to_arrays` makes
                arrays; it does loading and preprocessing. It may reuse its host arrays for each item, since they are
                copied.
            buffer_size: length of the queue. 2 to 4 take little memory, 8 to 16 bridge uneven loading times.
            placement: sharding of the arrays, such as split over devices; the default device when left out.

        Raises:
            ValueError: ``buffer_size`` is below 1.
        """
        if buffer_size < 1:
            raise ValueError(f"buffer_size must be at least 1, got {buffer_size}; 4 is a good start")
        self.queue: queue.Queue[Any] = queue.Queue(maxsize=buffer_size)
        self._is_over = False
        self._outcome = _Outcome()
        self._producer = _Producer(self.queue, placement, self._outcome)
        # The thread has no reference to this object. So an object that is dropped without close() is collected, and its
        # finalizer ends the thread.
        weakref.finalize(self, self._producer.is_closed.set)
        self._thread = threading.Thread(
            target=self._producer.run, args=(data_iterator,), name="jaxarc-prefetch", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop loading, drop the waiting items and join the thread; any number of times, from any thread.

        The iterator finishes the item that it is loading.
        """
        # The thread looks at the event before it puts an item, and is joined before the queue is emptied: so no
        # item is put into a queue that was emptied.
        self._is_over = True
        self._producer.is_closed.set()
        self._thread.join()
        with contextlib.suppress(queue.Empty):
            while True:
                self.queue.get_nowait()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        while not self._is_over:
            try:
                item = self.queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:  # check again whether another thread has closed this one
                continue
            if item is not _END:
                return item
            # This consumer took the end, and raises the error if there is one. The others find ``_is_over``.
            self.close()
            raise self._outcome.error or StopIteration
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Outcome:
    """A context that keeps any error of the thread for the consumer."""

    error: BaseException | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        self.error = error
        return True


class _Producer:
    """The loop of the thread."""

    def __init__(self, waiting: queue.Queue[Any], placement: Sharding | None, outcome: _Outcome):
        self.is_closed = threading.Event()
        self._queue = waiting
        self._placement = placement
        self._outcome = outcome

    def run(self, items: Iterable[Any]) -> None:
        # The context swallows an error of the iterator and keeps it. So the end follows
        # the last good item in either case.
        with self._outcome:
            for item in items:
                # Host arrays are copied, as the iterator may fill them anew.
                own = to_arrays(item) if isinstance(item, LabelledData) else own_arrays(item)
                if not self._put(jax.device_put(own, self._placement)):
                    return
        self._put(_END)

    def _put(self, item: Any) -> bool:
        """Wait for room in the queue; return false when the prefetcher was closed."""
        while not self.is_closed.is_set():
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False
