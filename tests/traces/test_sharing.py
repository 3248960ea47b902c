"""Traces that a group shares: in a folder, at an address of fsspec, and on a web server."""

import functools
import hashlib
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest
from run_command import run_command

from jaxarc.traces import ExpertSpec, Trace, TraceCache
from jaxarc.traces.sharing import DamagedPackWarning, PlaceError, pull_traces, push_traces

SPEC = ExpertSpec("cells", 1, "", "mask")


def trace_of(number, length=1):
    return Trace(f"{number:064x}", SPEC, ((2, 0, 0, 1, 5),) * length + ((34,),))


@pytest.fixture
def mine(tmp_path):
    return TraceCache(tmp_path / "mine")


@pytest.fixture
def other(tmp_path):
    return TraceCache(tmp_path / "other")


@pytest.fixture(params=["folder", "memory"])
def place(request, tmp_path):
    if request.param == "folder":
        return str(tmp_path / "shared" / "traces")
    files = fsspec.filesystem("memory")
    files.store.clear()
    return "memory://shared/traces"


def packs(place):
    """Return the content of each file of a place."""
    files, root = fsspec.url_to_fs(place)
    return {path.rpartition("/")[2]: files.cat_file(path) for path in files.ls(root, detail=False)}


def test_what_one_pushes_another_pulls(place, mine, other):
    mine.put_shorter([trace_of(1), trace_of(2)])
    assert push_traces(place, mine) == (2, 0)
    assert pull_traces(place, other) == (2, 0)
    assert list(other.traces()) == list(mine.traces())
    assert pull_traces(place, other) == (0, 0)


def test_what_is_there_is_not_sent_again(place, mine, other):
    mine.put_shorter([trace_of(1), trace_of(2, length=3)])
    push_traces(place, mine)
    before = packs(place)
    assert push_traces(place, mine) == (0, 2)
    assert packs(place) == before
    other.put_shorter([trace_of(1, length=2), trace_of(2, length=2), trace_of(3)])
    assert push_traces(place, other) == (2, 1)
    (added,) = packs(place).items() - before.items()
    assert [Trace.from_json(line).unit_hash for line in added[1].decode().splitlines()] == [
        trace_of(2).unit_hash,
        trace_of(3).unit_hash,
    ]
    assert pull_traces(place, mine) == (2, 0)
    assert list(mine.traces()) == [trace_of(1), trace_of(2, length=2), trace_of(3)]


def test_a_pack_is_named_by_its_content_whoever_pushes_it(place, tmp_path, mine, other):
    for cache, order in ((mine, (1, 2)), (other, (2, 1))):
        cache.put_shorter([trace_of(order[0])])
        cache.put_shorter([trace_of(order[1])])
    push_traces(place, mine)
    push_traces(str(tmp_path / "elsewhere"), other)
    ((name, content),) = packs(place).items()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == [name]
    assert name == f"{hashlib.sha256(content).hexdigest()}.jsonl"


@pytest.mark.filterwarnings("default:.* is damaged ")
def test_a_damaged_pack_is_named_and_not_installed_and_can_be_replaced(tmp_path, mine, other):
    place = tmp_path / "shared"
    for number in (1, 2):
        mine.put(trace_of(number))
        push_traces(str(place), mine)
    damaged = next(path for path in place.iterdir() if trace_of(1).unit_hash in path.read_text())
    damaged.write_bytes(damaged.read_bytes().replace(b"[2,", b"[3,"))
    result = run_command("traces", "pull", place, "--cache", other.path.parent)
    assert result.exit_code == 1
    assert f"{damaged.name} of {place} is damaged" in result.stderr
    assert list(other.traces()) == [trace_of(2)]
    damaged.unlink()
    assert push_traces(str(place), mine) == (1, 1)
    assert pull_traces(str(place), other) == (1, 0)


@pytest.mark.parametrize(
    "content", [b"[]\n", b'{"actions":[["a"]],"spec":["cells",1,"","mask",[30,30]],"unit":"%064d"}\n' % 9, b"\xff"]
)
def test_a_pack_that_holds_no_traces_is_not_installed_though_its_name_is_right(content, tmp_path, mine):
    (tmp_path / f"{hashlib.sha256(content).hexdigest()}.jsonl").write_bytes(content)
    with pytest.warns(DamagedPackWarning):
        assert pull_traces(str(tmp_path), mine) == (0, 1)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture
def served(tmp_path):
    """A folder, and the address at which a web server shows it."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_web_server_that_lists_a_folder_or_has_a_pack_is_pulled_from(served, tmp_path, mine, other):
    folder, address = served
    mine.put(trace_of(1))
    push_traces(str(folder), mine)
    mine.put(trace_of(2))
    push_traces(str(folder), mine)
    first = next(path for path in folder.iterdir() if trace_of(1).unit_hash in path.read_text())
    assert pull_traces(f"{address}/{first.name}", other) == (1, 0)
    assert pull_traces(f"{address}/", other) == (1, 0)
    assert list(other.traces()) == list(mine.traces())
    other.put(trace_of(3))
    with pytest.raises(PlaceError, match="can only be read"):
        push_traces(address, other)


def test_a_place_where_nobody_may_write_is_one_line(place, mine, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", place)

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.pipe_file", refuse)
    monkeypatch.setattr("jaxarc.traces.sharing.write_whole", refuse)
    mine.put(trace_of(1))
    result = run_command("traces", "push", place, "--cache", mine.path.parent)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "ermission denied" in result.stderr


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("s3://bucket/traces", "s3://bucket/traces: Install s3fs"),
        ("nothing://bucket", "nothing://bucket: Protocol not known: nothing"),
        ("http://127.0.0.1:9/traces", "http://127.0.0.1:9/traces/ cannot be read: .*refused"),
        ("empty", "there are no traces in empty"),
    ],
)
def test_a_place_that_cannot_be_pulled_from_is_one_line(place, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_command("traces", "pull", place, "--cache", tmp_path / "cache")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    with pytest.raises(PlaceError, match=complaint):
        pull_traces(place, TraceCache(tmp_path / "cache"))
