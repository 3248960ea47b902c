"""The site shows a dark variant of each drawing; needs mkdocs, which only the docs extra installs."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

files_of = pytest.importorskip("mkdocs.structure.files", reason="no mkdocs here; pip install mkdocs")

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = {"words.svg": ("#333333", "#dfe3ea"), "00_fill.svg": ("#f3f3f3", "#2b303b")}


def test_a_page_shows_a_light_and_a_dark_picture():
    hook = runpy.run_path(str(DOCS / "dark_pictures.py"))
    files = files_of.Files([])
    plugins = SimpleNamespace(_current_plugin="hook")
    config = SimpleNamespace(plugins=plugins, site_dir="site", docs_dir="docs", use_directory_urls=True)
    for name in SHOWN:
        text = (DOCS / "images" / "operations" / name).read_text(encoding="utf-8")
        files.append(files_of.File.generated(config, f"images/operations/{name}", content=text))
    added = {file.name: file.content_string for file in hook["on_files"](files, config) if "-dark" in file.name}
    for name, (light, dark) in SHOWN.items():
        text = added[f"{name.removesuffix('.svg')}-dark"]
        ElementTree.fromstring(text)
        assert (light in text, dark in text) == (False, True)
    html = '<img alt="a" src="../images/operations/words.svg" /><img alt="b" src="../images/speed.svg" />'
    assert hook["on_page_content"](html, files=files) == (
        '<img alt="a" src="../images/operations/words.svg#only-light" />'
        '<img alt="a" src="../images/operations/words-dark.svg#only-dark" /><img alt="b" src="../images/speed.svg" />'
    )
