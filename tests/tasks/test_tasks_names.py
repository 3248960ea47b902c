"""The grammar of names: versions and subsets."""

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
    text = "first 10, max_side=8,min_side=2 ,same_shape,concept=Above Below,ids=a+b,without=c"
    assert parse_clauses(text) == {
        "first": 10,
        "max_side": 8,
        "min_side": 2,
        "same_shape": True,
        "concept": "Above Below",
        "ids": ["a", "b"],
        "without": ["c"],
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
