"""Experts for the tests of recording, in a module that worker processes can import; nothing here needs JAX."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from jaxarc.experts import CannotSolveError, Pair

TINY = [([[1, 2]], [[2, 1]]), ([[3]], [[3, 3], [3, 4]]), ([[5, 0]], [[5]]), ([[0]], [[7]])]
"""Inputs and outputs of a few small pairs."""


def tiny_pairs():
    return [Pair(*(np.array(grid, np.int8) for grid in pair)) for pair in TINY]


class CellExpert:
    """Resizes, fills cell by cell, submits."""

    name = "cells"
    version = 1

    def solve(self, pair, action_format):
        height, width = pair.output.shape
        at = lambda row, column: (row, column) * (2 if action_format == "bbox" else 1)
        fills = [(int(pair.output[r, c]), *at(r, c)) for r in range(height) for c in range(width)]
        return [(33, *at(height - 1, width - 1)), *fills, (34, *at(0, 0))]


class CountingExpert(CellExpert):
    """Remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def solve(self, pair, action_format):
        self.asked.append(pair)
        return super().solve(pair, action_format)


class OddExpert(CellExpert):
    """Does wrong, each time otherwise, where the output is one of the tiny ones; else as it should."""

    name = "odd"

    def solve(self, pair, action_format):
        good = super().solve(pair, action_format)
        match pair.output.tolist():
            case [[2, 1]]:
                raise CannotSolveError("it is too\nhard")
            case [[3, 3], [3, 4]]:
                return [(77, *good[0][1:]), *good]
            case [[5]]:
                return good[-1:]
        return good


class BrittleError(Exception):
    """An error that is nobody's but the expert's."""


class BrittleExpert(CellExpert):
    name = "brittle"

    def solve(self, pair, action_format):
        raise BrittleError("glass")


class LoopingExpert(CellExpert):
    """Loops for ever on outputs of one cell with color 5."""

    name = "looping"

    def solve(self, pair, action_format):
        while pair.output.tolist() == [[5]]:
            pass
        return super().solve(pair, action_format)


class DyingExpert(CellExpert):
    """Takes its process along on outputs of one cell with color 5, and prints a lot."""

    name = "dying"

    def solve(self, pair, action_format):
        print("not an answer")
        if pair.output.tolist() == [[5]]:
            os._exit(3)
        return super().solve(pair, action_format)


class ExitingExpert(CellExpert):
    """Calls ``sys.exit`` on outputs of one cell with color 5."""

    name = "exiting"

    def solve(self, pair, action_format):
        if pair.output.tolist() == [[5]]:
            sys.exit("that is all")
        return super().solve(pair, action_format)


class ReadingExpert(CellExpert):
    """Starts a program that reads its standard input to the end."""

    name = "reading"

    def solve(self, pair, action_format):
        subprocess.run([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], check=True)
        return super().solve(pair, action_format)


class ForkingExpert(CellExpert):
    """Loops for ever on outputs of one cell with color 5, together with a fork of its process."""

    name = "forking"

    def solve(self, pair, action_format):
        if pair.output.tolist() == [[5]]:
            os.fork()
            time.sleep(60)
        return super().solve(pair, action_format)


class MeetingExpert(CellExpert):
    """Goes on with a pair only when another process is at a pair too, which it sees by files in ``folder``."""

    name = "meeting"

    def __init__(self, folder):
        self.folder = Path(folder)

    def solve(self, pair, action_format):
        (self.folder / str(os.getpid())).touch()
        end = time.monotonic() + 10
        while len(list(self.folder.iterdir())) < 2:
            if time.monotonic() > end:
                raise CannotSolveError("nobody came")
            time.sleep(0.01)
        return super().solve(pair, action_format)


class SlowExpert(CellExpert):
    """Takes a moment for each pair."""

    name = "slow"

    def solve(self, pair, action_format):
        time.sleep(0.05)
        return super().solve(pair, action_format)
