"""The cache of traces: what is read back, what is damaged, what goes when it is full."""

import os
import subprocess
import sys
import time

import pytest
from trace_experts import CellExpert, tiny_pairs

from jaxarc.experts.traces import DamagedTraceWarning, ExpertSpec, Graph, Trace, TraceCache, record_traces

SPEC = ExpertSpec("cells", 1, "", "mask")


def trace_of(number, length=1):
    return Trace(f"{number:064x}", SPEC, ((2, 0, 0, 1, 5),) * length + ((34,),))


@pytest.fixture
def cache(tmp_path):
    return TraceCache(tmp_path / "traces")


def test_a_trace_comes_back_as_it_was(cache):
    cache.put(trace_of(1))
    assert cache.get(trace_of(1).unit_hash) == trace_of(1)
    assert cache.get(trace_of(2).unit_hash) is None
    assert cache.path_of(trace_of(1).unit_hash).relative_to(cache.folder).parts[0] == "00"


def test_traces_are_listed_by_hash(cache):
    for number in (3, 1, 2):
        cache.put(trace_of(number))
    assert list(cache.traces()) == [trace_of(1), trace_of(2), trace_of(3)]
    assert list(TraceCache(cache.folder / "none").traces()) == []


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b.replace(b"[2,", b"[3,"), lambda b: b"", lambda b: b[5:]]
)
def test_a_damaged_trace_is_none_and_reported(cache, damage):
    cache.put(trace_of(1))
    path = cache.path_of(trace_of(1).unit_hash)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(DamagedTraceWarning, match="damaged .*recorded again"):
        assert cache.get(trace_of(1).unit_hash) is None


def test_a_trace_of_another_format_is_refused_by_the_name_of_its_format(cache):
    cache.put(trace_of(1))
    path = cache.path_of(trace_of(1).unit_hash)
    path.write_bytes(path.read_bytes().replace(b"jaxarc-trace-1", b"jaxarc-trace-7"))
    with pytest.warns(DamagedTraceWarning, match="format jaxarc-trace-7, this version of jaxarc reads jaxarc-trace-1"):
        assert cache.get(trace_of(1).unit_hash) is None


def test_a_trace_under_the_name_of_another_is_damaged(cache):
    for number in (1, 2):
        cache.put(trace_of(number))
    first, second = (cache.path_of(trace_of(number).unit_hash) for number in (1, 2))
    second.write_bytes(first.read_bytes())
    with pytest.warns(DamagedTraceWarning, match="it is of unit 0"):
        assert cache.get(trace_of(2).unit_hash) is None


def test_a_damaged_trace_is_recorded_again(cache):
    graph = Graph({"a": tiny_pairs()[0]})
    before = record_traces(graph, CellExpert(), cache=cache)
    cache.path_of(before.hash_of_node["a"]).write_bytes(b"{}")
    with pytest.warns(DamagedTraceWarning):
        again = record_traces(graph, CellExpert(), cache=cache)
    assert (again.num_cached, again.num_recorded) == (0, 1)
    assert cache.get(before.hash_of_node["a"]) == before.trace_of("a")


def test_what_was_not_used_for_longest_goes_first(cache):
    for number in range(4):
        cache.put(trace_of(number))
        os.utime(cache.path_of(trace_of(number).unit_hash), (number, number))
    cache.get(trace_of(0).unit_hash)
    size = cache.entries()[0].num_bytes
    assert cache.trim(2 * size).num_files == 2
    assert list(cache.traces()) == [trace_of(0), trace_of(3)]


def test_listing_traces_is_no_use_of_them(cache):
    cache.put(trace_of(1))
    path = cache.path_of(trace_of(1).unit_hash)
    os.utime(path, (5, 5))
    assert list(cache.traces()) == [trace_of(1)]
    assert path.stat().st_mtime == 5


def test_writing_never_changes_the_umask_of_the_process(cache, monkeypatch):
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda mask: pytest.fail("other threads write files at the same time"))
            cache.put(trace_of(1))
    finally:
        os.umask(before)
    assert cache.path_of(trace_of(1).unit_hash).stat().st_mode & 0o777 == 0o640


def test_a_cache_keeps_within_its_limit(tmp_path):
    cache = TraceCache(tmp_path, max_bytes=5000)
    for number in range(60):
        cache.put(trace_of(number, length=20))
    assert sum(entry.num_bytes for entry in cache.entries()) <= 5000 + 5000 // 16 + 1000
    cache.trim()
    assert 3000 < sum(entry.num_bytes for entry in cache.entries()) <= 5000


def test_garbage_is_what_is_damaged_and_what_killed_processes_left(cache):
    for number in (1, 2):
        cache.put(trace_of(number))
    damaged = cache.path_of(trace_of(2).unit_hash)
    damaged.write_bytes(b"x")
    old, new = (damaged.with_name(f".{damaged.name}.{name}.part") for name in ("old", "new"))
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    foreign = cache.folder / "00" / "notes.txt"
    foreign.write_bytes(b"mine")
    assert cache.collect_garbage() == (2, 5)
    assert list(cache.traces()) == [trace_of(1)]
    assert new.exists()
    assert foreign.exists()


def test_the_default_folder_is_below_the_cache_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path))
    assert TraceCache().folder == tmp_path / "traces"
    monkeypatch.delenv("JAXARC_CACHE")
    assert TraceCache().folder.parts[-2:] == ("jaxarc", "traces")


def test_processes_that_write_the_same_traces_do_not_disturb_each_other(cache):
    code = f"""
from jaxarc.experts.traces import ExpertSpec, Trace, TraceCache
cache, spec = TraceCache({str(cache.folder)!r}), ExpertSpec("cells", 1, "", "mask")
for _ in range(5):
    for number in range(30):
        cache.put(Trace(f"{{number:064x}}", spec, ((2, 0, 0, 1, 5), (34,))))
        assert cache.get(f"{{number:064x}}") is not None
"""
    running = [subprocess.Popen([sys.executable, "-W", "error", "-c", code]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert list(cache.traces()) == [trace_of(number) for number in range(30)]
