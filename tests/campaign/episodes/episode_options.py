"""The options of an environment, which of them exclude each other, and combinations in which every two values meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SCAN_STEPS = 16  # steps of one compiled scan

FEW_OPERATIONS = (0, 3, 12, 21, 24, 26, 28, 29, 33, 34, 39)
ALLOWED_OPERATIONS = {
    "all": None,
    "few": FEW_OPERATIONS,
    "no submit": (*range(34), 35, 36, 37, 38, 39, 40, 41),
    "clipboard": (28, 29, 30, 31, 34, 35, 38, 41),
    "paste only": (29,),
    "pairs": (7, 32, 34, 35, 36, 37, 38, 39, 40, 41),
}
REWARDS = {
    "usual": {"similarity_weight": 1.0, "step_penalty": -0.01, "success_bonus": 10.0}
    | {"unsolved_submission_penalty": -1.0, "invalid_action_penalty": -0.1},
    "nothing": {"similarity_weight": 0.0, "step_penalty": 0.0, "success_bonus": 0.0}
    | {"unsolved_submission_penalty": 0.0, "invalid_action_penalty": 0.0},
    "odd": {"similarity_weight": 0.7, "step_penalty": 0.013, "success_bonus": -3.1}
    | {"unsolved_submission_penalty": 0.57, "invalid_action_penalty": 1.9},
    "large": {"similarity_weight": 1000.0, "step_penalty": -0.001, "success_bonus": 1e6}
    | {"unsolved_submission_penalty": -12345.678, "invalid_action_penalty": -77.7},
}
SWITCHES = (False, True)
OPTIONS: dict[str, tuple[Any, ...]] = {
    # how it is called
    "entry": ("vmap", "scan", "nested", "single", "guide"),
    "auto_reset": SWITCHES,
    "batch": ("one", "few", "many"),
    "compiled": ("as users do", "quickly"),
    "executor": ("native", "xla"),
    # what is played
    "shape": ((1, 1), (1, 6), (4, 1), (3, 7), (5, 5), (12, 9), (30, 4), (30, 30)),
    "tasks": ("one pair", "few pairs", "uneven", "31 pairs", "generated"),
    "weights": ("alike", "uneven, some 0"),
    "place": ("drawn", "given", "one pair only"),
    "symmetries": ("none", "flips", "all"),
    "recolor": ("none", "keep_black", "all"),
    "shuffle_demos": SWITCHES,
    "start_grid": ("input", "empty", "random", "partial"),
    # the config's own fields
    "selection_format": ("point", "bbox", "mask"),
    "invalid_action_policy": ("raise", "noop", "clip"),
    "allowed_operations": tuple(ALLOWED_OPERATIONS),
    "mode": ("train", "test"),
    "allow_demo_switching": SWITCHES,
    "allow_test_switching": SWITCHES,
    "demo_selection": ("random", "first"),
    "test_selection": ("first", "random"),
    "task_order": ("weighted", "in_turn"),
    "max_episode_steps": (1, 2, 9, 40, 150),
    "max_submissions": (1, 2, 6, 1000),
    "rewards": tuple(REWARDS),
    "gamma": (1.0, 0.9, 0.0),
    "score_on_submit": SWITCHES,
    "history": (0, 1, 4, 1000),
    "grid_format": ("planes", "one_hot", "tokens"),
    "reveal_target": SWITCHES,
    "include_input": SWITCHES,
    "include_clipboard": SWITCHES,
    "include_selection": SWITCHES,
    "include_demonstrations": SWITCHES,
    "include_operations": SWITCHES,
    "include_step_count": SWITCHES,
    "include_submission_count": SWITCHES,
}
OWN_FIELDS = (  # options that are fields of the config, with the same values
    *("executor", "symmetries", "recolor", "shuffle_demos", "start_grid", "selection_format", "invalid_action_policy"),
    *("mode", "allow_demo_switching", "allow_test_switching", "demo_selection", "test_selection", "task_order"),
    *("max_episode_steps", "max_submissions", "gamma", "score_on_submit", "grid_format", "reveal_target"),
    *("include_input", "include_clipboard", "include_selection", "include_demonstrations", "include_operations"),
    *("include_step_count", "include_submission_count"),
)
EXCLUSIONS: tuple[dict[str, Any], ...] = (  # a combination that has all of one line is not allowed
    {"mode": ("test",), "reveal_target": (True,)},
    {"mode": ("test",), "start_grid": ("partial",)},
    {"symmetries": ("all",), "shape": tuple(shape for shape in OPTIONS["shape"] if shape[0] != shape[1])},
    {"entry": ("single",), "batch": ("few", "many")},
    {"entry": ("nested",), "batch": ("one",)},
    {"entry": ("guide",), "auto_reset": (True,)},  # the guide API plays one task, and ends with it
    {"entry": ("guide",), "tasks": ("generated",)},
    {"entry": ("guide",), "place": ("given", "one pair only")},
    {"entry": ("guide",), "weights": ("uneven, some 0",)},
    {"auto_reset": (False,), "task_order": ("in_turn",)},
    {"tasks": ("generated",), "shape": ((1, 1), (1, 6), (4, 1), (3, 7))},
)


def forbids(combination: Combination) -> bool:
    """Returns whether a combination, of which options may still be missing, has two values that exclude each other."""
    return any(
        all(name in combination and combination[name] in values for name, values in exclusion.items())
        for exclusion in EXCLUSIONS
    )


@dataclass(frozen=True)
class Setting:
    """One combination of options, as the config and the reference want it."""

    combination: Combination

    def __getitem__(self, option: str) -> Any:
        return self.combination[option]

    @property
    def shape(self) -> tuple[int, int]:
        return self["shape"]

    @property
    def history_capacity(self) -> int:
        """Records that are kept, 0 where there is no history."""
        return min(self["history"], self["max_episode_steps"])

    @property
    def start_shape(self) -> tuple[int, int]:
        """Rows and columns of an empty or random start grid."""
        return (self.shape[0] + 1) // 2, max(1, self.shape[1] - 1)

    @property
    def switches_pairs(self) -> bool:
        return self["allow_demo_switching"] if self["mode"] == "train" else self["allow_test_switching"]

    def config_fields(self) -> dict[str, Any]:
        """Returns what ``jaxarc.make`` is given."""
        history = {"history_enabled": self["history"] > 0, "max_history_length": max(self["history"], 1)}
        return {
            "max_grid_height": self.shape[0],
            "max_grid_width": self.shape[1],
            "start_height": self.start_shape[0],
            "start_width": self.start_shape[1],
            "allowed_operations": ALLOWED_OPERATIONS[self["allowed_operations"]],
            **{name: self[name] for name in OWN_FIELDS},
            **history,
            **REWARDS[self["rewards"]],
        }

    def reference_rules(self) -> dict[str, Any]:
        """Returns what the reference is given; it knows nothing of the config's defaults."""
        names = (
            *("mode", "max_episode_steps", "max_submissions", "allow_demo_switching", "allow_test_switching"),
            *("invalid_action_policy", "gamma", "score_on_submit"),
        )
        return {
            "allowed_operations": ALLOWED_OPERATIONS[self["allowed_operations"]],
            **{name: self[name] for name in names},
            **REWARDS[self["rewards"]],
        }


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
