"""Draw the pictures of ``docs/tasks.md``: a task of every data set, augmented ones, and one of every procedural rule.

The README's table of data sets shows a pair of some of them.

Run ``python docs/make_task_pictures.py`` after a change to a rule or to augmentation; a test compares the files with
what is made now. Data sets that have to be downloaded are drawn where they are installed, and left as they are
elsewhere.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.datasets import load_tasks, sample_task_set
from jaxarc.datasets.installed import NotInstalledError
from jaxarc.files import write_whole
from jaxarc.render.svg import Drawing, captioned, draw_arrow, draw_grid, draw_text, hstack, vstack
from jaxarc.tasks import RawTask
from jaxarc.tasks.augmentation import Augmentation, augment_grid
from jaxarc.tasks.procedural import procedural_names, procedural_tasks

FOLDER: Final = Path(__file__).parent / "images" / "tasks"
THUMBNAIL_FOLDER: Final = FOLDER.with_name("thumbnails")
DATASETS: Final = {  # name of the picture: data set and task
    "arc-agi-1-training": ("arc-agi-1/training", "bdad9b1f"),
    "arc-agi-1-evaluation": ("arc-agi-1/evaluation", "66e6c45b"),
    "arc-agi-2-training": ("arc-agi-2/training", "a85d4709"),
    "arc-agi-2-evaluation": ("arc-agi-2/evaluation", "38007db0"),
    "concept-arc-corpus": ("concept-arc/corpus", "AboveBelow1"),
    "concept-arc-minimal": ("concept-arc/minimal", "CopyMinimal"),
    "mini-arc": ("mini-arc", "l6ab0lf3xztbyxsu3p"),
}
THUMBNAILS: Final = {  # name of the picture: data set and task, of which the first pair is drawn
    "arc-agi-1": ("arc-agi-1/training", "bdad9b1f"),
    "arc-agi-2": ("arc-agi-2/training", "a85d4709"),
    "concept-arc": ("concept-arc/minimal", "CopyMinimal"),
    "mini-arc": ("mini-arc", "l6ab0lf3xztbyxsu3p"),
}
PICTURE_WIDTH: Final = 900  # pixels that a picture should not exceed
SMALL: Final = {  # rules about whole pictures of random colors: on few cells one sees where each of them goes
    *("rotate", "flip-left-right", "flip-up-down", "transpose", "geometric", "color-map"),
}
SYMMETRIES: Final = (
    "as it is",
    "up-down",
    "left-right",
    "both",
    "diagonal",
    "and up-down",
    "and left-right",
    "and both",
)


def make_pictures() -> dict[str, str]:
    """Draw what can be drawn here: file names and their SVG."""
    pictures = {f"procedural-{name.partition('/')[2]}.svg": _procedural(name) for name in _drawn_rules()}
    pictures["augmentation.svg"] = _augmentation()
    for picture, (dataset, task_id) in DATASETS.items():
        try:
            task = load_tasks(dataset).raw_task(task_id)
        except NotInstalledError:
            continue
        pictures[f"{picture}.svg"] = draw_task(task).to_svg(f"Task {task.title or task_id} of {dataset}")
    return pictures


def make_thumbnails() -> dict[str, str]:
    """Draw one pair of a task of the data sets that are here, and of a procedural rule."""
    generated = sample_task_set(procedural_tasks("procedural/fill-enclosed", (10, 10)), jax.random.key(4), 1)
    chosen = {"procedural": next(iter(generated))}
    for picture, (dataset, task_id) in THUMBNAILS.items():
        try:
            chosen[picture] = load_tasks(dataset).raw_task(task_id)
        except NotInstalledError:
            continue
    return {
        f"{picture}.svg": _pair(task.train[0], max(3, 100 // task.train[0][0].shape[0])).to_svg(f"A pair of {picture}")
        for picture, task in chosen.items()
    }


def draw_task(task: RawTask) -> Drawing:
    """Draw all pairs of a task in a row, in as many rows as the width asks for."""
    named = [(pair, f"demonstration {i}") for i, pair in enumerate(task.train)]
    named += [(pair, f"test {i}") for i, pair in enumerate(task.test)]
    widest = max(sum(grid.shape[1] for grid in pair) for pair, _ in named)
    cell = max(3, min(14, 330 // widest))
    return _in_rows([captioned(_pair(pair, cell), name) for pair, name in named])


def _in_rows(drawings: Sequence[Drawing], gap: int = 18) -> Drawing:
    rows: list[list[Drawing]] = [[]]
    for drawing in drawings:
        if rows[-1] and sum(d.width + gap for d in rows[-1]) + drawing.width > PICTURE_WIDTH:
            rows.append([])
        rows[-1].append(drawing)
    return vstack([hstack(row, gap) for row in rows], gap=12, centered=False)


def _pair(pair: tuple[np.ndarray, np.ndarray], cell: int) -> Drawing:
    return hstack([draw_grid(pair[0], None, cell), draw_arrow(), draw_grid(pair[1], None, cell)])


def _drawn_rules() -> list[str]:
    return [name for name in procedural_names() if name != "procedural/all"]


def _procedural(name: str) -> str:
    """Two tasks of a rule, below one another, so that one sees what changes from task to task."""
    is_small = name.partition("/")[2] in SMALL
    generator = procedural_tasks(name, (10, 10), side=(3, 4) if is_small else None)
    tasks = sample_task_set(generator, jax.random.key(4), 2)
    rows = [
        hstack([captioned(_pair(pair, 18 if is_small else 8), name) for pair, name in _named(task)], 14)
        for task in tasks
    ]
    return vstack(rows, gap=10, centered=False).to_svg(f"Two tasks of {name}")


def _named(task: RawTask) -> list[tuple[tuple[np.ndarray, np.ndarray], str]]:
    return [(pair, "demonstration") for pair in task.train] + [(pair, "test") for pair in task.test]


def _augmentation() -> str:
    """One pair under the eight symmetries, and under four permutations of the colors."""
    source = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 3], [0, 0, 2, 3, 3]], np.int8)
    target = np.array([[1, 1, 1, 0, 0], [1, 4, 4, 4, 3], [4, 4, 2, 3, 3]], np.int8)
    turned = [
        captioned(_augmented((source, target), Augmentation(jnp.int8(code), None, None)), name)
        for code, name in enumerate(SYMMETRIES)
    ]
    colors = [jax.random.permutation(jax.random.key(i), jnp.arange(10, dtype=jnp.int8)) for i in range(4)]
    recolored = [_augmented((source, target), Augmentation(None, permutation, None)) for permutation in colors]
    rows = [hstack(turned[:4], 18), hstack(turned[4:], 18), draw_text("other colors"), hstack(recolored, 18)]
    return vstack(rows, gap=12, centered=False).to_svg(
        "One pair under eight symmetries and four permutations of colors"
    )


def _augmented(pair: tuple[np.ndarray, np.ndarray], augmentation: Augmentation) -> Drawing:
    """Both grids, changed alike; the canvas is cut to what they need."""
    drawn = []
    for grid in pair:
        padded = np.full((5, 5), -1, np.int8)
        padded[: grid.shape[0], : grid.shape[1]] = grid
        changed = np.asarray(augment_grid(jnp.asarray(padded), augmentation))
        rows, columns = (changed[:, 0] >= 0).sum(), (changed[0] >= 0).sum()
        drawn.append(changed[:rows, :columns])
    return _pair((drawn[0], drawn[1]), 14)


def main() -> None:
    pictures = make_pictures()
    for name, svg in pictures.items():
        write_whole(FOLDER / name, svg.encode())
    for name, svg in make_thumbnails().items():
        write_whole(THUMBNAIL_FOLDER / name, svg.encode())
    print(f"{len(pictures)} pictures, {sum(map(len, pictures.values())):,} bytes, in {FOLDER}")


if __name__ == "__main__":
    main()
