"""The cache of traces: what is read back, what is damaged, and many that write at once."""

import contextlib
import errno
import sqlite3
import subprocess
import sys
import threading

import pytest
from trace_experts import CellExpert, tiny_pairs

from jaxarc.traces import DamagedCacheError, DamagedTraceWarning, ExpertSpec, Graph, Trace, TraceCache, record_traces

SPEC = ExpertSpec("cells", 1, "", "mask")


def trace_of(number, length=1):
    return Trace(f"{number:064x}", SPEC, ((2, 0, 0, 1, 5),) * length + ((34,),))


@pytest.fixture
def cache(tmp_path):
    return TraceCache(tmp_path / "traces")


def change(cache, query, *values):
    with contextlib.closing(sqlite3.connect(cache.path)) as connection, connection:
        connection.execute(query, values)


def test_a_trace_comes_back_as_it_was(cache):
    cache.put(trace_of(1))
    for one in (cache, TraceCache(cache.path.parent)):
        assert one.get(trace_of(1).unit_hash) == trace_of(1)
        assert one.get(trace_of(2).unit_hash) is None


DAMAGES = {
    "a digit": "UPDATE traces SET trace = replace(trace, '[2,', '[3,')",
    "the end": "UPDATE traces SET trace = substr(trace, 1, 40)",
    "no text": "UPDATE traces SET trace = x'ff00'",
    "nothing": "UPDATE traces SET trace = NULL",
    "a number": "UPDATE traces SET trace = 5",
    "no checksum": "UPDATE traces SET sha256 = NULL",
    "the trace of another": "UPDATE traces SET unit = replace(unit, '1', '2')",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_trace_is_missing_and_reported(cache, damage):
    cache.put(trace_of(1))
    change(cache, damage)
    unit_hash = trace_of(2 if "unit =" in damage else 1).unit_hash
    with pytest.warns(DamagedTraceWarning, match=f"{cache.path.name}.*{unit_hash}"):
        assert cache.get(unit_hash) is None
    with pytest.warns(DamagedTraceWarning):
        assert list(cache.traces()) == []


def test_a_damaged_trace_is_recorded_again(cache):
    graph = Graph({"a": tiny_pairs()[0]})
    before = record_traces(graph, CellExpert(), cache=cache)
    change(cache, "UPDATE traces SET trace = '{}'")
    with pytest.warns(DamagedTraceWarning):
        again = record_traces(graph, CellExpert(), cache=cache)
    assert (again.num_cached, again.num_recorded) == (0, 1)
    assert cache.get(before.hash_of_node["a"]) == before.trace_of("a")


def test_a_file_that_is_no_cache_is_named(cache):
    cache.path.parent.mkdir()
    cache.path.write_bytes(b"these are notes, and no table" * 50)
    for call in (lambda: cache.get("0" * 64), lambda: cache.put(trace_of(1)), lambda: cache.num_bytes):
        with pytest.raises(DamagedCacheError, match=str(cache.path)):
            call()
    assert cache.path.read_bytes().startswith(b"these are notes")


def test_a_full_disk_is_named_as_such(cache):
    cache.put(trace_of(1))
    with cache._connected() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
    large = Trace(trace_of(2).unit_hash, SPEC, ((2, *range(900)),) * 20)
    with pytest.raises(OSError, match="No space left") as caught:
        cache.put(large)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(cache.path))
    assert list(cache.traces()) == [trace_of(1)]


def test_the_default_folder_is_below_the_cache_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path))
    assert TraceCache().path == tmp_path / "traces" / "traces.sqlite"
    monkeypatch.delenv("JAXARC_CACHE")
    assert TraceCache().path.parts[-3:] == ("jaxarc", "traces", "traces.sqlite")


def test_processes_and_threads_that_write_the_same_traces_do_not_disturb_each_other(cache):
    code = f"""
from jaxarc.traces import ExpertSpec, Trace, TraceCache
cache, spec = TraceCache({str(cache.path.parent)!r}), ExpertSpec("cells", 1, "", "mask")
for _ in range(5):
    for number in range(30):
        cache.put(Trace(f"{{number:064x}}", spec, ((2, 0, 0, 1, 5), (34,))))
        assert cache.get(f"{{number:064x}}") is not None
"""
    running = [subprocess.Popen([sys.executable, "-W", "error", "-c", code]) for _ in range(2)]
    threads = [threading.Thread(target=lambda: [cache.put(trace_of(number)) for number in range(30)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in running] == [0, 0]
    assert list(cache.traces()) == [trace_of(number) for number in range(30)]
