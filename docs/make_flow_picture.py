"""Draw docs/pictures/flow.svg, how data flow through the package: python docs/make_flow_picture.py."""

from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

TARGET: Final = Path(__file__).parent / "pictures" / "flow.svg"
WIDTH: Final = 980
ROW: Final = 112  # from the top of one row to the next
BOX: Final = (148, 66)  # width, height
INK: Final = "#333333"
INKS: Final = {  # fill and border, from the colors of ARC; docs/dark_pictures.py has the fills of dark mode
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
        Box("ARC files", ("ARC-AGI-1 and 2,", "or your own folder"), "host", 0, 0),
        Box("task set", ("find, check,", "select tasks"), "host", 1, 0),
        Box("task buffer", ("on the device; or tasks", "from procedural rules"), "device", 2, 0),
        Box("reset", ("samples a pair,", "augments it"), "device", 3, 0),
        Box("step", ("one of 42 operations,", "reward, ending"), "device", 4, 0),
        Box("expert", ("sees the answer:", "painter, lookahead"), "learning", 0, 1),
        Box("traces", ("the expert's actions,", "recorded and checked"), "learning", 1, 1),
        Box("surrogate", ("predicts the expert's", "choice"), "learning", 2, 1),
        Box("agent", ("PPO, REINFORCE,", "or your own"), "learning", 3, 1),
        Box("rollout", ("many environments,", "on many devices"), "device", 4, 1),
        Box("pages, pictures", ("play, watch, replay,", "GIF, notebook"), "side", 0, 2),
        Box("score", ("attempts, votes,", "by the rules of ARC"), "learning", 1, 2),
        Box("trained agent", ("checkpoint,", "exact resume"), "learning", 2, 2),
        Box("training run", ("metrics, curriculum,", "checkpoints"), "learning", 3, 2),
        Box("other libraries", ("gymnax, Gymnasium,", "SB3, Stoa"), "side", 4, 2),
    )
}
ARROWS: Final = (
    ("ARC files", "task set"),
    ("task set", "task buffer"),
    ("task buffer", "reset"),
    ("reset", "step"),
    ("step", "rollout"),
    ("expert", "traces"),
    ("traces", "surrogate"),
    ("rollout", "agent"),
    ("rollout", "other libraries"),
    ("agent", "training run"),
    ("training run", "trained agent"),
    ("surrogate", "trained agent"),
    ("trained agent", "score"),
    ("score", "pages, pictures"),
    ("expert", "pages, pictures"),
)


def draw() -> str:
    """Return the picture as SVG."""
    height = 64 + 2 * ROW + BOX[1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" '
        'role="img" aria-label="How data flow through jaxarc">',
        f"<rect width='{WIDTH}' height='{height}' rx='8' fill='#ffffff'/>",
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="7" refY="3.5" orient="auto">'
        '<path d="M0,0 L7,3.5 L0,7 z" fill="#888888"/></marker></defs>',
    ]
    legend = (("host", "on the host, once"), ("device", "on the device, compiled"), ("learning", "what learns"))
    for place, (kind, text) in enumerate((*legend, ("side", "to look at, to connect"))):
        fill, border = INKS[kind]
        x = 24 + place * 187
        parts.append(f'<rect x="{x}" y="14" width="12" height="12" rx="2" fill="{fill}" stroke="{border}"/>')
        parts.append(f'<text x="{x + 18}" y="25" font-size="12.5" fill="{INK}">{escape(text)}</text>')
    parts += [_arrow(BOXES[start], BOXES[end]) for start, end in ARROWS]
    parts += [_box(box) for box in BOXES.values()]
    return "\n".join([*parts, "</svg>\n"])


def _box(box: Box) -> str:
    fill, border = INKS[box.kind]
    x, (width, height) = box.middle[0], BOX
    lines = [
        f'<text x="{x}" y="{box.top + 20}" font-weight="600" font-size="13.5" fill="{INK}">{escape(box.name)}</text>'
    ]
    for place, text in enumerate(box.says):
        lines.append(f'<text x="{x}" y="{box.top + 38 + 16 * place}" font-size="12" fill="{INK}">{escape(text)}</text>')
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
    return f'<line {line} stroke="#888888" stroke-width="1.5" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")
