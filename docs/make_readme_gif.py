"""Draw the moving picture of the README: a trained agent solves real tasks that it has not learned from.

``python docs/make_readme_gif.py`` plays the agent that the package brings, or that of a run that is named. Of the
unseen test pairs that the agent solves, one of each task, it shows those with the most color.
"""

import sys
from pathlib import Path
from typing import Final

import numpy as np

from jaxarc.agents.editing_kind import ShownAgent
from jaxarc.cli.replay_command import to_episode
from jaxarc.constants import PADDING
from jaxarc.files import locate_run, write_whole
from jaxarc.render.drawings import episodes_gif
from jaxarc.runs import RunFolder
from jaxarc.runs.kind import SavedRun

OUT: Final = Path(__file__).parent / "images" / "solving.gif"
NUM_EPISODES: Final = 5
LENGTHS: Final = range(6, 13)  # actions


def make_gif(run: Path) -> bytes:
    """Play the unseen pairs of a run and draw some."""
    batch = ShownAgent(SavedRun.open(RunFolder(run), "best").require("edit")).replayed(None)
    solved = {}
    for info, trajectory in batch.only([i for i, info in enumerate(batch.infos) if not info.is_learned]).play():
        is_even = (
            (trajectory.grids == PADDING) == (trajectory.target == PADDING)
        ).all()  # no resize, so nothing jumps about
        if info.pair.startswith("test") and trajectory.is_solved and is_even and len(trajectory.actions) in LENGTHS:
            solved.setdefault(info.task_id, (info, trajectory))
    chosen = sorted(solved.values(), key=lambda found: -_colorfulness(found[1].target))[:NUM_EPISODES]
    form = batch.params.config.action.selection_format
    return episodes_gif([to_episode(info, trajectory, form) for info, trajectory in chosen])


def _colorfulness(grid: np.ndarray) -> float:
    """Add the number of colors to the share of cells that are not black, in tenths."""
    inside = grid[grid != PADDING]
    return len(np.unique(inside)) + 10 * float((inside > 0).mean())


if __name__ == "__main__":
    write_whole(OUT, make_gif(locate_run(Path(*sys.argv[1:] or ["ladder_l2_small"]))))
