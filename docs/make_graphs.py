"""Write the table of graphs in docs/surrogate.md from what `make benchmark-graphs` measured.

python docs/make_graphs.py
"""

import json
import statistics
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "surrogate.md"
RESULTS = DOCS.parent / "benchmarks" / "results" / "graphs.json"
MEASURED = ("<!-- graphs -->\n", "<!-- end of graphs -->\n")
KINDS = ("observational", "interventional")


def method_of(result):
    """Return a method's name: seeds of the surrogate share one."""
    name = result["method"].partition(",")[0]
    if name != "avici":
        return {"pc": "PC", "ges": "GES"}.get(name, name)
    return "AVICI, same time" if result["times"] == 1 else f"AVICI, {result['times']:g} times"


def by_method(group):
    """Group the results of one kind of structural models by method, in order."""
    methods = {}
    for result in group["results"]:
        methods.setdefault(method_of(result), []).append(result)
    return methods


def spread(values, digits):
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.{digits}f} – {max(values):.{digits}f})"


def table(groups):
    lines = [
        "| d, mechanism | Method | AUROC, obs. | AUROC, int. | Expected SHD, obs. | Expected SHD, int. | "
        "Right at 0.5, %, obs. | Right at 0.5, %, int. | Training |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for group in groups:
        models = group["structural_models"]
        for method, results in by_method(group).items():
            numbers = [
                spread([factor * result[kind][field] for result in results], digits)
                for field, factor, digits in (("auroc", 1, 3), ("expected_shd", 1, 2), ("edge_accuracy", 100, 1))
                for kind in KINDS
            ]
            learned = results[0].get("train_examples")
            trained = f"{results[0]['train_seconds']:.0f} s, {learned:,} models" if learned else "–"
            name = f"**{method}**, {len(results)} seeds" if method == "surrogate" else method
            cells = f"{models['num_variables']}, {models['mechanism']}", name, *numbers, trained
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def read_groups():
    """Read the results, one group for each kind of structural models, in the order of the table."""
    groups = json.loads(RESULTS.read_text(encoding="utf-8"))
    return sorted(
        groups, key=lambda group: [group["structural_models"][name] for name in ("mechanism", "num_variables")]
    )


def main():
    before, rest = PAGE.read_text(encoding="utf-8").split(MEASURED[0])
    after = rest.split(MEASURED[1])[1]
    PAGE.write_text(f"{before}{MEASURED[0]}\n{table(read_groups())}\n{MEASURED[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
