"""What of the source no test ran is told, and too much of it is an error."""

import json

import pytest

from campaign.coverage import coverage_gaps


@pytest.fixture
def report(tmp_path):
    """Of two files: 19 of 20 lines ran, and 9 of 10 branches."""
    summary = lambda *numbers: dict(
        zip(("num_statements", "covered_lines", "num_branches", "covered_branches"), numbers, strict=True)
    )
    whole = {"summary": summary(10, 10, 4, 4), "missing_lines": [], "missing_branches": []}
    holed = {"summary": summary(10, 9, 6, 5), "missing_lines": [7], "missing_branches": [[6, 7]]}
    file = tmp_path / "coverage.json"
    files = {"src/whole.py": whole, "src/holed.py": holed}
    file.write_text(json.dumps({"meta": {"version": "7"}, "totals": summary(20, 19, 10, 9), "files": files}))
    return file


def test_files_with_gaps_are_named_and_enough_is_enough(report, capsys, tmp_path):
    assert coverage_gaps.main([str(report), "--json", str(tmp_path / "told.json")]) == 0
    told = capsys.readouterr().out
    assert "19 of 20 lines (95.00 %, at least 95 asked for), 9 of 10 branches (90.00 %, at least 90)" in told
    assert "whole.py" not in told
    assert [word in told for word in ("src/holed.py", "90.0 %", "83.3 %", "6 to 7")] == [True] * 4
    assert json.loads((tmp_path / "told.json").read_text())["percent"] == {"lines": 95.0, "branches": 90.0}


@pytest.mark.parametrize("option", ["--lines=95.1", "--branches=90.1"])
def test_too_little_coverage_is_an_error(report, capsys, option):
    assert coverage_gaps.main([str(report), option]) == 1
    assert "NOT enough" in capsys.readouterr().out


def test_neighboring_lines_are_told_as_spans():
    gaps = coverage_gaps._gaps({"missing_lines": [3, 4, 5, 9], "missing_branches": [[2, 3], [8, -1]]})
    assert gaps == ("3-5, 9", "2 to 3, 8 to the end")
