"""What the files of an archive mean, and that a damaged archive is named and never half read."""

import json
import zipfile
from pathlib import Path

import pytest

from jaxarc.datasets import archives
from jaxarc.datasets.archives import ARCHIVES, Archive, any_json, read_archive, read_zip
from jaxarc.datasets.task_set import digest_of
from jaxarc.tasks.raw_task import RawTask, TaskFormatError


def task_json(color: int) -> dict:
    pair = {"input": [[color, 0]], "output": [[0], [color]]}
    return {"train": [pair, pair], "test": [pair]}


def pinned(name: str, files: dict[str, dict]) -> Archive:
    """The layout of a known archive, with the digest of these tasks."""
    known = ARCHIVES[name]
    tasks = [
        RawTask(
            path,
            *(tuple((pair["input"], pair["output"]) for pair in data[split]) for split in ("train", "test")),
        )
        for path, data in files.items()
    ]
    return Archive(
        "http://x", "http://x", "MIT", len(tasks), digest_of(tasks), known.label, known.example, known.loose_cells
    )


def write_zip(path: Path, files: dict[str, object], **options) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data if isinstance(data, bytes | str) else json.dumps(data))
    return path


def write_folder(path: Path, files: dict[str, object]) -> Path:
    for name, data in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


@pytest.mark.parametrize("root", ["", "ConceptARC-HEAD/"])
@pytest.mark.parametrize("write", [write_zip, write_folder])
def test_concept_arc_takes_the_numbered_and_the_minimal_tasks(tmp_path, root, write):
    kept = {"corpus/Copy/Copy1.json": task_json(1), "corpus/Copy/Copy10.json": task_json(2)}
    kept["MinimalTasks/CopyMinimal.json"] = task_json(3)
    drafts = {
        "corpus/Copy/CopyMinimal.json": task_json(4),
        "corpus/Copy/OriginalARCEvalSet/Copy2.json": task_json(5),
        "corpus/Copy/Count1.json": task_json(6),
        "corpus/Copy/.DS_Store": "not JSON",
        "README.md": "text",
    }
    path = write(tmp_path / "set.zip", {root + name: data for name, data in (kept | drafts).items()})

    tasks = read_archive(path, pinned("concept-arc", kept), "concept-arc")

    assert [(task.task_id, task.concept) for task in tasks] == [
        ("Copy1", "Copy"),
        ("Copy10", "Copy"),
        ("CopyMinimal", "Copy"),
    ]


def test_a_folder_of_concepts_alone_reads_the_same(tmp_path):
    files = {"TopBottom2D/TopBottom2D3.json": task_json(1), "MinimalTasks/TopBottom2DMinimal.json": task_json(2)}
    tasks = read_archive(write_folder(tmp_path, files), pinned("concept-arc", files), "concept-arc")
    assert {(task.task_id, task.concept) for task in tasks} == {
        ("TopBottom2D3", "TopBottom2D"),
        ("TopBottom2DMinimal", "TopBottom2D"),
    }


def test_mini_arc_reads_null_as_black_and_digits_in_quotes_as_colors(tmp_path):
    loose = {"train": [{"input": [[None, "7"]], "output": [[0, None]]}], "test": [{"input": [["0"]], "output": [[9]]}]}
    meant = {"train": [{"input": [[0, 7]], "output": [[0, 0]]}], "test": [{"input": [[0]], "output": [[9]]}]}
    file = "data/MiniARC/Bega_diagonal motion_l6afz9x759u8lp4kgq.json"
    path = write_zip(tmp_path / "a.zip", {f"MINI-ARC-HEAD/{file}": loose, "MINI-ARC-HEAD/data/Logs/x_l6a4.json": "[]"})

    (task,) = read_archive(path, pinned("mini-arc", {file: meant}), "mini-arc")

    assert (task.task_id, task.title, task.concept) == ("l6afz9x759u8lp4kgq", "Bega diagonal motion", "")
    assert task.train[0][0].tolist() == [[0, 7]]


def task_with(cell) -> dict:
    pair = {"input": [[cell]], "output": [[1]]}
    return {"train": [pair], "test": [pair]}


NO_TASKS = {
    "mini-arc": [{"train": 3, "test": []}, {"train": [4]}, {"train": [{"input": 1}], "test": 1}, [], 1],
    "mini-arc: train pair 0 input, row 0, column 0": map(task_with, ["10", "", "a", "-1", [7], 7.0, True]),
    "concept-arc: null": [task_with(None)],
}


@pytest.mark.parametrize(("refusal", "data"), [(key, data) for key, found in NO_TASKS.items() for data in found])
def test_what_is_no_task_is_named(tmp_path, refusal, data):
    name, _, words = refusal.partition(": ")
    file = "a_l6afz9x759u8lp4kgq.json" if name == "mini-arc" else "Copy/Copy1.json"
    with pytest.raises(TaskFormatError, match=rf"{file}: .*{words}"):
        read_archive(write_folder(tmp_path, {file: data}), ARCHIVES[name], name)


def test_another_set_under_a_pinned_name_is_refused_and_both_digests_are_named(tmp_path):
    path = write_folder(tmp_path, {"Copy/Copy1.json": task_json(1)})
    with pytest.raises(TaskFormatError) as raised:
        read_archive(path, ARCHIVES["concept-arc"], "concept-arc")
    expected = ("176 tasks", ARCHIVES["concept-arc"].digest, "found 1 with", "under a name of your own")
    assert all(part in str(raised.value) for part in expected)


def test_a_place_without_tasks_names_the_files_it_looked_for(tmp_path):
    with pytest.raises(TaskFormatError, match=r"no task found; expected files such as corpus/Copy/Copy1\.json"):
        read_archive(tmp_path, ARCHIVES["concept-arc"], "concept-arc")
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nothing.zip", ARCHIVES["concept-arc"], "concept-arc")


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("a/b/easy.json", {"task_id": "easy"}),
        ("a/easy.txt", None),
        ("a/.hidden.json", None),
        (".git/easy.json", None),
        ("../easy.json", None),
        ("__MACOSX/easy.json", None),
    ],
)
def test_any_json_names_a_task_after_its_file(path, label):
    assert any_json(path) == label


def test_a_zip_of_one_s_own_is_read_and_writes_nothing_outside(tmp_path):
    files = {"../../escaped.json": task_json(1), "/absolute.json": task_json(2), "b/easy.json": task_json(3)}
    (tmp_path / "inner").mkdir()
    path = write_zip(tmp_path / "inner" / "a.zip", files)
    assert read_zip(path).task_ids == ("absolute", "easy")
    assert [file.name for file in tmp_path.rglob("*")] == ["inner", "a.zip"]


def test_two_files_of_one_name_are_refused(tmp_path):
    path = write_zip(tmp_path / "a.zip", {"a/easy.json": task_json(1), "b/easy.json": task_json(2)})
    with pytest.raises(TaskFormatError, match=r"task id 'easy'.*a/easy\.json.*b/easy\.json"):
        read_zip(path)


def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    bomb = write_zip(tmp_path / "bomb.zip", {"easy.json": b"0" * (archives.MAX_FILE_BYTES + 1)})
    assert bomb.stat().st_size < 10_000
    with pytest.raises(TaskFormatError, match=r"easy\.json: larger than"):
        read_zip(bomb)

    many = write_zip(tmp_path / "many.zip", {f"{i}.json": task_json(1) for i in range(20)})
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 1000)
    with pytest.raises(TaskFormatError, match="unpacks to more than 1000 bytes"):
        read_zip(many)
    monkeypatch.setattr(archives, "MAX_ENTRIES", 19)
    with pytest.raises(TaskFormatError, match="more than 19 files"):
        read_zip(many)


def test_an_encrypted_archive_says_so(tmp_path):
    path = write_zip(tmp_path / "a.zip", {"easy.json": task_json(1)})
    content = bytearray(path.read_bytes())
    content[6] |= 1  # the flag in the header of the file
    content[content.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    path.write_bytes(content)
    with pytest.raises(TaskFormatError, match=r"easy\.json: the file is encrypted"):
        read_zip(path)


def test_what_is_no_zip_says_so(tmp_path):
    path = tmp_path / "page.zip"
    path.write_text("<html>Not what you asked for</html>")
    with pytest.raises(TaskFormatError, match=r"page\.zip: not a whole zip archive"):
        read_zip(path)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, b"\xff\xfe", '{"train": 1' + "0" * 5000 + "}"])
def test_a_file_that_is_no_json_is_named(tmp_path, text):
    path = write_zip(tmp_path / "a.zip", {"easy.json": text})
    with pytest.raises(TaskFormatError, match=r"easy\.json"):
        read_zip(path)


def test_pins_are_whole(tmp_path):
    counts = {name: archive.num_tasks for name, archive in ARCHIVES.items()}
    assert counts == {"concept-arc": 176, "mini-arc": 149, "re-arc": 400}
    for archive in ARCHIVES.values():
        assert len(bytes.fromhex(archive.digest or archive.git_blob)) == (32 if archive.digest else 20)
        assert archive.url.startswith(archive.homepage)
        assert archive.label(archive.example) is not None
