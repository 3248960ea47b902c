"""Write docs/results.md: every table of benchmarks/results/, with the command that prints it.

python docs/make_results.py
"""

import json
import re
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

Measurements of this project, each with the command that repeats it. These ten matter most:

{key_figures}

`python docs/make_results.py` writes this page from `benchmarks/results/`. Compare within one table only: machines
differ, are shared, and vary by a fifth from run to run.

Tables that name JAX 0.10.2, and the learning figures on other pages, were made with a JAX that
[computes some wrong numbers](install.md#sound-numbers). `ladder_l2_small` does not show it: trained with 0.10.2 and
with 0.11.2, it solves 99.7 % of the training pairs and 100 % of the unseen ones.
"""
PEERS = ("peer_tables", "Many environments", "steps of 1,024")
FREEZE = ("search", "Four freezes")
KEY_FIGURES = (  # what it is; section, table and row, each by the beginning of its name; column
    ("Steps per second on one core: 1,024 environments, 30x30, random box actions", *PEERS, 1),
    ("JaxARC under `vmap`, and how many times as fast jaxarc is", *PEERS, 2),
    ("JaxARC in its best mode", *PEERS, 4),
    ("Steps per second while PPO learns: 5x5, 256 environments", "training", "Shares", "with learning", 1),
    ("1,024 Gymnasium environments, box actions, steps per second", "interfaces", "1,024", "`NextStep`", 2),
    ("Two cores over one", "scaling", "Devices", "`speedup-2`", 2),
    ("The compiled train step of a surrogate over the plain one", "surrogates", "The compiled", "`speedup", 1),
    (
        "Hidden answers of ARC-AGI-1's evaluation: outputs that the search solves in ten minutes",
        *FREEZE,
        "arc-agi-1/ev",
        1,
    ),
    ("The same with an hour allowed", *FREEZE, "arc-agi-1/evaluation, an hour", 1),
    ("The same of ARC-AGI-2's evaluation", *FREEZE, "arc-agi-2", 1),
)


def results_page() -> str:
    sections = {name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in SECTIONS}
    parts = [HEAD.format(key_figures="\n".join(key_figures(sections)))]
    for section in sections.values():
        parts.append(f"## {section['section']}\n")
        parts.extend(table_text(table) for table in section["tables"])
    return "\n".join(parts)


def key_figures(sections: dict[str, dict]) -> list[str]:
    lines = [row_text(["Figure", "Of what"]), "|---|---|"]
    for what, section, title, row_name, column in KEY_FIGURES:
        table = next(table for table in sections[section]["tables"] if table["title"].startswith(title))
        row = next(row for row in table["rows"] if row[0].startswith(row_name))
        anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", table["title"]).lower())
        lines.append(row_text([f"[{row[column].strip('*')}](#{anchor})", what]))
    return lines


def table_text(table: dict) -> str:
    lines = [f"### {table['title']}", ""]
    if "commit" in table:  # the program is gone since
        lines += [f"At commit `{table['commit']}`: `{table['command']}`.", ""]
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
