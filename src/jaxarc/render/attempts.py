"""Attempts beside answers: a page with a card for each task.

It shows small pictures of grids, framed in green where they are right and in red where they are wrong, in one HTML file
without scripts that loads nothing, so it can be mailed or kept.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int8
from PIL import Image

from jaxarc.files import write_whole
from jaxarc.render import pixels
from jaxarc.render.palette import ARC_COLORS, rgb

_LINE: Final = len(ARC_COLORS)  # palette entry of the lines between cells
_LEAST_CELL_WITH_LINES: Final = 4  # pixels
_CARD_SIDE: Final = 90  # pixels of the longest side of a grid on the page
_WORDS: Final = {"solved": "solved", "partly": "solved in part", "unsolved": "not solved", "unknown": "answer unknown"}

MISSED: Final = {
    "limit": "a limit was reached before a program explained a demonstration",
    "none": "no program explains a demonstration",
    "some": "programs explain some demonstrations",
    "all": "a program explains all demonstrations, and its answer is wrong",
    "error": "an error",
}
"""Why an output is not solved."""

Grid = Int8[np.ndarray, "h w"]


class AttemptedTask(NamedTuple):
    """A task, and what was submitted for its test inputs."""

    task_id: str
    demonstrations: Sequence[tuple[Grid, Grid]]  # input, output
    tests: Sequence[tuple[Grid, Grid]]  # input, answer; an unknown answer has no cell
    attempts: Sequence[Sequence[Grid]]  # at each test input
    note: str = ""  # in words, such as the programs that were found
    error: str = ""  # of a solver
    missed: str = ""  # a key of MISSED, where an output is not solved and the reason is known

    @property
    def rights(self) -> list[bool]:
        """Whether any attempt at each test output is right."""
        return [
            any(np.array_equal(grid, answer) for grid in grids)
            for grids, (_, answer) in zip(self.attempts, self.tests, strict=True)
        ]

    @property
    def outcome(self) -> str:
        """``solved``, ``partly``, ``unsolved`` or ``unknown``."""
        if not all(answer.size for _, answer in self.tests):
            return "unknown"
        if all(self.rights):
            return "solved"
        return "partly" if any(self.rights) else "unsolved"

    @property
    def solved_share(self) -> str:
        """``1/2`` where one of two test outputs is solved."""
        return "" if self.outcome == "unknown" else f"{sum(self.rights)}/{len(self.rights)}"


def write_attempts_page(tasks: Sequence[AttemptedTask], path: Path, title: str) -> None:
    """Write a card for each task into an HTML file, whole: test inputs, attempts, answers, demonstrations."""
    filters = _filters(_WORDS, [task.outcome for task in tasks])
    if any(task.missed for task in tasks):
        filters += f"<b>Missed, since</b>{_filters(MISSED, [task.missed for task in tasks])}"
    page = files("jaxarc.render") / "page"
    html = (page / "attempts.html").read_text(encoding="utf-8")
    parts = {"title": escape(title), "filters": filters, "cards": "\n".join(map(_card, tasks))}
    for name, text in parts.items():
        html = html.replace(f"<!--{name}-->", text)
    write_whole(path, html.encode())


def _filters(words: Mapping[str, str], found: Sequence[str]) -> str:
    """Make a check box for each word that tasks have; without one, a rule of the page hides these tasks."""
    counts = {name: found.count(name) for name in words}
    return "".join(
        f'<label><input type="checkbox" id="{name}" checked> {words[name]} ({count:,})</label>'
        for name, count in counts.items()
        if count
    )


def _card(task: AttemptedTask) -> str:
    tests = "".join(
        _row(
            [
                _figure(source, "test input" if len(task.tests) == 1 else f"test input {index}", side=_side(grids)),
                *(_figure(grid, f"attempt {i}", _frame_of(grid, answer), _side(grids)) for i, grid in enumerate(of, 1)),
                _figure(answer, "answer", side=_side(grids)),
            ]
        )
        for index, ((source, answer), of) in enumerate(zip(task.tests, task.attempts, strict=True))
        for grids in [[source, answer, *of]]
    )
    side = _side(list(chain.from_iterable(task.demonstrations)))
    shown = "".join(
        _row([_figure(source, "input", side=side), _figure(target, "output", side=side)])
        for source, target in task.demonstrations
    )
    name = escape(task.task_id)
    missed = MISSED.get(task.missed, "")
    notes = "".join(
        f'<p class="{kind}">{escape(text)}</p>'
        for kind, text in (("missed", missed), ("error", task.error), ("note", task.note))
        if text
    )
    classes = f"{task.outcome} missed-{task.missed}" if task.missed else task.outcome
    return (
        f'<article class="{classes}" id="task-{name}">'
        f"<h2>{name} <small>{task.solved_share}</small></h2>{tests}{notes}"
        f"<details><summary>{len(task.demonstrations)} demonstrations</summary>{shown}</details></article>"
    )


def _row(figures: Iterable[str]) -> str:
    return f'<div class="row">{"".join(figures)}</div>'


def _figure(grid: Grid, caption: str, frame: str = "", side: int = 1) -> str:
    """Draw a grid, ``side`` pixels a cell; a grid without cells is a question mark."""
    if not grid.size:
        return f'<figure><span class="unknown">?</span><figcaption>{caption}</figcaption></figure>'
    image = _image(grid, side)
    size = "{}x{}".format(*grid.shape)
    source = f"data:image/png;base64,{base64.b64encode(pixels.to_png(image, optimize=True)).decode()}"
    picture = (
        f'<img class="{frame}" src="{source}" width="{image.width}" height="{image.height}" alt="{caption}, {size}">'
    )
    return f"<figure>{picture}<figcaption>{caption}<br>{size}</figcaption></figure>"


def _frame_of(grid: Grid, answer: Grid) -> str:
    if not answer.size:
        return ""
    return "right" if np.array_equal(grid, answer) else "wrong"


def _side(grids: Sequence[Grid]) -> int:
    """Pixels of a cell, so that the longest side of all grids has at most 90."""
    return max(1, min(_CARD_SIDE // max(max(grid.shape) for grid in grids), 12))


def _image(grid: Grid, side: int) -> Image.Image:
    """Draw a grid with a palette, ``side`` pixels a cell, the last of them a line where there is room for it."""
    # The product repeats each cell side x side times: with side 2 the row 3 5 becomes the rows 3 3 5 5 and 3 3 5 5.
    cells = np.kron(grid, np.ones((side, side), np.int8)).astype(np.uint8)
    if side >= _LEAST_CELL_WITH_LINES:
        cells[side - 1 : -1 : side] = _LINE
        cells[:, side - 1 : -1 : side] = _LINE
    image = Image.fromarray(cells, "P")
    image.putpalette(bytes(chain.from_iterable(map(rgb, (*ARC_COLORS, "#555555")))))
    return image
