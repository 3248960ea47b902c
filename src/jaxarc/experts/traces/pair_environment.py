"""The environment on single pairs: each pair is a task, whose demonstration is played."""

from collections.abc import Sequence
from typing import Any, Final

from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.params import EnvParams
from jaxarc.experts.expert import ActionFormat, Pair
from jaxarc.tasks import RawTask
from jaxarc.tasks.sampling import uniform_weights

MOST_STEPS: Final = 10**6  # no trace is as long; episodes end with their submit


def pair_params(pairs: Sequence[Pair], count: int, action_format: ActionFormat, side: int, **fields: Any) -> EnvParams:
    """Return params whose task ``i`` is the pair ``i``.

    Args:
        pairs: 1 or more.
        count: how many tasks there shall be, so that programs for fewer pairs compile nothing anew; the last is
            repeated.
        action_format: how actions select cells.
        side: rows and columns of the canvas.
        **fields: config fields.
    """
    config = JaxArcConfig().with_fields(
        selection_format=action_format,
        max_grid_height=side,
        max_grid_width=side,
        max_episode_steps=MOST_STEPS,
        history_enabled=False,
        **fields,
    )
    filled = [*pairs, *[pairs[-1]] * (count - len(pairs))]
    tasks = [RawTask.of_checked_pairs(f"pair-{i}", (pair,), (pair,)) for i, pair in enumerate(filled)]
    buffer = TaskSet("pairs", tuple(tasks)).buffer((side, side))
    return EnvParams(buffer, uniform_weights(count), config)
