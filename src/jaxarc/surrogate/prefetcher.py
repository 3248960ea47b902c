"""Loading what comes next while the present step runs."""

import queue
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import jax
from jax.sharding import Sharding

Item = TypeVar("Item")

_END: Final = object()  # after the last item
_POLL_SECONDS: Final = 0.05  # how soon a producer that waits for room notices that nobody wants more


class DataPrefetcher(Generic[Item]):
    """Iterates over another iterator, whose items a thread of its own loads ahead and puts on the device.

    The order stays. An error of the iterator is raised to the consumer, after the items before it. Up to
    ``buffer_size`` items wait, and the thread holds one more. Use it in a ``with`` block, or call :meth:`close`, so
    that no thread stays behind where not everything is consumed. Only one thread may consume.

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
            data_iterator: of pytrees of arrays; loading and preprocessing happen in it.
            buffer_size: items that wait. 2 to 4 take little memory, 8 to 16 bridge uneven loading times.
            placement: where the arrays go, such as split over devices by batch; the default device when left out.

        Raises:
            ValueError: ``buffer_size`` is below 1.
        """
        if buffer_size < 1:
            raise ValueError(f"buffer_size must be at least 1, got {buffer_size}; 4 is a good start")
        self.queue: queue.Queue[Any] = queue.Queue(maxsize=buffer_size)
        self._is_closed = threading.Event()
        self._is_over = False
        self._outcome = _Outcome()
        self._thread = threading.Thread(
            target=self._produce, args=(data_iterator, placement), name="jaxarc-prefetch", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop loading, drop what waits and wait for the thread; any number of times.

        An iterator that is loading an item finishes that one first.
        """
        self._is_over = True
        self._is_closed.set()
        self._thread.join()
        while not self.queue.empty():
            self.queue.get_nowait()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if self._is_over:
            raise StopIteration
        item = self.queue.get()
        if item is not _END:
            return item
        self.close()
        raise self._outcome.error or StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _produce(self, items: Iterable[Any], placement: Sharding | None) -> None:
        with self._outcome:
            for item in items:
                if not self._put(jax.device_put(item, placement)):
                    return
        self._put(_END)

    def _put(self, item: Any) -> bool:
        """Wait for room; false when nobody wants the item any more."""
        while not self._is_closed.is_set():
            try:
                self.queue.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False


class _Outcome:
    """How the thread ended: its error is kept for the consumer, whatever it is, and not lost in the thread."""

    error: BaseException | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        self.error = error
        return True
