"""``jaxarc tasks download`` and ``jaxarc tasks import``, as a user runs them."""

import json
import zipfile

import pytest
from archive_server import Answer, ArchiveServer
from run_command import run_command

from jaxarc.datasets import load_tasks
from jaxarc.datasets.archives import ARCHIVES, Archive, any_json
from jaxarc.datasets.installed import installed_names, installed_path, read_installed
from jaxarc.datasets.json_files import read_json
from jaxarc.datasets.task_set import digest_of
from jaxarc.tasks.raw_task import RawTask


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """The only published set, ``tiny``: one task in a zip file."""
    task = RawTask("easy", (([[1]], [[3]]),), (([[1]], [[3]]),))
    for name in list(ARCHIVES):
        monkeypatch.delitem(ARCHIVES, name)
    path = write_zip(tmp_path / "tiny.zip", {"easy.json": task_json(3)})
    with ArchiveServer(path.read_bytes()) as server:
        pinned = Archive(server.url, server.url, "MIT", 1, digest_of([task]), any_json, "easy.json")
        monkeypatch.setitem(ARCHIVES, "tiny", pinned)
        yield server, path


def task_json(color: int) -> str:
    pair = {"input": [[1]], "output": [[color]]}
    return json.dumps({"train": [pair], "test": [pair]})


def write_zip(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def run(*arguments) -> tuple[int, str, str]:
    result = run_command("tasks", *arguments)
    return result.exit_code, result.stdout, result.stderr


def test_download_installs_and_says_where(archive):
    code, out, _ = run("download", "tiny")
    assert (code, out) == (0, f"tiny: 1 tasks in {installed_path('tiny')}\n")
    assert installed_names() == ("tiny",)


def test_a_second_download_says_that_it_is_there(archive):
    run("download", "tiny")
    code, out, _ = run("download", "tiny")
    assert (code, len(archive[0].asked)) == (0, 1)
    assert "already installed" in out
    run("download", "tiny", "--again")
    assert len(archive[0].asked) == 2


def test_download_all_brings_what_can_be_had_and_fails_in_the_end(archive, monkeypatch):
    server, _ = archive
    lost = Archive(server.url + "/lost", "", "MIT", 1, "0" * 64, any_json, "easy.json")
    pinned = ARCHIVES.pop("tiny")
    monkeypatch.setitem(ARCHIVES, "lost", lost)
    monkeypatch.setitem(ARCHIVES, "tiny", pinned)
    monkeypatch.setattr("jaxarc.datasets.download.TRIES", 1)
    server.answers.append(Answer(status=404))
    code, out, err = run("download", "--all")
    assert code == 1
    assert "tiny: 1 tasks" in out
    assert "lost" in err
    assert "404" in err


def test_a_failed_download_is_one_line(archive, monkeypatch):
    monkeypatch.setattr("jaxarc.datasets.download.TRIES", 1)
    archive[0].answers.append(Answer(status=404))
    code, out, err = run("download", "tiny")
    assert (code, out) == (1, "")
    assert err.strip().startswith("error: tiny:")
    assert err.strip().count("\n") == 0
    assert "jaxarc tasks import FILE --name tiny" in err


@pytest.mark.parametrize("arguments", [[], ["tiny", "--all"]])
def test_download_wants_a_name_or_all(arguments):
    code, _, err = run("download", *arguments)
    assert code == 2
    assert "--all" in err


def test_import_offline_of_the_zip_gives_the_downloaded_set(archive):
    run("download", "tiny")
    downloaded = installed_path("tiny").read_bytes()
    installed_path("tiny").unlink()
    code, out, _ = run("import", archive[1])
    assert code == 0
    assert "tiny: 1 tasks" in out
    assert installed_path("tiny").read_bytes() == downloaded


def test_import_of_other_tasks_under_a_published_name_is_refused(archive, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "easy.json").write_text(task_json(4))
    code, _, err = run("import", tmp_path / "folder", "--name", "tiny", "--replace")
    assert code == 1
    assert ARCHIVES["tiny"].digest in err
    assert installed_names() == ()


@pytest.mark.parametrize("kind", ["zip", "folder", "file"])
def test_import_of_tasks_of_one_s_own(tmp_path, kind):
    path = tmp_path / "mine"
    if kind == "zip":
        path = write_zip(tmp_path / "mine.zip", {"a/easy.json": task_json(3)})
    elif kind == "folder":
        path.mkdir()
        (path / "easy.json").write_text(task_json(3))
    else:
        path = tmp_path / "easy.json"
        path.write_text(task_json(3))
    code, out, _ = run("import", path, "--name", "lab/mine")
    assert (code, out) == (0, f"lab/mine: 1 tasks in {installed_path('lab/mine')}\n")
    assert read_installed("lab/mine").task_ids == ("easy",)


def test_a_published_set_under_another_name_is_recognized(archive):
    code, out, _ = run("import", archive[1], "--name", "mine")
    assert code == 0
    assert "These are the tasks of tiny; import them with --name tiny" in out


def test_the_name_of_the_file_is_the_default(tmp_path):
    (tmp_path / "easy.json").write_text(task_json(3))
    assert run("import", tmp_path / "easy.json")[0] == 0
    assert installed_names() == ("easy",)


def test_a_set_with_other_tasks_is_replaced_only_when_asked(tmp_path):
    file = tmp_path / "easy.json"
    file.write_text(task_json(3))
    run("import", file)
    assert "already installed" in run("import", file)[1]
    file.write_text(task_json(4))
    code, _, err = run("import", file)
    assert code == 1
    assert "--replace" in err
    assert read_installed("easy").tasks[0].train[0][1].tolist() == [[3]]
    assert run("import", file, "--replace")[0] == 0
    assert read_installed("easy").tasks[0].train[0][1].tolist() == [[4]]


def test_a_damaged_set_is_replaced_only_when_asked(tmp_path):
    file = tmp_path / "easy.json"
    file.write_text(task_json(3))
    run("import", file)
    installed_path("easy").write_text("{")
    assert run("import", file)[0] == 1
    assert run("import", file, "--replace")[0] == 0
    assert read_installed("easy").task_ids == ("easy",)


@pytest.mark.parametrize("name", ["arc-agi-1/training", "concept-arc/Copy", "mini-arc/mine", "procedural/mine"])
def test_the_names_of_built_in_sets_are_taken(tmp_path, name):
    (tmp_path / "easy.json").write_text(task_json(3))
    code, _, err = run("import", tmp_path / "easy.json", "--name", name)
    assert code == 2
    assert "jaxarc's own" in " ".join(err.replace("│", " ").split())
    assert installed_names() == ()


@pytest.mark.parametrize("name", ["../up", "a b", "a:first=3", "a/b/c"])
def test_a_name_that_cannot_be_one_is_refused(tmp_path, name):
    (tmp_path / "easy.json").write_text(task_json(3))
    code, _, err = run("import", tmp_path / "easy.json", "--name", name)
    assert code == 2
    assert "cannot name a task set" in " ".join(err.replace("│", " ").split())


def test_a_wrong_task_is_one_line_that_names_it(tmp_path):
    (tmp_path / "easy.json").write_text(task_json(10))
    code, _, err = run("import", tmp_path / "easy.json")
    assert code == 1
    assert "easy.json: train pair 0 output, row 0, column 0" in err
    assert err.strip().count("\n") == 0


def test_a_path_where_nothing_is_is_one_line(tmp_path):
    code, _, err = run("import", tmp_path / "nothing")
    assert code == 2
    assert "nothing" in err


def test_a_removed_set_is_gone_even_a_damaged_one(tmp_path):
    (tmp_path / "easy.json").write_text(task_json(3))
    for damage in ("", "{"):
        run("import", tmp_path / "easy.json")
        if damage:
            installed_path("easy").write_text(damage)
        assert run("remove", "easy")[0] == 0
        assert installed_names() == ()
    code, out, err = run("remove", "easy")
    assert (code, out) == (2, "")
    assert "'easy'" in err
    assert run("remove", "../up")[0] == 2


def test_exported_tasks_are_a_dataset_again(tmp_path):
    folder = tmp_path / "out"
    code, out, _ = run("export", "arc-agi-1/training:max_side=4", folder)
    assert (code, out) == (0, f"15 tasks: {folder}\n")
    exported, original = read_json(folder), load_tasks("arc-agi-1/training:max_side=4")
    assert exported.task_ids == original.task_ids
    assert digest_of(exported) == digest_of(original)
    assert run("export", exported.task_ids[0], tmp_path / "one")[0] == 0
    assert [file.name for file in (tmp_path / "one").iterdir()] == [f"{exported.task_ids[0]}.json"]


def test_an_export_replaces_files_only_when_asked(tmp_path):
    run("export", "007bbfb7", tmp_path)
    (tmp_path / "007bbfb7.json").write_text("mine")
    code, _, err = run("export", "arc-agi-1/training", tmp_path)
    assert code == 1
    assert "--replace" in err
    assert [file.read_text() for file in tmp_path.glob("*.json")] == ["mine"]
    assert run("export", "007bbfb7", tmp_path, "--replace")[0] == 0
    assert read_json(tmp_path).task_ids == ("007bbfb7",)
    assert run("export", "no-such-task", tmp_path)[0] == 2
