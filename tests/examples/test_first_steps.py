"""The notebook runs from its first cell to its last, and draws what it shows."""

import ast
import json
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"


def run_cell(source, namespace):
    """Run a cell as a notebook does, and return the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


def picture_of(value):
    methods = [name for name in ("_repr_html_", "_repr_svg_") if name in dir(value)]
    return "".join(getattr(value, name)() or "" for name in methods)


def test_every_cell_runs_and_the_last_values_are_drawn(capsys):
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    namespace = {"__name__": "__main__"}
    values = [run_cell("".join(cell["source"]), namespace) for cell in cells if cell["cell_type"] == "code"]
    shown = [picture_of(value) for value in values if value is not None]
    assert len(shown) == 5
    assert all("<svg" in picture for picture in shown)
    printed = capsys.readouterr().out
    assert "similarity 0.78, done" not in printed
    assert "solved)" in printed
    assert "102,400 steps" in printed
