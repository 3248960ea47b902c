"""A task of your own: drawn as text, played by hand, saved as ARC JSON, loaded again by name.

python examples/own_task.py --folder my_tasks
"""

import argparse
import json
import tempfile
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

import jaxarc
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.render import render_task
from jaxarc.tasks import RawTask


def growing(cells: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Make a pair: green cells, and the same with a red cell to the right of each."""
    source = np.zeros((4, 5), int)
    for row, col in cells:
        source[row, col] = 3
    output = source.copy()
    for row, col in cells:
        output[row, col + 1] = 2
    return source, output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=None, help="where the task's file goes (a temporary folder)")
    options = parser.parse_args()
    console = Console()

    task = RawTask(
        task_id="red-to-the-right",
        train=(growing([(0, 0), (2, 3)]), growing([(1, 1)]), growing([(3, 2), (0, 3)])),
        test=(growing([(1, 3), (2, 0)]),),
    )
    tasks = TaskSet("mine", (task,))  # checked when it is made: shapes, colors, an output for every input
    console.print(render_task(tasks.on_canvas((5, 5)).get_task_by_id(task.task_id)))

    env, params = jaxarc.make(tasks, selection_format="point", max_grid_height=5, max_grid_width=5, mode="test")
    state, _ = env.reset(jax.random.key(0), params)
    step = jax.jit(env.step)
    for row, col in ((1, 4), (2, 1)):
        state, *_ = step(state, jaxarc.PointAction(operation=2, row=row, col=col), params)
    state, _, _, done, _ = step(state, jaxarc.PointAction(operation=34, row=0, col=0), params)
    console.print(f"submitted in test mode: done {bool(done)}, solved {bool(state.is_solved)}")

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        part = lambda pairs: [{"input": a.tolist(), "output": b.tolist()} for a, b in pairs]
        text = json.dumps({"train": part(task.train), "test": part(task.test)})
        (folder / f"{task.task_id}.json").write_text(text, encoding="utf-8")
        again = load_tasks(folder)  # and so jaxarc.make(folder), jaxarc evaluate FOLDER, jaxarc tasks show
        same = (next(iter(again)).test[0][1] == task.test[0][1]).all()
        console.print(f"read again: {list(again.task_ids)}, with the same answer: {bool(same)}")


if __name__ == "__main__":
    main()
