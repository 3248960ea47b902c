"""How many actions the greedy painter takes for every pair of ARC-AGI-1, beside one fill for each wrong cell.

python docs/measure_painter.py     # prints a line for each data set; a few minutes on one core
"""

import jax
import numpy as np

from jaxarc.config import JaxArcConfig
from jaxarc.evaluation import one_task_per_pair, play_every_task
from jaxarc.experts import GreedyPainter
from jaxarc.tasks import load_tasks
from jaxarc.training.updates import make_params

RULES = JaxArcConfig().with_fields(
    selection_format="bbox", reveal_target=True, include_step_count=True, max_episode_steps=400, history_enabled=False
)


def naive_count(pair) -> int:
    """A resize if the sizes differ, a fill for each cell that is then wrong, and the submit."""
    start, answer = (np.asarray(grid) for grid in pair)
    kept = np.zeros_like(answer)
    rows, columns = np.minimum(start.shape, answer.shape)
    kept[:rows, :columns] = start[:rows, :columns]
    return int(start.shape != answer.shape) + int((kept != answer).sum()) + 1


def main() -> None:
    painter = GreedyPainter()
    for name in ("arc-agi-1/training", "arc-agi-1/evaluation"):
        pairs = one_task_per_pair(load_tasks(name))
        params = make_params(pairs, RULES)
        played = jax.jit(lambda params: play_every_task(lambda seen, _: painter.act(seen), params))(params)
        steps, naive = np.asarray(played.steps), np.array([naive_count(task.train[0]) for task in pairs])
        print(
            f"{name}: {played.solved.mean():.1%} of {len(pairs)} pairs solved; actions mean {steps.mean():.2f}, "
            f"median {np.median(steps):.0f}, largest {steps.max()}; a fill for each cell: mean {naive.mean():.2f}"
        )


if __name__ == "__main__":
    main()
