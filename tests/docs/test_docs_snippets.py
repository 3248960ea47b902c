"""The Python blocks of the pages run as they stand: all blocks of a page in one namespace, from top to bottom."""

import ast
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import jax
import pytest

from jaxarc.datasets import catalogue
from jaxarc.tasks.procedural import names
from jaxarc.utils.error_handling import JAXErrorHandler

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|py)\b[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)  # py: not to be run everywhere
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
}
PROFILING = "docs/performance.md"  # sets a cache of compiled programs up, so it has a process of its own


def python_blocks(text: str, fence: str = "python") -> list[tuple[int, str]]:
    """Line in the page and code of every block with such a fence."""
    blocks = [block for block in BLOCK.finditer(text) if block.group(1) == fence]
    return [(text.count("\n", 0, block.start(2)), block.group(2)) for block in blocks]


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
    monkeypatch.setattr(names, "registered", {})
    monkeypatch.setattr(catalogue, "_REGISTERED", dict(catalogue._REGISTERED))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
    JAXErrorHandler.set_error_mode("default")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if python_blocks(text) and page != PROFILING])
def test_every_python_block_runs(page):
    if "import gymnax" in PAGES[page]:
        pytest.importorskip("gymnax")  # it allows no JAX after 0.11
    namespace = run_blocks(PAGES[page], page)
    assigned = {
        target.id
        for _, code in python_blocks(PAGES[page])
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert assigned <= namespace.keys()


def test_every_python_block_of_profiling_runs_in_a_process_of_its_own(tmp_path):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    code = "\n".join(code for _, code in python_blocks(PAGES[PROFILING]))
    jax_08 = "ignore:jax.core:DeprecationWarning"  # equinox asks for what it deprecates, as pyproject.toml says
    command = [sys.executable, "-W", "error", "-W", jax_08, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    counted = done.stdout[done.stdout.index("Counter({'double': 1})") :]
    told = r"now f32\[4\].* and before f32\[200,200\]" if jax.__version_info__ >= (0, 10) else "JAX logged no reason"
    assert re.search(told, counted)
    assert (tmp_path / "runs" / "memory.prof").is_file()
    assert list((tmp_path / "cache" / "jaxarc" / "compiled").iterdir())


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if python_blocks(text, "py")])
def test_blocks_that_do_not_run_everywhere_import_what_exists(page):
    for line, code in python_blocks(PAGES[page], "py"):
        tree = ast.parse("\n" * line + code)
        tree.body = [
            node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module.startswith("jaxarc")
        ]
        namespace: dict[str, object] = {}
        exec(compile(tree, page, "exec"), namespace)
        assert {alias.asname or alias.name for node in tree.body for alias in node.names} <= namespace.keys()


@pytest.mark.usefixtures("reader")
def test_blocks_for_stable_baselines_run_where_it_is_installed():
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed; pip install stable-baselines3")
    pytest.importorskip("moviepy", reason="moviepy is not installed; pip install moviepy")
    text = PAGES["docs/adapters.md"]
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


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[page])
    assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []
