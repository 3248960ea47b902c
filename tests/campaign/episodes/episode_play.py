"""Plays one combination of options for a while, and compares every step with the reference."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import asdict, dataclass, field

import numpy as np
from reference.canvas import cropped
from reference.episode import ReferenceEpisode

from campaign.episodes.drawn_episodes import GENERATED_COUNTS, ActionDraw, Actions, DrawnTasks, draw_tasks
from campaign.episodes.environments import Environments
from campaign.episodes.episode_options import SCAN_STEPS, Setting
from campaign.episodes.referee import DisagreementError, Facts, Referee


@dataclass
class StepCounts:
    """What was compared."""

    steps: int = 0  # of running episodes
    idle_steps: int = 0  # of episodes that are done already
    episodes: int = 0  # that ended
    solved: int = 0  # submits that solved a pair
    invalid: int = 0  # invalid or illegal actions that were taken
    raised: int = 0  # batches with a wrong action that were refused
    histories: int = 0  # comparisons of whole histories
    exact_rewards: int = 0  # with the very bits of the reference; the others differ by rounding

    def add(self, other: StepCounts) -> None:
        for name, number in asdict(other).items():
            setattr(self, name, getattr(self, name) + number)


logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)  # errors that are provoked here

ROUND_CALLS = 200  # calls after which other tasks are played
HISTORY_CALLS = 16  # calls after which a long history is compared; a short one is after every call
SHORT_HISTORY = 4
GUIDED_SHARE = 0.15
SPOILED_SHARE = 0.05  # of the calls, under the policy "raise"
LONGEST_TRAIL = 200  # steps that are kept for a reproduction; no episode is longer


@dataclass(frozen=True)
class FoundEpisode:
    """The episode in which something differs, up to there."""

    pairs: list  # that the mode plays, without padding
    pair_index: int  # of the first
    actions: list[tuple[int, np.ndarray]]


@dataclass
class Match:
    """Environments and referee side by side."""

    setting: Setting
    seed: int
    environments: Environments = field(init=False)
    referee: Referee = field(init=False)
    tally: StepCounts = field(default_factory=StepCounts)
    step_number: int = 0  # steps of the whole batch so far

    def __post_init__(self) -> None:
        self.environments = Environments(self.setting)
        self.rng = np.random.default_rng(self.seed)
        self.trail: deque[Actions] = deque(maxlen=LONGEST_TRAIL)
        self.began = np.zeros(self.environments.num_envs, int)  # step number at which each episode began

    def run(self, steps: int) -> StepCounts:
        """Plays until so many steps of running episodes were compared.

        Raises:
            DisagreementError: at the first difference.
        """
        while self.tally.steps < steps:
            self._begin_round()
            for call in range(ROUND_CALLS):
                if self._too_few_run():
                    self._reset()
                self._call()
                if self.referee.history is not None and (
                    self.setting.history_capacity <= SHORT_HISTORY or call % HISTORY_CALLS == HISTORY_CALLS - 1
                ):
                    self.referee.check_history(self.environments.history())
                    self.tally.histories += 1
                if self.tally.steps >= steps:
                    break
        return self.tally

    def found_episode(self, env: int) -> FoundEpisode | None:
        """Returns what an environment has played since its episode began; None where it has just begun.

        A start grid that is no input stands in the place of the input.
        """
        length = self.step_number - int(self.began[env])
        if not length:
            return None
        pair = int(self.first_pairs[env])
        actions = [actions.of(env) for actions in list(self.trail)[-length:]]
        pairs = [tuple(cropped(grid) for grid in pair) for pair in self.referee.episodes[env].pairs]
        pairs[pair] = (cropped(self.first_grids[env]), pairs[pair][1])
        return FoundEpisode(pairs, pair, actions)

    def _begin_round(self) -> None:
        setting = self.setting
        tasks: DrawnTasks | None = None
        if setting["tasks"] != "generated":
            tasks = draw_tasks(self.rng, setting["tasks"], setting["weights"], setting.shape)
        self.environments.load(tasks, self.seed)
        self._reset()
        is_strict = setting["invalid_action_policy"] == "raise"
        legal = self.referee.legal_operations()
        self.actions = ActionDraw(self.rng, setting["selection_format"], setting.shape, legal, is_strict)

    def _reset(self) -> None:
        tasks, count = self.environments.tasks, self.environments.num_envs
        places = None
        if self.setting["place"] == "given":
            places = self._draw_places(tasks, count)
        shown = self.environments.reset(int(self.rng.integers(2**31)), places)
        self.referee = Referee(self.setting, count, tasks)
        self.trail.clear()
        self.began[:] = self.step_number
        self.first_pairs = shown["state.pair_index"].copy()
        self.first_grids = shown["state.working_grid"].copy()
        self.referee.begin(shown, places)

    def _draw_places(self, tasks: DrawnTasks | None, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns a random task and pair for each environment, those of weight 0 too."""
        if tasks is None:
            numbers = [GENERATED_COUNTS[self.setting["mode"] == "test"]] * 2
        else:
            numbers = [len(pairs) for pairs in (tasks.train if self.setting["mode"] == "train" else tasks.test)]
        chosen = self.rng.integers(0, len(numbers), count)
        pairs = self.rng.integers(0, np.array(numbers)[chosen])
        return chosen.astype(np.int32), pairs.astype(np.int32)

    def _too_few_run(self) -> bool:
        running = self.referee.num_running()
        return running == 0 or (running < self.environments.num_envs / 4 and self.rng.random() < 0.2)

    def _call(self) -> None:
        """Takes one step, or those of one scan."""
        count = self.environments.num_envs
        if self.setting["entry"] == "scan":
            several = [self.actions.draw(count) for _ in range(SCAN_STEPS)]
            for actions, shown in zip(several, self.environments.scan(several), strict=True):
                self._compare(actions, shown)
            return
        actions = self.actions.draw(count)
        self.actions.guide(actions, self.referee.episodes, GUIDED_SHARE)
        if self.setting["invalid_action_policy"] == "raise" and self.rng.random() < SPOILED_SHARE:
            self._check_refusal()
        self._compare(actions, self.environments.step(actions))

    def _compare(self, actions: Actions, shown: Facts) -> None:
        referee, tally = self.referee, self.tally
        running = referee.num_running()
        self.trail.append(actions)
        self.step_number += 1
        referee.step(actions)
        tally.exact_rewards -= referee.exact_rewards
        referee.check_outcomes(shown)
        tally.exact_rewards += referee.exact_rewards
        now = referee.numbers
        ended = now["done"]
        tally.steps += running
        tally.idle_steps += len(ended) - running
        tally.episodes += int(ended.sum()) - (len(ended) - running)
        tally.solved += int(now["solved"].sum())
        tally.invalid += int(now["invalid_action"].sum())
        if self.setting["auto_reset"]:
            self.began[ended] = self.step_number
            referee.restart(shown)
            self.first_pairs = np.where(ended, shown["state.pair_index"], self.first_pairs)
            self.first_grids = np.where(ended[:, None, None], shown["state.working_grid"], self.first_grids)
        referee.check_states(shown)

    def _check_refusal(self) -> None:
        """Checks that one wrong action of a running episode makes the call raise, as the reference does."""
        env = int(self.rng.choice(np.flatnonzero(~self.referee.numbers["done"])))
        actions = self.actions.draw(self.environments.num_envs)
        self.actions.spoil(actions, env)
        operation, selection = actions.of(env)
        if not _is_refused(self.referee.episodes[env], operation, (self.setting["selection_format"], selection)):
            return  # the wrong value happened to be a good one
        try:
            self.environments.step(actions)
        except (RuntimeError, ValueError):  # JAX 0.10 calls it a ValueError under jax.jit
            self.tally.raised += 1
        else:
            raise DisagreementError("error", env, f"refused: operation {operation}, {selection}", "accepted")


def _is_refused(episode: ReferenceEpisode, operation: int, selection: tuple) -> bool:
    try:
        episode.check(operation, selection)
    except ValueError:
        return True
    return False
