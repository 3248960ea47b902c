"""Plans, and the beam that extends them: at each number of actions only the most promising go on."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from jaxarc.experts.expert import Action
from jaxarc.experts.host_canvas import Grid
from jaxarc.experts.painting.goal import Goal

_CELLS_IN_A_PIECE: Final = 5  # wrong cells that count as much as one more wrong piece


class Plan(NamedTuple):
    """Some actions, and what they make of the input."""

    grid: Grid
    clipboard: Grid | None
    actions: tuple[Action, ...]

    def then(self, grid: Grid, *actions: Action) -> "Plan":
        """Go on with actions that do not copy and leave this grid."""
        return Plan(grid, self.clipboard, (*self.actions, *actions))


Edits: TypeAlias = Callable[[Sequence[Plan]], Iterable[Plan]]
"""Makes longer plans of plans of one length."""


def search(starts: Sequence[Plan], edits: Edits, goal: Goal, width: int) -> tuple[Action, ...]:
    """Find actions that reach the goal.

    What is found never takes more actions than the first start and a fill for each of its wrong cells: a plan is
    dropped when it could, if each cell that is still wrong took one.

    Args:
        starts: plans whose grids have the output's size.
        edits: what to try; it must offer, for any plan, one action that makes more cells right.
        goal: what to reach.
        width: how many plans of one length go on.
    """
    limit = _at_most(starts[0], goal)
    waiting: defaultdict[int, list[Plan]] = defaultdict(list)
    solved: Plan | None = None
    offered: Iterable[Plan] = starts
    length = -1  # of the plans that were extended last
    while True:
        for plan in offered:
            wrong = goal.count_wrong(plan.grid)
            if wrong == 0 and (solved is None or len(plan.actions) < len(solved.actions)):
                solved = plan
                if len(plan.actions) == length + 1:  # none can be shorter
                    return plan.actions
            if len(plan.actions) + wrong <= limit:
                waiting[len(plan.actions)].append(plan)
        length = min(waiting)
        if solved is not None and len(solved.actions) <= length + 1:  # what comes is longer than this
            return solved.actions
        offered = edits(_best(waiting.pop(length), goal, width))


def _best(plans: Sequence[Plan], goal: Goal, width: int) -> list[Plan]:
    different: dict[tuple[bytes, bytes], Plan] = {}
    for plan in plans:
        clipboard = b"" if plan.clipboard is None else bytes(plan.clipboard.shape) + plan.clipboard.tobytes()
        different.setdefault((plan.grid.tobytes(), clipboard), plan)
    return sorted(different.values(), key=lambda plan: _left_to_do(plan, goal))[:width]


def _at_most(plan: Plan, goal: Goal) -> int:
    return len(plan.actions) + goal.count_wrong(plan.grid)


def _left_to_do(plan: Plan, goal: Goal) -> int:
    return _CELLS_IN_A_PIECE * goal.count_pieces(plan.grid) + goal.count_wrong(plan.grid)
