"""The pictures of ``docs/tasks.md`` show what is made now, and the page shows all of them."""

import re
import runpy
from pathlib import Path

import pytest

from jaxarc.tasks.procedural import procedural_names

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "images" / "tasks"


@pytest.fixture(scope="module")
def maker():
    return runpy.run_path(str(DOCS / "make_task_pictures.py"))


def test_the_files_are_what_is_drawn_now(maker):
    pictures = maker["make_pictures"]()
    drawn = {name: svg == (FOLDER / name).read_text(encoding="utf-8") for name, svg in pictures.items()}
    assert [name for name, is_equal in drawn.items() if not is_equal] == []
    elsewhere = {path.name for path in FOLDER.iterdir()} - set(pictures)
    assert elsewhere <= {"concept-arc-corpus.svg", "concept-arc-minimal.svg", "mini-arc.svg"}  # to be downloaded first


def test_the_page_shows_every_picture():
    shown = re.findall(r"\(images/tasks/([^)]+)\)", (DOCS / "tasks.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())


def test_every_rule_and_data_set_has_a_picture(maker):
    rules = {f"procedural-{name.partition('/')[2]}.svg" for name in procedural_names() if name != "procedural/all"}
    assert {path.name for path in FOLDER.iterdir()} == {
        "augmentation.svg",
        *rules,
        *(f"{n}.svg" for n in maker["DATASETS"]),
    }
