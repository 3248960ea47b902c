"""The pictures of ``docs/experts.md`` show what experts do now, and the page shows all of them."""

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "images" / "experts"


def test_the_files_are_what_is_drawn_now():
    pictures = runpy.run_path(str(DOCS / "make_trace_pictures.py"))["make_pictures"]()
    drawn = {name: svg == (FOLDER / name).read_text(encoding="utf-8") for name, svg in pictures.items()}
    assert [name for name, is_equal in drawn.items() if not is_equal] == []
    assert {path.name for path in FOLDER.iterdir()} == set(pictures)


def test_the_page_shows_every_picture():
    shown = re.findall(r"\(images/experts/([^)]+)\)", (DOCS / "experts.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())
