"""Samples in data frames, hidden values, and the graph of edge probabilities with its picture."""

from decimal import Decimal

import numpy as np
import pytest

from jaxarc.host_arrays import HiddenValuesError
from jaxarc.surrogate import acyclic_threshold, causal_graph, describe_samples
from jaxarc.tasks.raw_task import RawTask, TaskFormatError

NAMES = ("age", "smokes", "price")
VALUES = np.array([[1.0, 0, 2.5], [2, 1, 3.25], [4, 0, 1.0], [3, 1, 0.5]])


def test_columns_that_are_real_are_taken_whatever_holds_them():
    wanted = describe_samples(VALUES)
    columns = {
        "age": VALUES[:, 0].astype(int),
        "smokes": VALUES[:, 1] > 0,
        "price": [Decimal(str(price)) for price in VALUES[:, 2]],
    }
    np.testing.assert_array_equal(describe_samples(columns), wanted)
    structured = np.array([tuple(row) for row in VALUES], [(name, float) for name in NAMES])
    np.testing.assert_array_equal(describe_samples(structured), wanted)
    np.testing.assert_array_equal(describe_samples(VALUES.astype(object)), wanted)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    np.testing.assert_array_equal(describe_samples(frame), wanted)
    nullable = frame.astype({"age": "Int64", "smokes": "boolean"})
    np.testing.assert_array_equal(describe_samples(nullable), wanted)
    marks = pandas.DataFrame(VALUES > 9, columns=NAMES)
    np.testing.assert_array_equal(describe_samples(frame, marks), wanted)
    with pytest.raises(ValueError, match="is_set must have the columns of values"):
        describe_samples(frame, marks[["smokes", "age", "price"]])
    nullable.loc[2, "age"] = pandas.NA
    with pytest.raises((TypeError, ValueError), match="column 'age'"):  # NA or NaN, as pandas gives it
        describe_samples(nullable)


def test_what_a_mask_hides_is_refused_and_what_it_shows_is_taken():
    hidden = np.ma.array(VALUES, mask=VALUES == 4)
    for values in (hidden, list(hidden), {"x": hidden[:, 0], "y": VALUES[:, 1]}):
        with pytest.raises(HiddenValuesError, match="hides 1 of"):
            describe_samples(values)
    np.testing.assert_array_equal(describe_samples(np.ma.array(VALUES)), describe_samples(VALUES))
    grid = np.ma.array([[1, 2]], mask=[[False, True]])
    for given in (grid, [grid[0]], [[1, np.ma.masked]]):
        with pytest.raises(TaskFormatError, match="hides"):
            RawTask("a", ((given, [[1]]),), (([[1]], [[1]]),))


PROBABILITIES = np.array([[0, 0.9, 0.2], [0.6, 0, 0.8], [0.7, 0.1, 0]], np.float32)  # 0 -> 1 -> 2 -> 0, and 1 -> 0


def test_the_weakest_edges_leave_until_no_cycle_is_left():
    assert acyclic_threshold(PROBABILITIES) == pytest.approx(0.7)
    graph = causal_graph(PROBABILITIES, ["a", "b", "c"])
    assert [edge[:2] for edge in graph.edges] == [("a", "b"), ("b", "c")]
    assert graph.is_acyclic
    assert not causal_graph(PROBABILITIES, threshold=0.65).is_acyclic
    assert acyclic_threshold(np.triu(PROBABILITIES, 1)) == 0
    assert causal_graph(np.triu(PROBABILITIES, 1)).threshold == 0.5


def test_labels_of_a_data_frame_come_back_in_edges_and_in_the_picture(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PROBABILITIES, index=NAMES, columns=NAMES)
    graph = causal_graph(frame)
    assert graph.edges[0] == ("age", "smokes", pytest.approx(0.9))
    picture = graph.save(tmp_path / "graph.svg").read_text()
    assert all(f">{name}</text>" in picture for name in NAMES)
    assert picture.count("stroke-opacity") == 2
