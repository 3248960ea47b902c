"""Which pair an episode plays, from which grid it starts, and whether it may change the pair."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range, one_of
from jaxarc.constants import MAX_GRID_SIZE

MODES = ("train", "test", "trials")
PAIR_SELECTIONS = ("random", "first")
TASK_ORDERS = ("weighted", "in_turn")
START_GRIDS = ("input", "empty", "random", "partial")


@dataclass(frozen=True)
class EpisodeConfig(CheckedConfig):
    mode: str = "train"  # train: demonstration pairs; test: test pairs with hidden targets; trials: one after the other
    num_trials: int = 3  # trials on demonstrations before the one on a test, in trials mode; see jaxarc.wrappers.Trials
    task_order: str = "weighted"  # each reset draws a task by weight; in_turn: auto-reset takes the next one
    demo_selection: str = "random"  # how a training episode picks its pair
    test_selection: str = "first"  # how a test episode picks its pair
    allow_demo_switching: bool = False  # operations 35, 36 and 40, in train mode
    allow_test_switching: bool = False  # operations 37, 38 and 41, in test mode
    start_grid: str = "input"  # the pair's input; empty: zeros; random: any colors; partial: input partly solved
    start_height: int = 3  # rows of an empty or random start grid
    start_width: int = 3  # columns of an empty or random start grid
    partial_probability: float = 0.5  # share of episodes that start partly solved, with start_grid="partial"

    def validate(self) -> list[str]:
        problems = [
            *one_of("mode", self.mode, MODES),
            *at_least("num_trials", self.num_trials, 1),
            *one_of("task_order", self.task_order, TASK_ORDERS),
            *one_of("demo_selection", self.demo_selection, PAIR_SELECTIONS),
            *one_of("test_selection", self.test_selection, PAIR_SELECTIONS),
            *one_of("start_grid", self.start_grid, START_GRIDS),
            *in_range("start_height", self.start_height, 1, MAX_GRID_SIZE),
            *in_range("start_width", self.start_width, 1, MAX_GRID_SIZE),
            *in_range("partial_probability", self.partial_probability, 0.0, 1.0),
        ]
        if self.mode != "train" and self.start_grid == "partial":
            problems.append("start_grid='partial' shows cells of the hidden target, so it needs mode='train'")
        if self.mode == "trials" and (self.allow_demo_switching or self.allow_test_switching):
            problems.append(
                "mode='trials' chooses the pairs itself; leave allow_demo_switching and allow_test_switching off"
            )
        return problems
