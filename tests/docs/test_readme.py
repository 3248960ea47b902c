"""What the README shows is what the pages and examples that it names show."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_can_be_read_in_one_sitting(readme):
    assert len(readme.splitlines()) <= 200


def test_its_compiled_example_is_the_program_quickstart(readme):
    code = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[-1]
    assert (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8").partition('"""\n\n')[2] == code
