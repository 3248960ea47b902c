"""The table of graphs in ``docs/surrogate.md`` has the figures of ``benchmarks/results/graphs.json``."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_measured_table():
    script = runpy.run_path(str(DOCS / "make_graphs.py"))
    assert script["table"](script["read_groups"]()) in (DOCS / "surrogate.md").read_text(encoding="utf-8")
