"""The pictures of ``docs/operations.md`` show what the environment does now, and the page shows all of them."""

import re
import runpy
from pathlib import Path

import pytest

from jaxarc.envs.structured_actions import OPERATION_NAMES

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "images" / "operations"


@pytest.fixture(scope="module")
def pictures() -> dict[str, str]:
    return runpy.run_path(str(DOCS / "make_operation_pictures.py"))["make_pictures"]()


def test_the_files_are_what_the_environment_draws(pictures):
    drawn = {name: svg == (FOLDER / name).read_text(encoding="utf-8") for name, svg in pictures.items()}
    assert [name for name, is_equal in drawn.items() if not is_equal] == []
    assert {path.name for path in FOLDER.iterdir()} == set(pictures)


def test_the_page_shows_every_picture():
    shown = re.findall(r"\(images/operations/([^)]+)\)", (DOCS / "operations.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())


def test_every_operation_has_a_picture():
    numbers = {int(path.name[:2]) for path in FOLDER.glob("[0-9][0-9]_*.svg")}
    families = {0: range(10), 10: range(10, 20)}
    assert {operation for number in numbers for operation in families.get(number, [number])} == set(OPERATION_NAMES)
