"""Where the rules of ARCLE 0.2.6 differ from ours, class by class, and what ARCLE does there, in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from reference.canvas import COPY, FLIP_AXES, MOVES, PADDING, PASTE, QUARTER_TURNS

CLASSES = {
    "nothing selected": "moves, turns and flips take the whole grid here, in ARCLE the object that was moved last, "
    "or none",
    "selection reaches past the grid": "here a selection ends with the grid; in ARCLE cells outside stretch its box, "
    "and a copy of them is refused",
    "cell outside beside the one inside": "a flood fill counts selected cells inside the grid here, all cells in ARCLE",
    "holes in the selection": "a turn or flip takes the box's content here, only the selected cells in ARCLE",
    "black is see-through": "content that moves overwrites here; in ARCLE black cells of it leave what is there",
    "turn of a box that is not square": "anchored at the top-left corner here, about the center in ARCLE",
    "holes in the clipboard": "only copied cells are pasted here; ARCLE pastes its whole box, black in the holes",
}


@dataclass(frozen=True)
class ArcleStep:
    """A state and what is done to it."""

    grid: np.ndarray  # int8[H, W], -1 outside
    clip: np.ndarray  # int8[H, W], -1 where nothing is held
    size: tuple[int, int]
    clip_size: tuple[int, int]
    operation: int
    selection: np.ndarray  # bool[H, W]

    @property
    def inside(self) -> np.ndarray:
        """The selected cells of the grid."""
        inside = self.selection.copy()
        inside[self.size[0] :], inside[:, self.size[1] :] = False, False
        return inside

    @property
    def transforms(self) -> bool:
        """Whether the operation moves, turns or flips."""
        return 20 <= self.operation <= 27

    def difference_class(self) -> str:
        """Returns the first class under which the rules differ here; empty where they are the same."""
        operation, inside = self.operation, self.inside
        if not self.selection.any():
            return "nothing selected" if self.transforms else ""
        if 10 <= operation <= 19 and inside.sum() == 1 and self.selection.sum() > 1:
            return "cell outside beside the one inside"
        reaches_past = bool((self.selection & ~inside).any())
        if reaches_past and (self.transforms or operation in (COPY, PASTE)):
            return "selection reaches past the grid"
        if operation == PASTE and (self.clip[: self.clip_size[0], : self.clip_size[1]] < 0).any():
            return "holes in the clipboard"
        if self.transforms:
            top, left, bottom, right = _box(self.selection)
            if operation in MOVES:
                return "black is see-through"
            if not self.selection[top:bottom, left:right].all():
                return "holes in the selection"
            if operation in QUARTER_TURNS and bottom - top != right - left:
                return "turn of a box that is not square"
        return ""

    def by_arcle(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns grid and clipboard after ARCLE's rule, where its classes apply and something is selected."""
        if self.transforms:
            return self._visible(self._transformed()), self._clip_content(self.clip, self.clip_size)
        if self.operation == PASTE:
            return self._visible(self._pasted()), self._clip_content(self.clip, self.clip_size)
        if self.operation == COPY:
            return self.grid, self._copied()
        return self.grid, self._clip_content(self.clip, self.clip_size)  # a flood fill that is refused

    def _transformed(self) -> np.ndarray:
        """Lifts the selected cells, leaves black, and puts down those that are not black."""
        grid = np.maximum(self.grid, 0)
        top, left, bottom, right = _box(self.selection)
        lifted = np.where(self.selection, grid, 0)[top:bottom, left:right]
        result = np.where(self.selection, 0, grid)
        if self.operation in MOVES:
            row_step, column_step = MOVES[self.operation]
            top, left = top + row_step, left + column_step
        elif self.operation in FLIP_AXES:
            lifted = np.flip(lifted, FLIP_AXES[self.operation])
        else:
            turns = QUARTER_TURNS[self.operation]
            top, left = _turned_corner(top, left, bottom - 1, right - 1, turns)
            lifted = np.rot90(lifted, turns)
        for (row, column), color in np.ndenumerate(lifted):
            if color > 0 and 0 <= top + row < self.size[0] and 0 <= left + column < self.size[1]:
                result[top + row, left + column] = color
        return result

    def _pasted(self) -> np.ndarray:
        result = np.maximum(self.grid, 0)
        top, left, _, _ = _box(self.selection)
        content = np.maximum(self.clip, 0)[: self.clip_size[0], : self.clip_size[1]]
        target = result[top : top + content.shape[0], left : left + content.shape[1]]
        target[:] = content[: target.shape[0], : target.shape[1]]
        return result

    def _copied(self) -> np.ndarray:
        top, left, bottom, right = _box(self.selection)
        if bottom - 1 > self.size[0] or right - 1 > self.size[1]:
            return self._clip_content(self.clip, self.clip_size)
        content = np.where(self.selection, np.maximum(self.grid, 0), 0)[top:bottom, left:right]
        return self._clip_content(_placed(content, self.grid.shape), content.shape)

    def _visible(self, grid: np.ndarray) -> np.ndarray:
        return np.where(self.grid >= 0, grid, PADDING).astype(np.int8)

    def _clip_content(self, clip: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        """Returns a clipboard with black for holes, as ARCLE keeps it, and -1 outside its box."""
        return _placed(np.maximum(clip[: size[0], : size[1]], 0), clip.shape)


def _turned_corner(top: int, left: int, bottom: int, right: int, turns: int) -> tuple[int, int]:
    """Returns the corner of a box after a quarter turn about its center, rounded as ARCLE does."""
    row, column = (bottom + top) / 2, (right + left) / 2
    if (bottom - top) % 2 == (right - left) % 2:
        return int(np.floor(row - column + left)), int(np.floor(column - row + top))
    rows = row + turns * (column - left), row + turns * (column - right)
    columns = column - turns * (row - top), column - turns * (row - bottom)
    return int(np.floor(min(rows))), int(np.floor(min(columns)))


def _box(selection: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(selection.any(axis=1)), np.flatnonzero(selection.any(axis=0))
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def _placed(content: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    placed = np.full(shape, PADDING, np.int8)
    placed[: content.shape[0], : content.shape[1]] = content
    return placed
