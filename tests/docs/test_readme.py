"""What the README shows is what the pages and examples that it names show."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def with_tables():
    return runpy.run_path(str(ROOT / "docs" / "make_readme_tables.py"))["with_tables"]


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_pages(with_tables, readme):
    assert with_tables(readme) == readme, "run: python docs/make_readme_tables.py"


@pytest.mark.parametrize("figure", ["ladder_l1_plain", "ladder_l2_small"])
def test_a_table_that_differs_is_replaced(with_tables, readme, figure):
    (line,) = [line for line in readme.splitlines() if figure in line and line.startswith("|")]
    assert with_tables(readme.replace(line, "| made | up |")) == readme


def test_it_can_be_read_in_one_sitting(readme):
    assert len(readme.splitlines()) <= 200


def test_its_compiled_example_is_the_program_quickstart(readme):
    code = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[-1]
    assert (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8").partition('"""\n\n')[2] == code
