"""Downloads from a server on this machine that cuts, refuses, hangs and lies."""

import io
import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from archive_server import Answer, ArchiveServer

from jaxarc.datasets.archives import ARCHIVES, Archive, any_json
from jaxarc.datasets.download import DownloadError, download
from jaxarc.datasets.installed import has_published_set, install, read_installed
from jaxarc.datasets.task_set import TaskSet, digest_of
from jaxarc.tasks.raw_task import RawTask

PAIR = {"input": [[1, 2]], "output": [[3]]}
TASKS = [RawTask("easy", (([[1, 2]], [[3]]),), (([[1, 2]], [[3]]),))]
DIGEST = digest_of(TASKS)


def zip_of(color: int = 3) -> bytes:
    """A task and 100 kB of noise beside it, so that there is something to cut."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        pair = {"input": [[1, 2]], "output": [[color]]}
        archive.writestr("easy.json", json.dumps({"train": [pair], "test": [pair]}))
        archive.writestr("noise.bin", bytes(range(256)) * 400)
    return made.getvalue()


CONTENT = zip_of()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    with ArchiveServer(CONTENT) as running:
        yield running


@pytest.fixture
def tiny(server, monkeypatch):
    """A published set that the server has."""
    return publish(monkeypatch, server.url)


def publish(monkeypatch, url: str) -> Archive:
    archive = Archive(url, url, "MIT", 1, DIGEST, any_json, "easy.json")
    monkeypatch.setitem(ARCHIVES, "tiny", archive)
    return archive


def parts(folder: Path) -> list[Path]:
    return [file for file in (folder / "downloads").iterdir() if file.suffix != ".lock"]


def test_a_download_installs_the_set_and_leaves_no_archive(server, tiny, tmp_path):
    seen = []
    path = download("tiny", lambda done, total: seen.append((done, total)), tmp_path)
    assert path == tmp_path / "tasks" / "tiny.tasks"
    assert read_installed("tiny", tmp_path).task_ids == ("easy",)
    assert parts(tmp_path) == []
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)


def test_what_is_there_is_not_fetched_unless_asked(server, tiny, tmp_path):
    download("tiny", folder=tmp_path)
    download("tiny", folder=tmp_path)
    assert len(server.asked) == 1
    download("tiny", folder=tmp_path, again=True)
    assert len(server.asked) == 2


def test_a_damaged_installed_file_is_fetched_anew(server, tiny, tmp_path):
    path = download("tiny", folder=tmp_path)
    path.write_text("{")
    assert not has_published_set("tiny", tmp_path)
    download("tiny", folder=tmp_path)
    assert has_published_set("tiny", tmp_path)


def test_the_folder_of_the_environment_is_used(server, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "mine"))
    assert download("tiny") == tmp_path / "mine" / "tasks" / "tiny.tasks"


def test_a_cut_connection_is_tried_again(server, tiny, tmp_path):
    server.answers.extend([Answer(cut_after=70_000), Answer(cut_after=0)])
    seen = []
    download("tiny", lambda done, total: seen.append(done), tmp_path)
    assert server.asked == [200, 200, 200]
    assert max(seen) == seen[-1] == len(CONTENT)  # each try counts from 0
    assert has_published_set("tiny", tmp_path)
    assert parts(tmp_path) == []


def test_an_answer_without_length_that_is_cut_is_no_whole_archive(server, tiny, tmp_path):
    server.answers.append(Answer(cut_after=50_000, tells_length=False))
    with pytest.raises(DownloadError, match="not a whole zip archive"):
        download("tiny", folder=tmp_path)
    download("tiny", folder=tmp_path)
    assert has_published_set("tiny", tmp_path)


def test_other_tasks_than_the_pinned_ones_are_refused_and_the_installed_set_stays(server, tiny, tmp_path):
    download("tiny", folder=tmp_path)
    server.content = zip_of(color=4)
    with pytest.raises(DownloadError, match=rf"1.*{DIGEST}.*1"):
        download("tiny", folder=tmp_path, again=True)
    assert has_published_set("tiny", tmp_path)
    assert parts(tmp_path) == []


@pytest.mark.parametrize("page", [b"<html>Sign in to this network</html>", b""])
def test_a_page_instead_of_an_archive_is_refused(server, tiny, tmp_path, page):
    server.content = page
    with pytest.raises(DownloadError, match=r"gave something else .*not a whole zip archive"):
        download("tiny", folder=tmp_path)
    assert parts(tmp_path) == []


@pytest.mark.parametrize("status", [404, 503])
def test_a_refusal_that_lasts_says_what_to_do(server, tiny, tmp_path, status):
    server.answers.extend([Answer(status=status)] * 9)
    with pytest.raises(DownloadError) as raised:
        download("tiny", folder=tmp_path)
    assert len(server.asked) == 3
    expected = (f"answered {status}", server.url, "jaxarc tasks import FILE --name tiny")
    assert all(part in str(raised.value) for part in expected)
    assert "\n" not in str(raised.value)


def test_a_server_that_hangs_is_left(server, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxarc.datasets.download.TIMEOUTS", (0.2, 0.1))
    server.answers.extend([Answer(hangs=True)] * 9)
    start = time.monotonic()
    with pytest.raises(DownloadError, match=r"3 tries.*jaxarc tasks import"):
        download("tiny", folder=tmp_path)
    assert time.monotonic() - start < 5


def test_without_network_it_says_what_to_do(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/tiny.zip"
    publish(monkeypatch, url)
    with pytest.raises(DownloadError) as raised:
        download("tiny", folder=tmp_path)
    expected = ("cannot be reached", f"fetch {url} on another machine", "jaxarc tasks import FILE --name tiny")
    assert all(part in str(raised.value) for part in expected)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_disk_that_is_full_is_named_with_the_fix(server, tiny, tmp_path, monkeypatch):
    opened = Path.open
    full = Path("/dev/full")
    monkeypatch.setattr(Path, "open", lambda file, mode="r": opened(full if mode == "wb" else file, mode))
    with pytest.raises(DownloadError) as raised:
        download("tiny", folder=tmp_path)
    expected = (str(tmp_path), "No space left on device", "free some space", "JAXARC_DATA")
    assert all(part in str(raised.value) for part in expected)
    assert not (tmp_path / "tasks").exists()
    assert parts(tmp_path) == []


def test_an_installed_set_is_found_in_a_folder_that_is_read_only(server, tiny, tmp_path, monkeypatch):
    path = download("tiny", folder=tmp_path)
    monkeypatch.setattr(Path, "mkdir", None)
    assert download("tiny", folder=tmp_path) == path


def test_an_endless_answer_is_left(server, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxarc.datasets.download.MAX_BYTES", 20_000)
    with pytest.raises(DownloadError, match="sends more than 20000 bytes"):
        download("tiny", folder=tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match=r"cannot write to .*file .*JAXARC_DATA"):
        download("tiny", folder=tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "hint"), [("concept-arcs", "did you mean 'concept-arc'"), ("mini-arc/x", "'mini-arc'")]
)
def test_an_unknown_name_names_the_known_ones(tmp_path, name, hint):
    with pytest.raises(DownloadError, match=f"{hint}.*concept-arc, mini-arc, re-arc"):
        download(name, folder=tmp_path)


def test_an_imported_copy_of_other_tasks_does_not_count_as_downloaded(tiny, tmp_path):
    other = RawTask("easy", (([[1]], [[1]]),), (([[1]], [[1]]),))
    install(TaskSet("tiny", (other,)), "tiny", tmp_path)
    assert not has_published_set("tiny", tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from jaxarc.datasets.archives import ARCHIVES, Archive, any_json
from jaxarc.datasets.download import download
url, digest, folder = sys.argv[1:]
ARCHIVES["tiny"] = Archive(url, url, "MIT", 1, digest, any_json, "easy.json")
print("ready", flush=True)
sys.stdin.readline()
print(download("tiny", folder=Path(folder)), flush=True)
"""


def start_process(server, folder) -> subprocess.Popen:
    arguments = [sys.executable, "-c", SCRIPT, server.url, DIGEST, str(folder)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    )


def test_of_two_processes_one_downloads_and_the_other_waits(server, tiny, tmp_path):
    server.answers.append(Answer(pause=0.005))  # half a second, in which the other comes
    processes = [start_process(server, tmp_path) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs == [f"{tmp_path / 'tasks' / 'tiny.tasks'}\n"] * 2
    assert [process.returncode for process in processes] == [0, 0]
    assert len(server.asked) == 1
    assert has_published_set("tiny", tmp_path)
