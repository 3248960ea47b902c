"""Copy tables of the pages into the README, so that each has one source.

    python docs/make_readme_tables.py

``docs/make_ladder.py`` writes the page. The README holds the first table between the page's two marks, between the same
marks.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
TABLES = {  # page: the marks around its table
    "learning.md": ("<!-- results -->\n", "<!-- end of results -->\n"),
}
FIRST_TABLE = re.compile(r"(?:[^|\n].*\n|\n)*(?:\|.*\n)+")  # what stands above it, and its lines


def with_tables(readme: str) -> str:
    """Return the README with the tables as they stand in the pages now."""
    for page, (begin, end) in TABLES.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        table = FIRST_TABLE.match(text.split(begin)[1].split(end)[0])
        if table is None:
            raise SystemExit(f"docs/{page} has no table behind {begin.strip()}")
        before, rest = readme.split(begin)
        readme = before + begin + table.group() + end + rest.split(end)[1]
    return readme


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
