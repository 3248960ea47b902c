"""Write docs/results.md: every table of benchmarks/results/, with the command that prints it.

python docs/make_results.py
"""

import json
from pathlib import Path

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
SECTIONS = (
    "environment",
    "peer_tables",
    "baselines",
    "training",
    "surrogates",
    "interfaces",
    "search",
    "scaling",
    "accelerators",
    "pages",
)
HEAD = """# Results

Every measurement of this project, with the command that repeats it. `python docs/make_results.py` writes this page from
the files of `benchmarks/results/`. Tables are of different days and machines, so compare within one only. A shared
machine varies by a fifth from run to run: trust ratios of one run, and repeat a figure on your own machine.

Tables that name JAX 0.10.2, and the learning figures on other pages, were made with a JAX that
[computes some wrong numbers](install.md#sound-numbers). The programs here do not show it. `ladder_l2_small` was trained
with 0.10.2, with 0.10.2 without its wrong fusions, and with 0.11.2. Losses agree to rounding in the first twelve
updates, and all three solve 99.7 % of the training pairs and 100 % of the unseen ones.
"""


def results_page() -> str:
    parts = [HEAD]
    for name in SECTIONS:
        section = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        parts.append(f"## {section['section']}\n")
        parts.extend(table_text(table) for table in section["tables"])
    return "\n".join(parts)


def table_text(table: dict) -> str:
    lines = [f"### {table['title']}", ""]
    if "commit" in table:  # the program is gone since
        lines += [f"Its program is in the repository at commit `{table['commit']}`: `{table['command']}`.", ""]
    else:
        lines += ["```bash", table["command"], "```", ""]
    if table["measured"]:
        lines += [table["measured"], ""]
    lines += [row_text(table["columns"]), "|" + "---|" * len(table["columns"])]
    lines += [row_text(row) for row in table["rows"]]
    for note in table.get("notes", ()):
        lines += ["", note]
    return "\n".join(lines) + "\n"


def row_text(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    (DOCS / "results.md").write_text(results_page(), encoding="utf-8")
