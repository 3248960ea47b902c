"""The pictures of three pages show what is made now, the pages show all of them, and there is one for each thing."""

import re
import runpy
from pathlib import Path

import pytest

from jaxarc.envs.structured_actions import OPERATION_NAMES
from jaxarc.tasks.procedural import procedural_names

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"operations": "operation", "tasks": "task", "experts": "trace"}  # page and folder -> program
DOWNLOADED = {"concept-arc-corpus.svg", "concept-arc-minimal.svg", "mini-arc.svg"}  # of sets that are not bundled


@pytest.mark.parametrize("page", PAGES)
def test_the_files_are_what_is_drawn_now_and_the_page_shows_all(page):
    folder = DOCS / "images" / page
    pictures = runpy.run_path(str(DOCS / f"make_{PAGES[page]}_pictures.py"))["make_pictures"]()
    assert [name for name, svg in pictures.items() if svg != (folder / name).read_text(encoding="utf-8")] == []
    there = {path.name for path in folder.iterdir()}
    assert there - set(pictures) <= DOWNLOADED
    shown = re.findall(rf"\(images/{page}/([^)]+)\)", (DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(there)


def test_every_operation_and_every_rule_of_a_generator_has_a_picture():
    numbers = {int(path.name[:2]) for path in (DOCS / "images" / "operations").glob("[0-9][0-9]_*.svg")}
    families = {0: range(10), 10: range(10, 20)}
    assert {operation for number in numbers for operation in families.get(number, [number])} == set(OPERATION_NAMES)
    rules = {f"procedural-{name.partition('/')[2]}.svg" for name in procedural_names() if name != "procedural/all"}
    assert rules <= {path.name for path in (DOCS / "images" / "tasks").iterdir()}
