"""Combinations of options, drawn so that soon every value of one option has met every value of every other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Combination = dict[str, Any]
Meeting = tuple[tuple[str, int], tuple[str, int]]  # two options in the order of their names, with places of values


class Schedule:
    """An endless series of combinations; the same seed draws the same.

    Each begins with two values that have not met yet and adds, option by option, the value that meets most others for
    the first time. Two values that twenty attempts bring into no allowed combination count as unable to meet.

    Args:
        options: the values of each option.
        forbids: whether a combination, of which options may still be missing, breaks a rule.
        seed: of all draws.
    """

    def __init__(self, options: Mapping[str, Sequence[Any]], forbids: Callable[[Combination], bool], seed: int):
        self.options = options
        self.forbids = forbids
        self.rng = np.random.default_rng(seed)
        places = [[(name, place) for place in range(len(values))] for name, values in sorted(options.items())]
        self.waiting: dict[Meeting, None] = dict.fromkeys(
            meeting for one, other in itertools.combinations(places, 2) for meeting in itertools.product(one, other)
        )
        self.impossible: set[Meeting] = set()
        self.num_met = 0

    def draw(self, at_last: Combination | None = None) -> Combination:
        """Returns the next combination.

        Args:
            at_last: values that every combination has once all have met.
        """
        while self.waiting:
            meeting = list(self.waiting)[int(self.rng.integers(len(self.waiting)))]
            for _ in range(20):
                if chosen := self._completed(dict(meeting)):
                    self._count(chosen)
                    return self._values(chosen)
            self.impossible.add(meeting)
            del self.waiting[meeting]
        fixed = {name: self.options[name].index(value) for name, value in (at_last or {}).items()}
        while not (chosen := self._completed(fixed)):
            pass
        return self._values(chosen)

    def coverage(self) -> str:
        """Says how many pairs of values have met."""
        possible = self.num_met + len(self.waiting)
        return f"{self.num_met} of {possible} pairs of option values met ({len(self.impossible)} exclude each other)"

    def _completed(self, chosen: dict[str, int]) -> dict[str, int]:
        """Returns a place for every option; empty where that is not possible on the way that was taken."""
        chosen = dict(chosen)
        if self.forbids(self._values(chosen)):
            return {}
        names = list(self.options)
        self.rng.shuffle(names)
        for name in names:
            if name in chosen:
                continue
            places = self.rng.permutation(len(self.options[name])).tolist()
            allowed = [place for place in places if not self.forbids(self._values({**chosen, name: place}))]
            if not allowed:
                return {}
            chosen[name] = max(allowed, key=lambda place, name=name: self._new_meetings(chosen, name, place))
        return chosen

    def _new_meetings(self, chosen: dict[str, int], name: str, place: int) -> int:
        return sum(_meeting((name, place), other) in self.waiting for other in chosen.items())

    def _count(self, chosen: dict[str, int]) -> None:
        for one, other in itertools.combinations(chosen.items(), 2):
            if _meeting(one, other) in self.waiting:
                del self.waiting[_meeting(one, other)]
                self.num_met += 1

    def _values(self, chosen: dict[str, int]) -> Combination:
        return {name: self.options[name][place] for name, place in chosen.items()}


def _meeting(one: tuple[str, int], other: tuple[str, int]) -> Meeting:
    return (one, other) if one < other else (other, one)
