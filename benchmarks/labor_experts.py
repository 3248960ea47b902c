"""Experts whose solution is simple and whose work is a setting, so that the cost of recording shows."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.expert import Action, ActionFormat, Pair


@dataclasses.dataclass
class HeldLabor:
    """Works in plain Python, so it holds the interpreter: no second one works in this process meanwhile."""

    rounds: int  # about 0.1 microseconds each
    name: str = "held-labor"
    version: int = 1

    def solve(self, pair: Pair, action_format: ActionFormat) -> Sequence[Action]:
        """Work, then fill each color's cells; masks only."""
        number = 1
        for _ in range(self.rounds):
            number = (number * 48271) % 2147483647
        return _fill_each_color(pair)


@dataclasses.dataclass
class ReleasedLabor:
    """Works in C code that lets go of the interpreter (PBKDF2), so several can work in one process."""

    rounds: int  # about 0.5 microseconds each
    name: str = "released-labor"
    version: int = 1
    releases_gil: ClassVar[bool] = True

    def solve(self, pair: Pair, action_format: ActionFormat) -> Sequence[Action]:
        """Work, then fill each color's cells; masks only."""
        if self.rounds:
            hashlib.pbkdf2_hmac("sha256", pair.output.tobytes(), b"labor", self.rounds)
        return _fill_each_color(pair)


def _fill_each_color(pair: Pair) -> list[Action]:
    height, width = pair.output.shape
    cells = {color: np.argwhere(pair.output == color).ravel().tolist() for color in np.unique(pair.output).tolist()}
    fills = [(c.FILL + color, *places) for color, places in cells.items()]
    return [(c.RESIZE, height - 1, width - 1), *fills, (c.SUBMIT, 0, 0)]
