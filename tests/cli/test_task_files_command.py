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
from jaxarc.search import drawn_rules
from jaxarc.tasks.raw_task import RawTask, TaskFormatError


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


def test_a_zip_file_is_known_by_its_ending_in_any_case(tmp_path):
    path = write_zip(tmp_path / "MINE.ZIP", {"a/easy.json": task_json(3)})
    assert load_tasks(str(path)).task_ids == ("easy",)
    assert run("import", path)[:2] == (0, f"MINE: 1 tasks in {installed_path('MINE')}\n")


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


def test_a_set_with_other_tasks_is_replaced_only_when_asked(tmp_path):
    file = tmp_path / "easy.json"
    file.write_text(task_json(3))
    run("import", file)
    file.write_text(task_json(4))
    code, _, err = run("import", file)
    assert code == 1
    assert "--replace" in err
    assert read_installed("easy").tasks[0].train[0][1].tolist() == [[3]]
    assert run("import", file, "--replace")[0] == 0
    assert read_installed("easy").tasks[0].train[0][1].tolist() == [[4]]


@pytest.mark.parametrize("name", ["arc-agi-1/training", "mini-arc/mine", "../up", "a:first=3"])
def test_a_name_that_is_taken_or_cannot_be_one_is_refused(tmp_path, name):
    (tmp_path / "easy.json").write_text(task_json(3))
    code, _, err = run("import", tmp_path / "easy.json", "--name", name)
    assert (code, "--name" in err) == (2, True)
    assert installed_names() == ()


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


def test_generated_rules_are_a_set_by_name(monkeypatch):
    monkeypatch.setattr("jaxarc.search.drawn_rules._BATCHES", 1)
    asked = ("generate", "rules", "few", "--count", "30", "--canvas", "6", "--processes", "1")
    code, out, _ = run(*asked)
    assert (code, out.startswith("rules/few: 30 tasks in ")) == (0, True)
    tasks = load_tasks("rules/few")
    assert len(tasks) == 30
    assert max(tasks.max_grid_shape) <= 6
    assert {(len(task.train), len(task.test)) for task in tasks} == {(3, 1)}
    content = installed_path("rules/few").read_bytes()
    code, _, error = run(*asked)
    assert code == 1
    assert "'rules/few' is there already in" in error
    assert "--replace" in error
    code, out, _ = run(*asked, "--held-out", "5", "--replace")
    assert [line.partition(" tasks")[0] for line in out.splitlines()[:4]] == [
        *("rules/few: 30", "rules/few-arguments: 5", "rules/few-compositions: 5", "rules/few-words: 5")
    ]
    assert len(load_tasks("rules/few-words")) == 5
    code, _, error = run(*asked, "--replace")  # what those three hold out may be among the new rules
    assert code == 1
    assert "'rules/few-arguments' is of an earlier 'rules/few'" in error
    for part in ("arguments", "compositions", "words"):
        assert run("remove", f"rules/few-{part}")[0] == 0
    assert run(*asked, "--replace")[0] == 0
    assert installed_path("rules/few").read_bytes() == content
    assert run("verify", "rules/few")[0] == 0
    installed_path("rules/few").write_bytes(content[:-9])
    with pytest.raises(TaskFormatError, match="jaxarc tasks generate rules few --count NUMBER --replace"):
        load_tasks("rules/few")
    code, _, error = run("generate", "rules", "a/b")
    assert code == 2
    assert "cannot name a task set" in error


def test_rules_whose_drawing_was_killed_are_drawn_on_to_the_same_files(data_folder, monkeypatch):
    monkeypatch.setattr(drawn_rules, "_BATCHES", 1)
    asked = ("generate", "rules", "few", "--count", "200", "--held-out", "3", "--canvas", "6", "--processes", "1")
    assert run(*asked)[0] == 0
    content = [installed_path(f"rules/few{part}").read_bytes() for part in ("", "-words")]
    jobs, draw = [], drawn_rules._draw

    def draw_some(*given):
        if len(jobs) == 2:
            raise KeyboardInterrupt
        jobs.append(given[-1])
        return draw(*given)

    monkeypatch.setattr(drawn_rules, "_draw", draw_some)
    assert run(*asked, "--replace")[0] == 130
    parts = installed_path("rules/few").with_suffix(".drawn")
    assert {file.name for file in parts.iterdir()} == {"about.json", "0.npz", "1.npz"}
    code, _, error = run(*asked, "--replace", "--seed", "1")
    assert code == 1
    assert "--seed is 0 there and 1 here" in error
    (parts / "1.npz").write_bytes((parts / "1.npz").read_bytes()[:-9])  # as a crash of the machine may leave it
    monkeypatch.setattr(drawn_rules, "_draw", lambda *given: jobs.append(given[-1]) or draw(*given))
    installed_path("rules/few-words").unlink()  # as where the sets were being written
    assert run(*asked)[0] == 0
    assert jobs[:4] == [0, 1, 1, 2]
    assert jobs.count(0) == 1
    assert [installed_path(f"rules/few{part}").read_bytes() for part in ("", "-words")] == content
    assert not parts.exists()
