"""Write the table of graphs in docs/surrogate.md, and draw its figure, from what `make benchmark-graphs` measured.

python docs/make_graphs.py
"""

import io
import json
import statistics
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

DOCS = Path(__file__).parent
PAGE = DOCS / "surrogate.md"
PICTURE = DOCS / "images" / "graphs.svg"
RESULTS = DOCS.parent / "benchmarks" / "results" / "graphs.json"
MEASURED = ("<!-- graphs -->\n", "<!-- end of graphs -->\n")
KINDS = ("observational", "interventional")
INK = "#767e89"  # a mid-tone on no background, which reads on white and on black
LOOKS = {  # methods of the figure: color and style of their lines
    "surrogate": ("#2f81f7", "-"),
    "AVICI, same time": ("#a05ee6", "--"),
    "AVICI, 10 times": ("#a05ee6", "-"),
    "GES": ("#e8702a", "-"),
    "PC": ("#e8702a", "--"),
}


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


def draw(groups):
    """Draw AUROC against the number of variables: mechanisms side by side, kinds of samples below each other."""
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 10, "text.color": INK, "svg.hashsalt": "graphs"}):
        figure = Figure(figsize=(8.4, 5.6))
        figure.patch.set_alpha(0)
        grid = figure.subplots(2, 2, sharex=True, sharey=True)
        for row, kind in zip(grid, KINDS, strict=True):
            for axes, mechanism in zip(row, ("linear", "nonlinear"), strict=True):
                draw_panel(axes, [g for g in groups if g["structural_models"]["mechanism"] == mechanism], kind)
                axes.set_title(f"{mechanism}, {kind}", color=INK, fontsize=10)
        for axes in grid[1]:
            axes.set_xlabel("variables", color=INK)
        for axes in grid[:, 0]:
            axes.set_ylabel("AUROC", color=INK)
        handles = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
        named = {name: handles[name] for name in LOOKS if name in handles}
        figure.legend(named.values(), named.keys(), loc="upper center", ncols=len(named), frameon=False, labelcolor=INK)
        figure.tight_layout(rect=(0, 0, 1, 0.94))
        drawn = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(drawn, metadata={"Date": None})
    PICTURE.write_bytes(drawn.getvalue())


def draw_panel(axes, groups, kind):
    sizes = sorted({group["structural_models"]["num_variables"] for group in groups})
    by_size = {group["structural_models"]["num_variables"]: by_method(group) for group in groups}
    for method, (color, style) in LOOKS.items():
        points = {
            size: [result[kind]["auroc"] for result in by_size[size][method]]
            for size in sizes
            if method in by_size[size]
        }
        if not points:
            continue
        means = [statistics.fmean(values) for values in points.values()]
        axes.plot([*points], means, color=color, linestyle=style, marker="o", markersize=4, label=method)
        for size, values in points.items():
            axes.plot([size] * len(values), values, "_", color=color, markersize=9)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.patch.set_alpha(0)
    axes.tick_params(colors=INK)
    axes.grid(color=INK, alpha=0.25)
    for spine in axes.spines.values():
        spine.set_color(INK)


def main():
    groups = json.loads(RESULTS.read_text(encoding="utf-8"))
    order = {"linear": 0, "nonlinear": 1}
    groups.sort(key=lambda g: (order[g["structural_models"]["mechanism"]], g["structural_models"]["num_variables"]))
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(MEASURED[0])
    PAGE.write_text(f"{before}{MEASURED[0]}\n{table(groups)}\n{MEASURED[1]}{rest.split(MEASURED[1])[1]}", "utf-8")
    draw(groups)


if __name__ == "__main__":
    main()
