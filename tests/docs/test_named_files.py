"""Every file that a page, a docstring or a comment names is there; one that left may be named beside its commit."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "jaxarc"
PLACES = (ROOT, SOURCE, SOURCE / "native", ROOT / "docs", ROOT / "tests")
FOLDERS = {folder.name for place in PLACES for folder in place.iterdir() if folder.is_dir()} - {"runs"}  # of users
NAMED = re.compile(
    r"(?<![\w./:~<>-])(?:\.\./)*([\w-]+(?:/[\w.-]+)+\.(?:py|h|cc|js|yaml|json|npz|txt|md|toml))\b(?![/:(])"
)
AT_COMMIT = re.compile(r"commit `[0-9a-f]{7,40}`")
PAGES = [path for pattern in ("*.md", "docs/*.md", ".ci/*", "Makefile", "*.toml") for path in ROOT.glob(pattern)]
CODE = [path for place in ("src", "tests", "benchmarks", "docs", "examples") for path in (ROOT / place).rglob("*.py")]
CODE += [*SOURCE.rglob("*.h"), *SOURCE.rglob("*.cc")]


def missing_files(text: str) -> list[str]:
    """Names of files below a folder of the project that are not there, in lines that name no commit."""
    named = [name for line in text.splitlines() if not AT_COMMIT.search(line) for name in NAMED.findall(line)]
    return [name for name in named if name.split("/")[0] in FOLDERS and not any((at / name).exists() for at in PLACES)]


def prose_of(path: Path) -> str:
    """A page as it is; of code the comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return "\n".join([*re.findall(r'"""(.*?)"""', text, re.DOTALL), *re.findall(r"#.*", text)])
    return "\n".join(re.findall(r"//.*", text)) if path.suffix in {".h", ".cc"} else text


@pytest.mark.parametrize("path", [path for path in PAGES if path.name != "CHANGELOG.md"], ids=lambda path: path.name)
def test_the_files_that_a_page_names_are_there(path):
    assert missing_files(prose_of(path)) == []


def test_the_files_that_comments_and_docstrings_name_are_there():
    assert {str(path.relative_to(ROOT)): found for path in CODE if (found := missing_files(prose_of(path)))} == {}


def test_a_file_that_left_is_found_unless_its_commit_stands_beside_it():
    gone = "`envs/batch_rule.py` and `docs/no_page.md`"
    assert missing_files(f"see {gone}, `envs/state.py` and runs/NAME/config.json") == [
        "envs/batch_rule.py",
        "docs/no_page.md",
    ]
    assert missing_files(f"at commit `172e750`, {gone}") == []
