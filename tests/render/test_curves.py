"""Pictures of learning: what stands in them is checked where it is drawn, the file where it lands."""

import matplotlib.axes
import numpy as np
import pytest

from jaxarc.render.figures import AxisLabels, BandedCurve, Panel, draw_comparison, draw_panels


@pytest.fixture
def lines(monkeypatch):
    """The lines that are drawn, as (x, y, label)."""
    drawn, plot = [], matplotlib.axes.Axes.plot

    def record(axes, x, y, *arguments, **options):
        drawn.append((list(x), [float(value) for value in y], options.get("label")))
        return plot(axes, x, y, *arguments, **options)

    monkeypatch.setattr(matplotlib.axes.Axes, "plot", record)
    return drawn


def panels(*offsets, nothing=None):
    solved = {"train": [[(0, 0.0), (10, 0.25 + offset)] for offset in offsets]}
    return [Panel("solved", solved, True), Panel("return", {"mean": [[(0, nothing), (10, 1.0)] for _ in offsets]})]


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG") and [each.name for each in path.parent.iterdir()] == [path.name]


def test_one_seed_is_one_line_a_column_without_the_points_that_were_not_measured(tmp_path, lines):
    draw_panels(panels(0.0), tmp_path / "curve.png", "title")
    assert is_png(tmp_path / "curve.png")
    assert lines == [([0, 10], [0.0, 0.25], "train"), ([10], [1.0], "mean")]


def test_several_seeds_are_a_line_each_and_their_mean(tmp_path, lines):
    draw_panels(panels(0.0, 0.5), tmp_path / "curve.png", "title")
    assert ([0, 10], [0.0, 0.25], None) in lines
    assert ([0, 10], [0.0, 0.75], None) in lines
    assert ([0, 10], [0.0, 0.5], "train") in lines


def test_a_number_that_is_not_finite_leaves_a_gap(tmp_path, lines):
    draw_panels(panels(0.0, nothing=float("nan")), tmp_path / "curve.png", "title")
    assert ([10], [1.0], "mean") in lines
    assert all(np.isfinite(y).all() for _, y, _ in lines)


def test_compared_curves_stand_beside_each_other_with_their_labels(tmp_path, lines):
    curves = [BandedCurve(f"{number}" * 100, [0, 1], [0, 0.5], [0, 0.4], [0, 0.6]) for number in range(9)]
    draw_comparison(curves, AxisLabels("steps", "solved", is_share=True), tmp_path / "compared.png")
    assert is_png(tmp_path / "compared.png")
    assert [label[:2] for _, _, label in lines] == [f"{number}{number}" for number in range(9)]
    assert all(len(label) == 90 for _, _, label in lines)
