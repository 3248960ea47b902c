"""Tables on a narrow terminal: cells take several lines, and nothing is cut."""

import io

import pytest
from rich.console import Console

from jaxarc.cli.console import number_table


@pytest.mark.parametrize("width", [30, 40, 60])
def test_no_name_and_no_number_is_cut(width):
    table = number_table("dataset", "tasks", "where")
    cells = ["arc-agi-1/evaluation@kaggle2024", "1,234,567", "/home/somebody/a_long_name_of_a_folder"]
    table.add_row(*cells)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table)
    rows = [line.split("│")[1:-1] for line in console.export_text().splitlines() if line.startswith("│")]
    assert ["".join(part.strip() for part in column) for column in zip(*rows, strict=True)] == cells
