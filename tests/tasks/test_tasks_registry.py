"""Numbers for task ids."""

import threading
import time

from jaxarc.tasks import register_task, task_id_of


def test_index_and_id_are_inverse():
    index = register_task("registry-inverse")
    assert task_id_of(index) == "registry-inverse"


def test_registering_twice_gives_the_same_index():
    assert register_task("registry-twice") == register_task("registry-twice")


def test_indices_count_in_order_of_registration():
    first = register_task("registry-b")
    names = ("registry-b", "registry-a", "registry-b", "registry-c")
    assert [register_task(task_id) - first for task_id in names] == [0, 1, 0, 2]


class SlowId(str):
    """An id whose every look-up lets another thread run."""

    __slots__ = ()

    def __hash__(self) -> int:
        time.sleep(1e-5)
        return super().__hash__()


def test_many_threads_agree_on_every_index():
    names = [SlowId(f"registry-thread-{number}") for number in range(40)]
    seen: list[list[int]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def work(place: int) -> None:
        start.wait()
        seen[place] = [register_task(name) for name in names]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(indices == seen[0] for indices in seen)
    assert seen[0] == list(range(seen[0][0], seen[0][0] + 40))
    assert [task_id_of(index) for index in seen[0]] == names
