"""Whole episodes under the rules of legality, submission, endings and reward, in plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference.canvas import NUM_OPERATIONS, SUBMIT, Canvas, active_size, apply_operation, pad, start_canvas

NEXT_PAIR = {35: 1, 36: -1, 37: 1, 38: -1}  # how far in the list of pairs
FIRST_UNSOLVED = (40, 41)
DEMO_SWITCHES = (35, 36, 40)
TEST_SWITCHES = (37, 38, 41)

Pair = tuple[np.ndarray, np.ndarray]  # (input, target), each int[h, w] or padded with -1


class ReferenceEpisode:
    """One episode on one task, stepped by `step`; its attributes are the state after the last step.

    Args:
        demonstrations: pairs of train mode.
        tests: pairs of test mode.
        max_height: H, rows of the padded arrays.
        max_width: W, columns of the padded arrays.
        pair_index: the pair to start with, among the pairs of the mode.
        start_grid: what is edited first, padded with -1; None: the pair's input.
        mode: "train" or "test".
        max_episode_steps: steps after which the episode is truncated.
        max_submissions: the submit with this number terminates.
        allow_demo_switching: makes 35, 36, 40 legal in train mode.
        allow_test_switching: makes 37, 38, 41 legal in test mode.
        allowed_operations: the only legal ids; None allows all.
        invalid_action_policy: "raise", "noop" or "clip".
        gamma: discount of the shaping term.
        similarity_weight: factor of the shaping term, train mode only.
        step_penalty: added at every step.
        success_bonus: added when a submit solves a pair for the first time.
        unsolved_submission_penalty: added on a submit that does not solve.
        invalid_action_penalty: added on an invalid or illegal action.
        score_on_submit: whether test mode pays bonus and penalty of a submit.
    """

    def __init__(
        self,
        demonstrations: Sequence[Pair],
        tests: Sequence[Pair],
        max_height: int,
        max_width: int,
        pair_index: int = 0,
        start_grid: np.ndarray | None = None,
        *,
        mode: str = "train",
        max_episode_steps: int = 100,
        max_submissions: int = 1,
        allow_demo_switching: bool = False,
        allow_test_switching: bool = False,
        allowed_operations: tuple[int, ...] | None = None,
        invalid_action_policy: str = "noop",
        gamma: float = 1.0,
        similarity_weight: float = 1.0,
        step_penalty: float = 0.0,
        success_bonus: float = 0.0,
        unsolved_submission_penalty: float = 0.0,
        invalid_action_penalty: float = 0.0,
        score_on_submit: bool = False,
    ):
        if mode not in ("train", "test"):
            raise ValueError(f"mode is {mode!r}; allowed: 'train', 'test'")
        if invalid_action_policy not in ("raise", "noop", "clip"):
            raise ValueError(f"invalid_action_policy is {invalid_action_policy!r}; allowed: 'raise', 'noop', 'clip'")
        pairs = demonstrations if mode == "train" else tests
        if not 0 <= pair_index < len(pairs):
            raise ValueError(f"pair_index is {pair_index}; allowed: 0..{len(pairs) - 1}")
        self.pairs = [tuple(pad(grid, max_height, max_width) for grid in pair) for pair in pairs]
        self.target_sizes = {pair_index: active_size(self.pairs[pair_index][1])}  # of pairs that were played
        self.max_height = max_height
        self.max_width = max_width
        self.mode = mode
        self.max_episode_steps = max_episode_steps
        self.max_submissions = max_submissions
        self.allow_demo_switching = allow_demo_switching
        self.allow_test_switching = allow_test_switching
        self.allowed_operations = allowed_operations
        self.invalid_action_policy = invalid_action_policy
        self.gamma = np.float32(gamma)
        self.similarity_weight = np.float32(similarity_weight)
        self.step_penalty = np.float32(step_penalty)
        self.success_bonus = np.float32(success_bonus)
        self.unsolved_submission_penalty = np.float32(unsolved_submission_penalty)
        self.invalid_action_penalty = np.float32(invalid_action_penalty)
        self.score_on_submit = score_on_submit

        self.pair_index = pair_index  # 0 .. number of the mode's pairs - 1
        self.canvas: Canvas = start_canvas(self.pairs[pair_index][0] if start_grid is None else start_grid)
        self.step_count = 0  # 0 .. max_episode_steps
        self.submission_count = 0  # 0 .. max_submissions
        self.solved_pairs: set[int] = set()  # pair indices
        self.similarity = self._measure()[0]  # float32, 0 .. 1
        self.terminated = False
        self.truncated = False
        self.reward = np.float32(0)  # of the last step, like the two below
        self.invalid_action = False
        self.solved = False

    grid = property(lambda self: self.canvas.grid)
    height = property(lambda self: self.canvas.height)
    width = property(lambda self: self.canvas.width)
    clipboard = property(lambda self: self.canvas.clipboard)
    selection = property(lambda self: self.canvas.selection)
    pair_input = property(lambda self: self.pairs[self.pair_index][0])
    target = property(lambda self: self.pairs[self.pair_index][1])
    done = property(lambda self: self.terminated or self.truncated)
    discount = property(lambda self: np.float32(0 if self.terminated else 1))

    def step(self, operation: int, selection_spec: tuple[str, object]) -> None:
        """Takes one action.

        Args:
            operation: the operation id, of any value.
            selection_spec: ("point", (row, column)), ("bbox", (r1, c1, r2, c2)) or ("mask", bool[H, W]).

        Raises:
            ValueError: under the policy "raise", for an invalid or illegal action; the state is then as before.
        """
        if self.done:
            self.reward, self.invalid_action, self.solved = np.float32(0), False, False
            return
        operation = int(operation)
        self._check_operation(operation)
        selection = self._selection(selection_spec)
        self.invalid_action = selection is None or not self.is_legal(operation)

        before, similarity_before = self.canvas, self.similarity
        pairs_solved_before = frozenset(self.solved_pairs)
        if not self.invalid_action:
            self._edit(operation, selection)
        submitted = not self.invalid_action and operation == SUBMIT
        if submitted or self.canvas is not before:
            self.similarity, is_equal = self._measure()
        self.step_count += 1
        self.solved = submitted and is_equal
        if submitted:
            self.submission_count += 1
        if self.solved:
            self.solved_pairs.add(self.pair_index)

        was_last_submit = submitted and self.submission_count >= self.max_submissions
        self.terminated = was_last_submit or (self.solved and self._all_solved() and self._is_scored())
        self.truncated = not self.terminated and self.step_count >= self.max_episode_steps
        self.reward = self._reward(
            shaping=self.similarity_weight * (self.gamma * self.similarity - similarity_before),
            first_solve=self.solved and self.pair_index not in pairs_solved_before,
            wrong_submit=submitted and not self.solved,
        )

    def check(self, operation: int, selection_spec: tuple[str, object]) -> None:
        """Raises what `step` would, and does not step."""
        self._check_operation(operation)
        self._selection(selection_spec)

    def is_legal(self, operation: int) -> bool:
        """Returns whether the rules of this episode allow an operation id."""
        if not 0 <= operation < NUM_OPERATIONS:
            return False
        if self.allowed_operations is not None and operation not in self.allowed_operations:
            return False
        if operation in DEMO_SWITCHES:
            return self.mode == "train" and self.allow_demo_switching
        if operation in TEST_SWITCHES:
            return self.mode == "test" and self.allow_test_switching
        return True

    def legal_operations(self) -> np.ndarray:
        """Returns bool[42], True where the operation is legal."""
        return np.array([self.is_legal(operation) for operation in range(NUM_OPERATIONS)])

    def _is_scored(self) -> bool:
        """Returns whether the agent may learn what its submits were worth."""
        return self.mode == "train" or self.score_on_submit

    def _edit(self, operation: int, selection: np.ndarray) -> None:
        """Changes canvas and pair, unless a pair operation finds no pair to go to."""
        if operation in NEXT_PAIR:
            self._go_to((self.pair_index + NEXT_PAIR[operation]) % len(self.pairs))
        elif operation in FIRST_UNSOLVED:
            known = self.solved_pairs if self._is_scored() else set()
            unsolved = [index for index in range(len(self.pairs)) if index not in known]
            if unsolved:
                self._go_to(unsolved[0])
        else:
            self.canvas = apply_operation(self.canvas, operation, selection, self.pair_input)

    def _go_to(self, pair_index: int) -> None:
        self.pair_index = pair_index
        self.target_sizes[pair_index] = active_size(self.target)
        self.canvas = start_canvas(self.pair_input)

    def _all_solved(self) -> bool:
        """Returns whether nothing is left to solve: every pair where the mode may switch, else the only pair."""
        switching = self.allow_demo_switching if self.mode == "train" else self.allow_test_switching
        required = set(range(len(self.pairs))) if switching else {self.pair_index}
        return required <= self.solved_pairs

    def _measure(self) -> tuple[np.float32, bool]:
        """Returns the similarity of grid and target, and whether it is exactly 1."""
        target_height, target_width = self.target_sizes[self.pair_index]
        matches = int(np.count_nonzero((self.grid == self.target) & (self.target >= 0)))
        union = max(self.height, target_height) * max(self.width, target_width)
        return np.float32(matches) / np.float32(union), matches == union

    def _reward(self, shaping: np.float32, first_solve: bool, wrong_submit: bool) -> np.float32:
        reward = np.float32(0)
        if self.mode == "train":
            reward += shaping
        reward += self.step_penalty
        if self._is_scored():
            if first_solve:
                reward += self.success_bonus
            if wrong_submit:
                reward += self.unsolved_submission_penalty
        if self.invalid_action:
            reward += self.invalid_action_penalty
        return reward

    def _check_operation(self, operation: int) -> None:
        if self.invalid_action_policy != "raise":
            return
        if not 0 <= operation < NUM_OPERATIONS:
            raise ValueError(f"operation is {operation}; allowed: 0..{NUM_OPERATIONS - 1}")
        if not self.is_legal(operation):
            legal = np.nonzero(self.legal_operations())[0].tolist()
            raise ValueError(f"operation is {operation}, which this episode does not allow; allowed: {legal}")

    def _selection(self, selection_spec: tuple[str, object]) -> np.ndarray | None:
        """Returns the raw bool[H, W] selection, or None where a coordinate is invalid and not clipped."""
        kind, value = selection_spec
        if kind == "mask":
            mask = np.asarray(value, bool)
            if mask.shape != (self.max_height, self.max_width):
                raise ValueError(f"mask has shape {mask.shape}; allowed: {(self.max_height, self.max_width)}")
            return mask.copy()
        if kind == "point":
            row, column = (int(coordinate) for coordinate in value)
            return self._box_selection(row, column, row, column)
        if kind == "bbox":
            return self._box_selection(*(int(coordinate) for coordinate in value))
        raise ValueError(f"selection kind is {kind!r}; allowed: 'point', 'bbox', 'mask'")

    def _box_selection(self, r1: int, c1: int, r2: int, c2: int) -> np.ndarray | None:
        rows = [self._coordinate("row", row, self.max_height) for row in (r1, r2)]
        columns = [self._coordinate("column", column, self.max_width) for column in (c1, c2)]
        if None in rows or None in columns:
            return None
        selection = np.zeros((self.max_height, self.max_width), bool)
        selection[min(rows) : max(rows) + 1, min(columns) : max(columns) + 1] = True
        return selection

    def _coordinate(self, name: str, value: int, size: int) -> int | None:
        if 0 <= value < size:
            return value
        if self.invalid_action_policy == "raise":
            raise ValueError(f"{name} is {value}; allowed: 0..{size - 1}")
        return min(max(value, 0), size - 1) if self.invalid_action_policy == "clip" else None
