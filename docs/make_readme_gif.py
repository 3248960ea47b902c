"""Draw the moving picture of the README: a trained agent solves real tasks that it has not learned from.

Run ``python docs/make_readme_gif.py RUN`` with the folder of a run of ``jaxarc train experiment=ladder_l2_small``. Of
the unseen test pairs that the agent solves, one of each task, it shows those with the most colors.
"""

import sys
from pathlib import Path
from typing import Final

import jax
import numpy as np
from PIL import Image

from jaxarc.cli.replay_sources import Scene, show_run
from jaxarc.constants import FLOOD_FILL, MOVE_UP, PADDING, RESIZE
from jaxarc.envs.operations import get_operation_name
from jaxarc.evaluation.filming import Film, film_episodes
from jaxarc.io.atomic import write_whole
from jaxarc.render import COLOR_NAMES, Moment, pixels
from jaxarc.render.animation import join_frames
from jaxarc.render.pictures import draw_moment
from jaxarc.training import RunFolder

OUT: Final = Path(__file__).parent / "images" / "solving.gif"
NUM_EPISODES: Final = 5
LENGTHS: Final = range(6, 13)  # actions
SIDE: Final = 150  # pixels of the longer side of a grid
STEP_MS: Final = 350
LAST_MS: Final = 1500


def make_gif(run: Path) -> bytes:
    """Play the unseen pairs of a run and draw some."""
    showing = show_run(RunFolder(run), "best", None, with_learned=False, task_ids=(), most=10**6)
    films = film_episodes(showing.agent, showing.params, showing.places, jax.random.key(0))
    solved = {}
    for scene, film in zip(showing.scenes, films, strict=True):
        is_even = ((film.grids == PADDING) == (film.target == PADDING)).all()  # no resize, so nothing jumps about
        if scene.pair.startswith("test") and film.is_solved and is_even and len(film.actions) in LENGTHS:
            solved.setdefault(scene.task_id, (scene, film))
    chosen = sorted(solved.values(), key=lambda found: -len(np.unique(found[1].target)))[:NUM_EPISODES]
    frames = [frame for scene, film in chosen for frame in _frames(scene, film)]
    return join_frames(*zip(*frames, strict=True))


def _frames(scene: Scene, film: Film) -> list[tuple[Image.Image, int]]:
    sizes = [(grid != PADDING).sum(axis=axis).max() for grid in (*film.grids, film.target) for axis in (0, 1)]
    cell_size, last = SIDE // int(max(sizes)), len(film.actions)
    images = [draw_moment(pixels, _moment(scene, film, step), cell_size) for step in range(last + 1)]
    return [(image, LAST_MS if step == last else STEP_MS) for step, image in enumerate(images)]


def _moment(scene: Scene, film: Film, step: int) -> Moment:
    selection = np.zeros(film.target.shape, np.bool_)
    words = "start"
    if step:
        operation, top, left, bottom, right = film.actions[step - 1]
        words = _name(operation)
        if operation < RESIZE:
            selection[min(top, bottom) : max(top, bottom) + 1, min(left, right) : max(left, right) + 1] = True
    caption = f"task {scene.task_id}, step {step} of {len(film.actions)}: {words}"
    return Moment(film.grids[step], film.target, caption, selection, input=film.grids[0])


def _name(operation: int) -> str:
    if operation < MOVE_UP:
        verb = "fill" if operation < FLOOD_FILL else "flood fill"
        return f"{verb} {COLOR_NAMES[operation % FLOOD_FILL]}"
    return get_operation_name(operation)


if __name__ == "__main__":
    write_whole(OUT, make_gif(Path(sys.argv[1])))
