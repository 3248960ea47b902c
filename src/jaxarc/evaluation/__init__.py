"""How well an agent plays, measured on every pair rather than on samples."""

from jaxarc.evaluation.single_pairs import one_task_per_pair
from jaxarc.evaluation.solve_rate import Actor, play_every_task

__all__ = ["Actor", "one_task_per_pair", "play_every_task"]
