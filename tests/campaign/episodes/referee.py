"""What the environments of a batch should do, by the NumPy reference, and where they do something else."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from reference.augmentation import augmented_pairs
from reference.canvas import PADDING, active_size, cropped, pad
from reference.episode import ReferenceEpisode
from reference.observation import History, demonstrations, encode, useful_operations

from campaign.episodes.drawn_episodes import GENERATED_COUNTS, Actions, DrawnTasks
from campaign.episodes.episode_options import Setting

Facts = dict[str, np.ndarray]


NUMBERS = {  # of an episode
    **dict.fromkeys(("step_count", "submission_count", "pair_index"), np.int32),
    **dict.fromkeys(("height", "width"), np.int8),
    **dict.fromkeys(("similarity", "reward", "discount"), np.float32),
    **dict.fromkeys(("terminated", "truncated", "done", "solved", "invalid_action"), bool),
}
STARTING = ("state.key", "state.augmentation", "state.pairs")  # views that stay as they are for a whole episode
ROUNDING = 2.0**-22  # of the sum of the terms of a reward: four of them, each rounded by at most 2**-24


class DisagreementError(AssertionError):
    """Something that an environment shows is not what the reference says."""

    def __init__(self, fact: str, env: int, expected: Any, shown: Any):
        super().__init__(f"{fact} of environment {env} is {_short(shown)}, the reference says {_short(expected)}")
        self.fact, self.env, self.expected, self.shown = fact, env, expected, shown


class Referee:
    """Follows a batch of environments.

    What the reference cannot know it takes from the environments when an episode starts, after a check that it is
    allowed: which task and pair were drawn, how the task was augmented, the pairs of a generated task, a random start.

    Args:
        setting: the options.
        num_envs: B.
        tasks: what is played; None: tasks that are generated.
    """

    def __init__(self, setting: Setting, num_envs: int, tasks: DrawnTasks | None):
        self.setting, self.num_envs, self.tasks = setting, num_envs, tasks
        self.rules = setting.reference_rules()
        self.episodes: list[ReferenceEpisode] = [None] * num_envs  # type: ignore[list-item]
        grids = lambda *lead: np.full((num_envs, *lead, *setting.shape), PADDING, np.int8)
        self.grid, self.target, self.clipboard, self.pair_input = grids(), grids(), grids(), grids()
        self.selected = np.zeros((num_envs, *setting.shape), bool)
        num_slots = GENERATED_COUNTS[0] if tasks is None else tasks.most_train
        self.demo_inputs, self.demo_outputs = grids(num_slots), grids(num_slots)
        self.task_index = np.zeros(num_envs, np.int32)
        self.origin: Facts = {}  # what stays as it is for an episode: keys, augmentations, generated pairs
        self.exact_rewards = 0  # those with the very bits of the reference
        self.history: History | None = None
        if setting.history_capacity:
            numbers = {"point": 2, "bbox": 4, "mask": setting.shape[0] * setting.shape[1]}
            count = numbers[setting["selection_format"]]
            clips = setting["invalid_action_policy"] == "clip" and setting["selection_format"] != "mask"
            highest = [size - 1 for size in setting.shape] * (count // 2) if clips else None
            self.history = History(num_envs, setting.history_capacity, count, highest)

    def begin(self, shown: Facts, places: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Follows episodes that were reset.

        Args:
            shown: what the environments show.
            places: the tasks and pairs that were asked for, where they were.
        """
        if places is not None:
            _compare("state.task_index", places[0], shown["state.task_index"])
            _compare("state.pair_index", places[1], shown["state.pair_index"])
        self.origin = {name: fact.copy() for name, fact in shown.items() if name.startswith(STARTING)}
        for env in range(self.num_envs):
            self._adopt(env, shown, is_placed=places is not None)
        self._read_numbers()
        self.check_states(shown)
        if "info['terminated']" in shown:
            self._check_all(self._info(np.zeros(self.num_envs, bool)), shown)

    def step(self, actions: Actions) -> None:
        """Takes the same step in every episode of the reference."""
        kind = self.setting["selection_format"]
        operations = actions.operations.tolist()
        selections = actions.selections if kind == "mask" else actions.selections.tolist()
        before = self.before = self.numbers
        for env, episode in enumerate(self.episodes):
            canvas = episode.canvas
            episode.step(operations[env], (kind, selections[env]))
            if episode.canvas is not canvas:
                self._copy_canvas(env)
                if episode.pair_index != before["pair_index"][env]:
                    self._copy_pair(env)
        self._read_numbers()
        if self.history is not None:
            envs = np.flatnonzero(~before["done"])
            chosen = actions.selections.reshape(len(actions.selections), -1)[envs]  # of none too, when all have ended
            times, pairs, valid = before["step_count"], before["pair_index"], ~self.numbers["invalid_action"]
            self.history.remember(envs, chosen, actions.operations[envs], times[envs], pairs[envs], valid[envs])

    def check_outcomes(self, shown: Facts) -> None:
        """Compares what a step returned, which belongs to the episode that was played.

        Raises:
            DisagreementError: naming the first difference.
        """
        self._check_all(self._info(self.numbers["invalid_action"]), shown)
        _compare("done", self.numbers["done"], shown["done"])
        self._compare_rewards(shown["reward"])
        if self.setting["auto_reset"]:
            self._check_all(self._observation("info['final_observation']"), shown)

    def restart(self, shown: Facts) -> None:
        """Follows auto-reset: where an episode ended, the next one."""
        ended = np.flatnonzero(self.numbers["done"])
        for name, fact in self.origin.items():
            fact[ended] = shown[name][ended]
        for env in ended.tolist():
            if self.history is not None:
                self.history.forget(env)
            self._adopt(env, shown)
        if len(ended):
            self._read_numbers()

    def check_states(self, shown: Facts) -> None:
        """Compares the states and the observations of them.

        Raises:
            DisagreementError: naming the first difference.
        """
        now = self.numbers
        size = np.stack([now["height"], now["width"]], axis=1)
        solved = self.solved if self.setting.switches_pairs else [int(bool(pairs)) for pairs in self.solved]
        expected = {
            **self.origin,
            "state.working_grid": self.grid,
            "state.working_grid_mask": self.grid >= 0,
            "state.target_grid": self.target,
            "state.target_grid_mask": self.target >= 0,
            "state.clipboard": self.clipboard,
            "state.selected": self.selected,
            "state.grid_size": size,
            "state.step_count": now["step_count"],
            "state.submission_count": now["submission_count"],
            "state.task_index": self.task_index,
            "state.pair_index": now["pair_index"],
            "state.solved_pairs": np.array(solved, np.int64).astype(np.int32),
            "state.is_solved": np.array(solved) != 0,
            "state.similarity_score": now["similarity"],
            "state.terminated": now["terminated"],
            "state.truncated": now["truncated"],
            "state.done": now["done"],
            **self._observation("observation"),
        }
        self._check_all(expected, shown)

    def check_history(self, shown: np.ndarray) -> None:
        """Compares the records of the last actions."""
        assert self.history is not None
        _compare("state.action_history", self.history.records, shown)

    def num_running(self) -> int:
        """Returns how many episodes are not done."""
        return int((~self.numbers["done"]).sum())

    def legal_operations(self) -> np.ndarray:
        """Returns bool[42], the same for all episodes."""
        return self.episodes[0].legal_operations()

    def _adopt(self, env: int, shown: Facts, is_placed: bool = False) -> None:
        setting, previous = self.setting, int(self.task_index[env])
        task, pair = int(shown["state.task_index"][env]), int(shown["state.pair_index"][env])
        train, test = self._pairs_played(env, task, shown)
        if not is_placed:
            self._check_draw(env, task, pair, len(train if setting["mode"] == "train" else test), previous)
        start_grid = shown["state.working_grid"][env].copy()
        episode = ReferenceEpisode(train, test, *setting.shape, pair, start_grid, **self.rules)
        _check_start(env, setting, start_grid, episode)
        self.episodes[env], self.task_index[env] = episode, task
        if setting["include_demonstrations"]:
            self.demo_inputs[env], self.demo_outputs[env] = PADDING, PADDING
            for slot, (source, target) in enumerate(train):
                self.demo_inputs[env, slot] = pad(source, *setting.shape)
                self.demo_outputs[env, slot] = pad(target, *setting.shape)
        self._copy_canvas(env)
        self._copy_pair(env)

    def _pairs_played(self, env: int, task: int, shown: Facts) -> tuple[list, list]:
        """Returns the demonstrations and tests of an environment's task, augmented."""
        if self.tasks is None:
            tables = (shown[f"state.pairs.{side}"][env] for side in ("inputs", "outputs"))
            pairs = list(zip(*(map(cropped, table.reshape(-1, *self.setting.shape)) for table in tables), strict=True))
            return pairs[: GENERATED_COUNTS[0]], pairs[GENERATED_COUNTS[0] :]
        place = 0 if self.setting["entry"] == "guide" else task
        train, test = self.tasks.train[place], self.tasks.test[place]
        drawn = {
            part: shown[f"state.augmentation.{part}"][env]
            for part in ("symmetry", "colors", "order")
            if f"state.augmentation.{part}" in shown
        }
        if not drawn:
            return train, test
        _check_augmentation(env, self.setting, drawn, len(train))
        symmetry, colors = int(drawn.get("symmetry", 0)), drawn.get("colors")
        plays_train = self.setting["mode"] == "train"
        train_is_used = plays_train or self.setting["include_demonstrations"]
        return (
            augmented_pairs(train, symmetry, colors, drawn.get("order")) if train_is_used else [],
            [] if plays_train else augmented_pairs(test, symmetry, colors),
        )

    def _check_draw(self, env: int, task: int, pair: int, num_pairs: int, previous: int) -> None:
        """Checks that a task and a pair may be drawn."""
        setting = self.setting
        if setting["entry"] != "guide":
            weights = self.tasks.weights if self.tasks is not None else [1.0, 1.0]
            allowed = [place for place, weight in enumerate(weights) if weight > 0]
            if setting["task_order"] == "in_turn" and self.episodes[env] is not None:
                allowed = [min([place for place in allowed if place > previous] or allowed)]
            if task not in allowed:
                raise DisagreementError("state.task_index", env, f"one of {allowed}", task)
        elif task != -1:
            raise DisagreementError("state.task_index", env, -1, task)
        choice = setting["demo_selection" if setting["mode"] == "train" else "test_selection"]
        only_first = choice == "first" or setting["place"] == "one pair only"
        if not 0 <= pair < (1 if only_first else num_pairs):
            raise DisagreementError("state.pair_index", env, f"0 .. {0 if only_first else num_pairs - 1}", pair)

    def _info(self, invalid: np.ndarray) -> Facts:
        """Returns what info holds of the episodes as they are."""
        now, setting = self.numbers, self.setting
        is_told = setting["mode"] == "train"
        solved = np.array(self.solved) != 0
        facts = {
            "terminated": now["terminated"],
            "truncated": now["truncated"],
            "discount": now["discount"],
            "success": solved & (is_told or setting["score_on_submit"]),
            "similarity": now["similarity"] * np.float32(is_told),
            "invalid_action": invalid,
            "step_count": now["step_count"],
            "submission_count": now["submission_count"],
            "task_index": self.task_index,
            "pair_index": now["pair_index"],
        }
        return {f"info['{name}']": fact for name, fact in facts.items()}

    def _observation(self, name: str) -> Facts:
        """Returns what the episodes as they are show to an agent."""
        setting, form = self.setting, self.setting["grid_format"]
        entries: dict[str, Any] = {}
        if setting["reveal_target"]:
            entries["target_grid"] = encode(self.target, form)
        if setting["include_input"]:
            entries["input_grid"] = encode(self.pair_input, form)
        if setting["include_clipboard"]:
            entries["clipboard"] = encode(self.clipboard, form)
        if setting["include_selection"]:
            entries["selection"] = self.selected
        if setting["include_demonstrations"]:
            played = self.numbers["pair_index"] if setting["mode"] == "train" else None
            shown = demonstrations(self.demo_inputs, self.demo_outputs, played, form)
            entries |= {f"demonstrations']['{part}": value for part, value in shown.items()}
        if setting["include_operations"]:
            entries["operations"] = useful_operations(self.legal_operations(), self.clipboard)
        if setting["include_step_count"]:
            entries["step_count"] = self.numbers["step_count"]
        if setting["include_submission_count"]:
            entries["submission_count"] = self.numbers["submission_count"]
        grid = encode(self.grid, form)
        if not entries:
            return {name: grid}
        return {f"{name}['{entry}']": value for entry, value in {"working_grid": grid, **entries}.items()}

    def _read_numbers(self) -> None:
        """Collects the counters of all episodes, one array for each."""
        columns = zip(*map(attrgetter(*NUMBERS), self.episodes), strict=True)
        self.numbers = {
            name: np.array(column, dtype) for (name, dtype), column in zip(NUMBERS.items(), columns, strict=True)
        }
        self.solved = [sum(1 << pair for pair in episode.solved_pairs) for episode in self.episodes]

    def _compare_rewards(self, shown: np.ndarray) -> None:
        """Allows a difference of float32 rounding: a compiler may fuse a product and a sum into one operation."""
        expected = self.numbers["reward"]
        rules, submitted = self.rules, self.numbers["submission_count"] > self.before["submission_count"]
        similarities = rules["gamma"] * self.numbers["similarity"] + self.before["similarity"]
        terms = (
            abs(rules["similarity_weight"]) * similarities
            + abs(rules["step_penalty"])
            + abs(rules["invalid_action_penalty"]) * self.numbers["invalid_action"]
            + max(abs(rules["success_bonus"]), abs(rules["unsolved_submission_penalty"])) * submitted
        )
        is_near = np.abs(expected.astype(float) - shown) <= ROUNDING * terms
        self.exact_rewards += int((expected == shown).sum())
        _compare("reward", expected, np.where(is_near, expected, shown))

    def _copy_canvas(self, env: int) -> None:
        canvas = self.episodes[env].canvas
        self.grid[env], self.clipboard[env], self.selected[env] = canvas.grid, canvas.clipboard, canvas.selection

    def _copy_pair(self, env: int) -> None:
        self.target[env], self.pair_input[env] = self.episodes[env].target, self.episodes[env].pair_input

    def _check_all(self, expected: Facts, shown: Facts) -> None:
        for name, fact in expected.items():
            if name not in shown:
                raise DisagreementError(name, 0, "present", "missing")
            _compare(name, fact, shown[name])


def _compare(name: str, expected: np.ndarray, shown: np.ndarray) -> None:
    if expected.dtype != shown.dtype or expected.shape != shown.shape:
        kinds = (f"{x.dtype}{list(x.shape)}" for x in (expected, shown))
        raise DisagreementError(name, 0, *kinds)
    if not np.array_equal(expected, shown):
        env = int(np.flatnonzero((expected != shown).reshape(len(shown), -1).any(axis=1))[0])
        raise DisagreementError(name, env, expected[env], shown[env])


def _check_start(env: int, setting: Setting, start_grid: np.ndarray, episode: ReferenceEpisode) -> None:
    """Checks a start grid against the rule of the setting."""
    kind, size = setting["start_grid"], active_size(start_grid)
    pair_input, target = episode.pair_input, episode.target
    if kind in ("empty", "random"):
        colors = np.zeros_like(start_grid) if kind == "empty" else np.clip(start_grid, 0, 9)
        expected = pad(colors[: setting.start_shape[0], : setting.start_shape[1]], *setting.shape)
    elif kind == "partial" and not np.array_equal(start_grid, pair_input):
        right = (start_grid == target) | (target < 0)
        expected = np.where(target < 0, PADDING, np.where(right, target, np.maximum(pair_input, 0)))
    else:
        expected = pair_input
    if not np.array_equal(expected, start_grid):
        raise DisagreementError("state.working_grid", env, f"{kind}, e.g. {expected}", f"{size}: {start_grid}")


def _check_augmentation(env: int, setting: Setting, drawn: dict[str, np.ndarray], num_train: int) -> None:
    """Checks that an augmentation is one that the setting allows."""
    symmetries = {"none": 1, "flips": 4, "all": 8}[setting["symmetries"]]
    if not 0 <= int(drawn.get("symmetry", 0)) < symmetries:
        raise DisagreementError("state.augmentation.symmetry", env, f"0 .. {symmetries - 1}", drawn["symmetry"])
    colors = drawn.get("colors", np.arange(10))
    kept = setting["recolor"] != "keep_black" or colors[0] == 0
    if sorted(colors.tolist()) != list(range(10)) or not kept:
        raise DisagreementError("state.augmentation.colors", env, f"a permutation, {setting['recolor']}", colors)
    order = drawn.get("order", np.arange(num_train)).tolist()
    if sorted(order[:num_train]) != list(range(num_train)) or order[num_train:] != list(range(num_train, len(order))):
        raise DisagreementError("state.augmentation.order", env, f"a permutation of the first {num_train}", order)


def _short(value: Any) -> str:
    return np.array2string(value, separator=", ", threshold=2000) if isinstance(value, np.ndarray) else repr(value)
