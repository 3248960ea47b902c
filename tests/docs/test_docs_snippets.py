"""The Python blocks of the pages run as they stand: all blocks of a page in one namespace, from top to bottom."""

import os
import re
import sys
import types
from pathlib import Path

import jax
import pytest

from jaxarc.datasets import catalogue
from jaxarc.tasks.procedural import names
from jaxarc.utils.error_handling import JAXErrorHandler

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/guide.md",
    "docs/tasks.md",
    "docs/extending_tasks.md",
    "docs/evaluation.md",
    "docs/experts.md",
    "docs/replay.md",
    "docs/adapters.md",
    "docs/checking.md",
    "docs/scaling.md",
]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Line in the page and code of every block that is fenced as python."""
    return [(text.count("\n", 0, block.start(1)), block.group(1)) for block in BLOCK.finditer(text)]


def run_blocks(text: str, page: str) -> dict:
    """Execute the blocks; a traceback names the page and its line."""
    module = types.ModuleType("docs_page")
    sys.modules[module.__name__] = module  # classes that a block defines look for it
    try:
        for line, code in python_blocks(text):
            exec(compile("\n" * line + code, page, "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module.__dict__


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Work as a reader does: in a folder of one's own, with JAX's usual promotion; leave nothing behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(names, "_RULES", dict(names._RULES))
    monkeypatch.setattr(catalogue, "_REGISTERED", dict(catalogue._REGISTERED))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
    JAXErrorHandler.set_error_mode("default")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("page", PAGES)
def test_every_python_block_runs(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert python_blocks(text), f"{page} has no python block"
    run_blocks(text, page)


@pytest.mark.usefixtures("reader")
def test_blocks_for_stable_baselines_run_where_it_is_installed():
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed; pip install 'jaxarc[sb3]'")
    text = (ROOT / "docs/adapters.md").read_text(encoding="utf-8")
    assert "```py\nfrom stable_baselines3" in text
    run_blocks(text.replace("```py\n", "```python\n"), "docs/adapters.md")


def test_blocks_share_a_namespace_and_other_languages_are_left_out():
    text = "a\n```python\nx = 1\n```\n```bash\nexit 1\n```\n```python title='b'\ny = x + 1\n```\n```\nz = 1/0\n```\n"
    assert [line for line, _ in python_blocks(text)] == [2, 8]
    assert run_blocks(text, "page")["y"] == 2


def test_a_block_that_fails_names_its_page_and_line():
    with pytest.raises(ZeroDivisionError) as caught:
        run_blocks("# page\n\n```python\nx = 1\nx / 0\n```\n", "page.md")
    last = caught.traceback[-1]
    assert (str(last.path).endswith("page.md"), last.lineno + 1) == (True, 5)


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda path: path.name)
def test_links_lead_to_files(path):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []
