"""Write the table of docs/scaling.md from what `python benchmarks/measure.py scaling --json FILE` measured.

python docs/make_scaling.py FILE
"""

import argparse
import json
from pathlib import Path

PAGE = Path(__file__).parent / "scaling.md"
MEASURED = ("<!-- measured -->\n", "<!-- end of measured -->\n")


def replace_between(page, marks, text):
    before, rest = page.split(marks[0])
    return f"{before}{marks[0]}\n{text}\n{marks[1]}{rest.split(marks[1])[1]}"


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def measured_table(report):
    lines = ["| row | what | median | min – max | target |", "|---|---|---|---|---|"]
    for row in report["rows"]:
        target = "" if row["target"] is None else f"{row['target_is']} {row['target']:g}"
        missed = ", **missed**" if row["met"] is False else ""
        spread = "" if len(row["samples"]) == 1 else f"{number(row['min'])} – {number(row['max'])}"
        lines.append(
            f"| `{row['id']}` | {row['what']} | {number(row['value'])} {row['unit']} | {spread} | {target}{missed} |"
        )
    return f"{report['hardware']}, jax {report['versions']['jax']}\n\n" + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    report = json.loads(parser.parse_args().report.read_text())
    PAGE.write_text(replace_between(PAGE.read_text(), MEASURED, measured_table(report)))


if __name__ == "__main__":
    main()
