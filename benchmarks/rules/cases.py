"""Small games whose outcome a reader can check by hand, the same for every package.

Only NumPy is imported: each package plays them in an environment of its own. An action is a name and the cells that it
selects; `up` and `rotate` mean the same in all three packages, other moves have other numbers there.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

Cells = Sequence[tuple[int, int]]
Action = tuple[str, Cells]
Pair = tuple[list[list[int]], list[list[int]]]


class Frame(NamedTuple):
    """What a player sees after a reset or a step."""

    grid: np.ndarray  # active area
    observation: Any  # as the package returned it
    reward: float
    terminated: bool
    truncated: bool
    discount: float | None  # None where the package has none


class RefusedError(Exception):
    """The package raised an error instead of playing the action."""


class NotOfferedError(Exception):
    """The package has no such feature."""


class Player(Protocol):
    """One package."""

    def play(
        self,
        task: str,
        actions: Sequence[Action],
        *,
        test: bool = False,
        max_steps: int = 100,
        allowed: Sequence[str] | None = None,
    ) -> list[Frame]:
        """Reset the only pair of a task and take the actions, whatever the frames say."""
        ...

    def starts(self, task: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Reset so often; the start grid, and the input of the pair whose target is to be reached."""
        ...

    def is_in_space(self, observation: Any) -> bool:
        """Whether the declared observation space holds an observation."""
        ...


def operation_of(name: str, others: dict[str, int]) -> int:
    """Return the number of an operation, such as of ``fill 3``: fills and floods have the same in all packages."""
    kind, _, number = name.partition(" ")
    return {"fill": 0, "flood": 10, "operation": 0, **others}[kind] + int(number or 0)


class Case(NamedTuple):
    """One rule, and a game that shows whether it holds."""

    rule: str
    show: Callable[[Player], tuple[bool, str]]  # whether it holds, and what was seen


def spiral(side: int) -> np.ndarray:
    """A corridor of color 1 that winds to the middle, walls of color 5 between its turns."""
    grid = np.full((side, side), 5)
    row, col, turn = 0, 0, 0
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    grid[0, 0] = 1
    while True:
        for _ in range(2):
            down, right = steps[turn]
            ahead, beyond = (row + down, col + right), (row + 2 * down, col + 2 * right)
            inside = 0 <= ahead[0] < side and 0 <= ahead[1] < side
            free = inside and grid[ahead] == 5 and not _is_corridor(grid, beyond)
            if free:
                break
            turn = (turn + 1) % 4
        if not free:
            return grid
        row, col = ahead
        grid[row, col] = 1


def _is_corridor(grid: np.ndarray, cell: tuple[int, int]) -> bool:
    inside = 0 <= cell[0] < len(grid) and 0 <= cell[1] < len(grid)
    return inside and grid[cell] == 1


def _cells(grid: Any) -> Cells:
    return [(row, col) for row in range(len(grid)) for col in range(len(grid[0]))]


_ZEROS, _ONES = [[0] * 3 for _ in range(3)], [[1] * 3 for _ in range(3)]
_ARROW = [[0, 0, 0, 0, 0], [0, 2, 3, 0, 0], [0, 2, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
_DIGITS = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
_BLACK_AND_RED = [[0, 2, 0], [0, 0, 0], [0, 0, 0]]
_SPIRAL = spiral(29).tolist()
TASKS: dict[str, list[Pair]] = {  # demonstration pairs; the first is the test pair too
    "three": [([[1, 1, 1]] * 3, _ZEROS), ([[2, 2, 2]] * 3, _ONES), ([[3, 3, 3]] * 3, _DIGITS)],
    "zeros": [(_ZEROS, _ONES)],
    "smaller": [(_ONES, [[1, 1], [1, 1]])],
    "larger": [([[1, 1], [1, 1]], _ONES)],
    "arrow": [(_ARROW, _ZEROS)],
    "digits": [(_DIGITS, _ZEROS)],
    "spiral": [(_SPIRAL, _ZEROS)],
    "black": [(_BLACK_AND_RED, _ZEROS)],
}
PAINT_ALL = ("fill 1", _cells(_ZEROS))
SUBMIT = ("submit", [])


def starts_from_its_own_input(player: Player) -> tuple[bool, str]:
    own = sum(
        grid.shape == source.shape and bool((grid == source).all()) for grid, source in player.starts("three", 60)
    )
    return own == 60, f"{own} of 60 episodes"


def test_pair_can_be_solved(player: Player) -> tuple[bool, str]:
    right = player.play("zeros", [PAINT_ALL, SUBMIT], test=True)[-1].reward
    wrong = player.play("zeros", [SUBMIT], test=True)[-1].reward
    return right > wrong, f"reward {right:g} for the right answer, {wrong:g} for a wrong one"


def wrong_size_is_wrong(player: Player) -> tuple[bool, str]:
    reward = player.play("smaller", [SUBMIT])[-1].reward
    return reward <= 0, f"reward {reward:g} for a 3x3 answer to a 2x2 target"


def grids_can_grow(player: Player) -> tuple[bool, str]:
    shape = player.play("larger", [("resize", _cells(_ONES))])[-1].grid.shape
    return shape == (3, 3), f"2x2 resized to 3x3 is {shape[0]}x{shape[1]}"


def moves_move(player: Player) -> tuple[bool, str]:
    figure = [(1, 1), (1, 2), (2, 1)]
    grid, wanted = player.play("arrow", [("up", figure)])[-1].grid, np.roll(_ARROW, -1, axis=0)
    return np.array_equal(grid, wanted), "moves up by one" if np.array_equal(grid, wanted) else _rows(grid)


def one_cell_moves(player: Player) -> tuple[bool, str]:
    grid = player.play("black", [("up", [(0, 1)])])[-1].grid  # over the edge, so it is lost
    below = player.play("digits", [("up", [(1, 1)])])[-1].grid
    holds = grid[0, 1] == 0 and below[0, 1] == 5
    return bool(holds), "moves" if holds else f"the 5 of 1 2 3 / 4 5 6 / 7 8 9: {_rows(below)}"


def rotation_stays_on_the_grid(player: Player) -> tuple[bool, str]:
    grid = player.play("digits", [("rotate", _cells(_DIGITS))])[-1].grid
    turned = any(np.array_equal(grid, np.rot90(_DIGITS, turns)) for turns in (1, -1))
    return turned, "turns in place" if turned else _rows(grid)


def flood_fill_reaches_the_end(player: Player) -> tuple[bool, str]:
    corridor = np.asarray(_SPIRAL) == 1
    grid = player.play("spiral", [("flood 3", [(0, 0)])])[-1].grid
    filled = int((grid[: len(corridor), : len(corridor)] == 3).sum()) if grid.shape == corridor.shape else 0
    return filled == corridor.sum(), f"{filled} of {corridor.sum()} cells of a spiral"


def paste_keeps_black(player: Player) -> tuple[bool, str]:
    grid = player.play("black", [("copy", [(1, 0), (1, 1)]), ("paste", [(0, 1), (0, 2)])])[-1].grid
    return grid[0, 1] == 0, f"two black cells pasted over a red one leave {grid[0, 1]}"


def outside_selects_nothing(player: Player) -> tuple[bool, str]:
    grid = player.play("digits", [("fill 1", [(20, 20)])])[-1].grid
    changed = int((grid != np.asarray(_DIGITS)).sum()) if grid.shape == (3, 3) else 9
    return changed == 0, f"filling a cell beyond a 3x3 grid changes {changed} cells"


def unknown_operations_do_nothing(player: Player) -> tuple[bool, str]:
    said = []
    for name in ("operation 1000", "operation -1"):
        try:
            last = player.play("digits", [(name, [(0, 0)])])[-1]
        except RefusedError:
            said.append("refused")
            continue
        changed = last.grid.shape != (3, 3) or (last.grid != np.asarray(_DIGITS)).any()
        said.append("ends the episode" if last.terminated else "changes the grid" if changed else "nothing happens")
    holds = set(said) <= {"refused", "nothing happens"}
    return holds, f"1000: {said[0]}; -1: {said[1]}"


def allowed_operations_are_enforced(player: Player) -> tuple[bool, str]:
    try:
        grid = player.play("digits", [("rotate", _cells(_DIGITS))], allowed=["fill 1", "submit"])[-1].grid
    except RefusedError:
        return True, "refused"
    same = np.array_equal(grid, _DIGITS)
    return same, "nothing happens" if same else "an operation that is not allowed turns the grid"


def nothing_is_paid_after_the_end(player: Player) -> tuple[bool, str]:
    rewards = [frame.reward for frame in player.play("zeros", [PAINT_ALL, SUBMIT, SUBMIT, SUBMIT])[2:]]
    return all(reward <= 0 for reward in rewards[1:]), "rewards of three submits: " + ", ".join(
        f"{r:g}" for r in rewards
    )


def truncation_is_no_end(player: Player) -> tuple[bool, str]:
    last = player.play("zeros", [("fill 1", [(0, 0)])] * 3, max_steps=3)[-1]
    holds = last.truncated and not last.terminated and last.discount in (None, 1.0)
    kind = "truncated" if last.truncated else "terminated" if last.terminated else "goes on"
    return holds, f"step 3 of 3: {kind}, discount {last.discount:g}" if last.discount is not None else kind


def observations_lie_in_their_space(player: Player) -> tuple[bool, str]:
    actions = [("fill 1", [(0, 0)]), ("up", [(0, 0)]), ("resize", _cells([[0] * 5] * 5)), ("copy", [(0, 0)])]
    frames = player.play("digits", actions)
    inside = sum(player.is_in_space(frame.observation) for frame in frames)
    return inside == len(frames), f"{inside} of {len(frames)}"


def observations_are_not_overwritten(player: Player) -> tuple[bool, str]:
    first, second = player.play("zeros", [PAINT_ALL])
    same = first.observation is second.observation or _first_array(first.observation) is _first_array(
        second.observation
    )
    return not same, "each step returns its own" if not same else "every step returns the same object, changed in place"


def _first_array(observation: Any) -> Any:
    return observation["grid"] if isinstance(observation, dict) and "grid" in observation else observation


def _rows(grid: np.ndarray) -> str:
    if grid.size > 30:
        return f"a grid of {grid.shape[0]}x{grid.shape[1]}"
    return " / ".join(" ".join(map(str, row)) for row in grid.tolist())


CASES = [
    Case("an episode starts from the input of its own pair", starts_from_its_own_input),
    Case("a test pair can be solved", test_pair_can_be_solved),
    Case("an answer of the wrong size is wrong", wrong_size_is_wrong),
    Case("a grid can be made larger", grids_can_grow),
    Case("move up moves a selection up", moves_move),
    Case("a single cell can be moved", one_cell_moves),
    Case("rotation turns the selected square in place", rotation_stays_on_the_grid),
    Case("flood fill reaches the end of a corridor", flood_fill_reaches_the_end),
    Case("paste copies black as well", paste_keeps_black),
    Case("a selection outside of the grid selects nothing", outside_selects_nothing),
    Case("an unknown operation does nothing or is refused", unknown_operations_do_nothing),
    Case("a limited set of operations is enforced", allowed_operations_are_enforced),
    Case("no reward after the end", nothing_is_paid_after_the_end),
    Case("a step limit truncates, and leaves the discount at 1", truncation_is_no_end),
    Case("observations lie in the declared space", observations_lie_in_their_space),
    Case("an observation stays as it was returned", observations_are_not_overwritten),
]
