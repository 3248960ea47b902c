"""From a mismatch to the shortest episode that shows it, as a test that can be pasted."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from campaign.episodes.drawn_episodes import Actions, DrawnTasks
from campaign.episodes.environments import Environments
from campaign.episodes.episode_options import Setting
from campaign.episodes.episode_play import FoundEpisode, Match
from campaign.episodes.referee import DisagreementError, Referee
from jaxarc.config import JaxArcConfig

ALONE = {  # how one environment replays what it did in a batch
    "entry": "vmap",
    "batch": "one",
    "auto_reset": False,
    "place": "given",
    "task_order": "weighted",
    "weights": "alike",
    "tasks": "few pairs",
    "symmetries": "none",
    "recolor": "none",
    "shuffle_demos": False,
    "start_grid": "input",
}


def report(play: Match, found: DisagreementError) -> str:
    """Says what differs and where; with a test of the environment alone if it differs there too.

    Args:
        play: stopped at the mismatch.
        found: the mismatch.
    """
    lines = [f"step {play.step_number}: {found}", f"options: {play.setting.combination}"]
    episode = play.found_episode(found.env)
    if episode is None:
        return "\n".join([*lines, "It is about how an episode starts, so there is no episode to replay."])
    alone = EpisodeReplay(Setting({**play.setting.combination, **ALONE}))
    length, again = alone.first_difference(episode)
    if again is None:
        lines.append(f"One environment alone agrees with the reference over its {len(episode.actions)} steps.")
        return "\n".join(lines)
    shortest, again = alone.shortened(dataclasses.replace(episode, actions=episode.actions[:length]))
    lines += [f"The shortest such episode has {len(shortest.actions)} steps:", "", _test(alone, shortest, again)]
    return "\n".join(lines)


class EpisodeReplay:
    """One environment that replays episodes; compiled once."""

    def __init__(self, setting: Setting):
        self.setting = setting
        self.environments = Environments(setting)

    def first_difference(self, episode: FoundEpisode) -> tuple[int, DisagreementError | None]:
        """Returns after how many steps something differs from the reference, and what; None where all agrees."""
        environments, step = self.environments, 0
        environments.load(DrawnTasks([episode.pairs], [episode.pairs], [1.0]), 0)
        place = np.array([0], np.int32), np.array([episode.pair_index], np.int32)
        try:
            shown = environments.reset(0, place)
            referee = Referee(self.setting, 1, environments.tasks)
            referee.begin(shown, place)
            for operation, selection in episode.actions:
                step += 1
                actions = Actions(np.array([operation], np.int32), np.asarray(selection)[None])
                shown = environments.step(actions)
                referee.step(actions)
                referee.check_outcomes(shown)
                referee.check_states(shown)
                if referee.history is not None:
                    referee.check_history(environments.history())
        except DisagreementError as difference:
            return step, difference
        return step, None

    def shortened(self, episode: FoundEpisode) -> tuple[FoundEpisode, DisagreementError]:
        """Leaves out pairs and actions, many at once and then one by one, as long as something still differs."""
        best, (_, difference) = episode, self.first_difference(episode)
        assert difference is not None
        only_pair = dataclasses.replace(episode, pairs=[episode.pairs[episode.pair_index]], pair_index=0)
        if (again := self.first_difference(only_pair)[1]) is not None:
            best, difference = only_pair, again
        size = max(len(episode.actions) // 2, 1)
        while size:
            start = 0
            while start < len(best.actions):
                fewer = dataclasses.replace(best, actions=best.actions[:start] + best.actions[start + size :])
                length, again = self.first_difference(fewer)
                if again is None:
                    start += size
                else:
                    best, difference = dataclasses.replace(fewer, actions=fewer.actions[:length]), again
            size //= 2
        return best, difference


def _test(alone: EpisodeReplay, episode: FoundEpisode, difference: DisagreementError) -> str:
    """Writes a test that fails where the reference and the environment differ."""
    usual = {name: value for topic in dataclasses.asdict(JaxArcConfig()).values() for name, value in topic.items()}
    fields = {name: value for name, value in alone.setting.config_fields().items() if usual[name] != value}
    classes = {"point": "PointAction", "bbox": "BboxAction", "mask": "MaskAction"}
    kind = alone.setting["selection_format"]
    value = lambda selection: f"np.array({selection.tolist()})" if kind == "mask" else ", ".join(map(str, selection))
    actions = [f"        {classes[kind]}({operation}, {value(np.asarray(s))})," for operation, s in episode.actions]
    pairs = ", ".join(f"({source.tolist()}, {target.tolist()})" for source, target in episode.pairs)
    return "\n".join(
        [
            "def test_found():",
            f"    pairs = [{pairs}]",
            '    tasks = TaskSet("found", (RawTask("found", pairs, pairs),))',
            f"    fields = {fields!r}",
            "    env, params = jaxarc.make(tasks, **fields)",
            f"    state, observation = env.reset(jax.random.key(0), params, 0, {episode.pair_index})",
            "    actions = [",
            *actions,
            "    ]",
            "    for action in actions:",
            "        state, observation, reward, done, info = env.step(state, action, params)",
            f"    expected = {_literal(difference.expected)}",
            f"    np.testing.assert_array_equal({difference.fact}, expected)  # is {_literal(difference.shown)}",
        ]
    )


def _literal(value: Any) -> str:
    return repr(value.tolist()) if isinstance(value, np.ndarray | np.generic) else repr(value)
