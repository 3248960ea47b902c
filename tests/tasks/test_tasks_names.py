"""The grammar of names: versions, subsets, and files of subsets."""

import pytest

from jaxarc.datasets.selectors import SubsetError, parse_clauses, split_clauses, split_version


def test_name_is_cut_at_its_first_colon_and_its_last_at():
    assert split_clauses("a/b@1:first 10") == ("a/b@1", "first 10")
    assert split_clauses("a/b") == ("a/b", None)
    assert split_clauses("a:") == ("a", "")
    assert split_clauses(r"C:\tasks:first 1") == (r"C:\tasks", "first 1")
    assert split_version("me@home/tasks@1") == ("me@home/tasks", "1")
    assert split_version("a/b") == ("a/b", None)


def test_every_clause_becomes_a_keyword():
    text = "first 10, max_side=8,min_side=2 ,same_shape,concept=Above Below,ids=a+b,without=c,without_errata"
    assert parse_clauses(text) == {
        "first": 10,
        "max_side": 8,
        "min_side": 2,
        "same_shape": True,
        "concept": "Above Below",
        "ids": ["a", "b"],
        "without": ["c"],
        "without_errata": True,
    }
    assert parse_clauses("first=10") == {"first": 10}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frst 10", "unknown clause 'frst' in 'frst 10'; did you mean 'first'"),
        ("", "unknown clause '' in ''; Known clauses: first, max_side"),
        ("first", "'first' in 'first' takes a whole number of 1 or more, got ''"),
        ("first ten", "whole number of 1 or more, got 'ten'"),
        ("first 0", "whole number of 1 or more, got '0'"),
        ("first 1e9", "whole number"),
        ("max_side=31", r"whole number in 1\.\.30, got '31'"),
        ("min_side=-1", "got '-1'"),
        ("same_shape=maybe", "takes no value, got 'maybe'"),
        ("concept=", "takes a name"),
        ("ids=a++b", "task ids with a plus between them"),
        ("file=", "takes the path of a YAML file"),
        ("first 1,first 2", "the clause 'first' comes twice in 'first 1,first 2'"),
    ],
)
def test_wrong_clause_names_what_it_takes(text, message):
    with pytest.raises(SubsetError, match=message):
        parse_clauses(text)


def test_file_may_list_ids_which_stay_text(tmp_path):
    file = tmp_path / "subset.yaml"
    file.write_text("- 007bbfb7\n- 22168020  # a number to most readers of YAML\n- 00576224\n- 1e100000\n")
    assert parse_clauses(f"file={file}") == {"ids": ["007bbfb7", "22168020", "00576224", "1e100000"]}


def test_file_may_hold_clauses(tmp_path):
    file = tmp_path / "subset.yaml"
    file.write_text("ids: [a, b]\nmax_side: 10\nsame_shape: true\n")
    assert parse_clauses(f"file={file},first 1") == {
        "ids": ["a", "b"],
        "max_side": 10,
        "same_shape": True,
        "first": 1,
    }
    with pytest.raises(SubsetError, match="'max_side' comes twice"):
        parse_clauses(f"file={file},max_side=3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [", "not YAML"),
        (b"\xff\xfe\xff", "not YAML"),
        (b"[" * 1_000, "not YAML"),
        (b"!!python/object/apply:os.system {a: b}", "unknown clause 'a'"),  # a mapping: no tag makes an object
        (b"", "a subset is a list of ids"),
        (b"hello", "a subset is a list of ids"),
        (b"[]", "task ids with a plus"),
        (b"- [a]", "task ids with a plus"),
        (b"max_side: [1]", r"whole number in 1\.\.30"),
        (b"max_sid: 1", "did you mean 'max_side'"),
        (b"file: other.yaml", "in a name and not in such a file"),
    ],
)
def test_wrong_file_is_refused_by_name(tmp_path, content, message):
    file = tmp_path / "subset.yaml"
    file.write_bytes(content)
    with pytest.raises(SubsetError, match=message) as caught:
        parse_clauses(f"file={file}")
    assert str(file) in str(caught.value)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="give the path of a YAML file"):
        parse_clauses(f"file={tmp_path / 'none.yaml'}")
