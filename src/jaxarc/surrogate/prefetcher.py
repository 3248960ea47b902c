"""Loading what comes next while the present step runs."""

import contextlib
import queue
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import jax
import numpy as np
from jax.sharding import Sharding

Item = TypeVar("Item")

_END: Final = object()  # after the last item
_POLL_SECONDS: Final = 0.05  # how soon one that waits, for room or for an item, notices that all is closed


class DataPrefetcher(Generic[Item]):
    """Iterates over another iterator, whose items a thread of its own loads ahead and puts on the device.

    The order stays. An error of the iterator is raised to the consumer, after the items before it. Up to
    ``buffer_size`` items wait, and the thread holds one more. Use it in a ``with`` block, or call :meth:`close`, so
    that the thread has ended where not everything is consumed. When several threads consume, each item goes to one
    of them, and so does the error.

    Attributes:
        queue: of what is loaded, at most ``buffer_size`` items.
    """

    def __init__(
        self,
        data_iterator: Iterable[Item],
        buffer_size: int = 4,
        placement: Sharding | None = None,
    ):
        """Start to load.

        Args:
            data_iterator: of pytrees of arrays; loading and preprocessing happen in it. It may write each item into
                the same host arrays: they are copied.
            buffer_size: items that wait. 2 to 4 take little memory, 8 to 16 bridge uneven loading times.
            placement: where the arrays go, such as split over devices by batch; the default device when left out.

        Raises:
            ValueError: ``buffer_size`` is below 1.
        """
        if buffer_size < 1:
            raise ValueError(f"buffer_size must be at least 1, got {buffer_size}; 4 is a good start")
        self.queue: queue.Queue[Any] = queue.Queue(maxsize=buffer_size)
        self._is_over = False
        self._outcome = _Outcome()
        self._producer = _Producer(self.queue, placement, self._outcome)
        # The thread knows nothing of this object, so one that is dropped without being closed ends its thread.
        weakref.finalize(self, self._producer.is_closed.set)
        self._thread = threading.Thread(
            target=self._producer.run, args=(data_iterator,), name="jaxarc-prefetch", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop loading, drop what waits and wait for the thread; any number of times, from any thread.

        An iterator that is loading an item finishes that one first.
        """
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
            except queue.Empty:  # look again whether another thread closed this one
                continue
            if item is not _END:
                return item
            self.close()
            raise self._outcome.error or StopIteration
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Outcome:
    """How the thread ended: its error is kept for the consumer, whatever it is, and not lost in the thread."""

    error: BaseException | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        self.error = error
        return True


class _Producer:
    """What the thread does."""

    def __init__(self, waiting: queue.Queue[Any], placement: Sharding | None, outcome: _Outcome):
        self.is_closed = threading.Event()
        self._queue, self._placement, self._outcome = waiting, placement, outcome

    def run(self, items: Iterable[Any]) -> None:
        with self._outcome:
            for item in items:
                if not self._put(jax.device_put(_own(item), self._placement)):
                    return
        self._put(_END)

    def _put(self, item: Any) -> bool:
        """Wait for room; false when nobody wants the item any more."""
        while not self.is_closed.is_set():
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False


def _own(item: Any) -> Any:
    """Copy host arrays: on a CPU an array on the device may be the very memory that the iterator fills next."""
    return jax.tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, item)
