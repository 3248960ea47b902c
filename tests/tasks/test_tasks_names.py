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
    counts = "max_demonstrations=4,min_demonstrations=3,max_colors=5,min_colors=2"
    assert parse_clauses(f"{counts},output_fits_input") == {
        "max_demonstrations": 4,
        "min_demonstrations": 3,
        "max_colors": 5,
        "min_colors": 2,
        "output_fits_input": True,
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("frst 10", "'frst'.*'first'"),
        ("", "''"),
        ("first", "'first'.*''"),
        ("first 0", "'0'"),
        ("max_side=31", "'31'"),
        ("max_colors=11", "'11'"),
        ("same_shape=maybe", "'maybe'"),
        ("concept=", "concept"),
        ("ids=a++b", r"a\+\+b"),
        ("first 1,first 2", "'first'"),
    ],
)
def test_wrong_clause_is_refused_by_name(text, named):
    with pytest.raises(SubsetError, match=named):
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
    ("content", "named"),
    [
        (b"[" * 1_000, "YAML"),
        (b"!!python/object/apply:os.system {a: b}", "'a'"),  # a mapping: no tag makes an object
        (b"", "ids"),
        (b"- [a]", "ids"),
        (b"max_sid: 1", "'max_side'"),
        (b"file: other.yaml", "file"),
    ],
)
def test_wrong_file_is_refused_by_name(tmp_path, content, named):
    file = tmp_path / "subset.yaml"
    file.write_bytes(content)
    with pytest.raises(SubsetError, match=named) as caught:
        parse_clauses(f"file={file}")
    assert str(file) in str(caught.value)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="give the path of a YAML file"):
        parse_clauses(f"file={tmp_path / 'none.yaml'}")
