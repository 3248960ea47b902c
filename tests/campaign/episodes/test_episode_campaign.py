"""Half a million steps of whole episodes against the NumPy reference, and whether a mistake would be found."""

import itertools
import json
from unittest.mock import patch

import jax
import numpy as np
import pytest

import jaxarc
from campaign.episodes import fuzz_episodes
from campaign.episodes.episode_options import OPTIONS, Schedule, Setting, forbids
from campaign.episodes.episode_play import Match, StepCounts
from campaign.episodes.referee import DisagreementError
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction
from jaxarc.envs.step import decide_ending
from jaxarc.tasks import RawTask

SMALL_OPTIONS = {  # compiled quickly, on small canvases: what is compiled quickly runs slowly
    **OPTIONS,
    "entry": ("vmap", "scan", "nested", "guide"),
    "batch": ("many",),
    "compiled": ("quickly",),
    "shape": ((1, 1), (1, 6), (4, 1), (3, 7), (5, 5)),
    "tasks": ("few pairs", "uneven", "generated"),
}
LONG_OPTIONS = {  # compiled as users compile, for most of the steps
    **SMALL_OPTIONS,
    "compiled": ("as users do",),
    "shape": ((3, 7), (5, 5)),
    "tasks": ("few pairs",),
    "auto_reset": (True,),
    "symmetries": ("none",),
    "recolor": ("none",),
    "max_episode_steps": (40, 150),
    "grid_format": ("planes",),
    "include_demonstrations": (False,),
}
PLAIN = {  # a combination that shows much and compiles quickly
    **{name: values[0] for name, values in OPTIONS.items()},
    **{name: True for name in OPTIONS if name.startswith("include_")},
    "batch": "few",
    "compiled": "quickly",
    "shape": (3, 7),
    "tasks": "few pairs",
    "selection_format": "bbox",
    "invalid_action_policy": "noop",
    "max_episode_steps": 9,
    "max_submissions": 6,
    "history": 4,
}


def programs():
    """Combinations with their steps, 200,000 in all, which between them have many pairs of option values."""
    small, long = Schedule(SMALL_OPTIONS, forbids, seed=5), Schedule(LONG_OPTIONS, forbids, seed=3)
    large = {**PLAIN, "batch": "many", "shape": (30, 30), "include_demonstrations": False}
    executors = ("native", "xla")
    yield from ((small.draw(), 8_000) for _ in range(4))
    yield from (({**long.draw(), "executor": executor}, 80_500) for executor in executors)
    yield from (({**large, "executor": executor}, 2_000) for executor in executors)
    yield small.draw(), 3_000


@pytest.mark.parametrize(("number", "combination", "steps"), [(i, *program) for i, program in enumerate(programs())])
def test_episodes_agree_with_the_reference(number, combination, steps):
    play = Match(Setting(combination), number)
    play.run(steps)
    assert play.tally.steps >= steps


def test_200_000_steps_are_compared():
    assert sum(steps for _, steps in programs()) == 200_000


def test_every_pair_of_option_values_meets():
    schedule = Schedule(OPTIONS, forbids, seed=0)
    drawn = []
    while schedule.waiting:
        drawn.append(schedule.draw())
    assert len(drawn) < 100
    met = {frozenset(pair) for values in drawn for pair in itertools.combinations(values.items(), 2)}
    apart = len(schedule.impossible)
    sizes = [len(values) for values in OPTIONS.values()]
    assert len(met) + apart == sum(one * other for one, other in itertools.combinations(sizes, 2))
    assert frozenset({("mode", "test"), ("reveal_target", True)}) not in met
    assert schedule.draw({"batch": "many"})["batch"] == "many"
    for values in drawn:
        JaxArcConfig().with_fields(**Setting(values).config_fields())  # refuses what does not fit together


def test_referee_notices_whatever_is_not_right():
    play = Match(Setting(PLAIN), 0)
    play.run(40)
    referee, shown = play.referee, play.environments.step(actions := play.actions.draw(play.environments.num_envs))
    referee.step(actions)
    referee.check_outcomes(shown)
    referee.check_states(shown)
    assert len(shown) > 40
    for name, fact in shown.items():
        wrong = fact.copy()
        wrong[2] = ~wrong[2] if wrong.dtype == bool else wrong[2] + np.ones((), wrong.dtype)
        with pytest.raises(DisagreementError, match=f"^{name.replace('[', '.').replace(']', '.')} of environment 2"):
            _check(referee, {**shown, name: wrong})
    with pytest.raises(DisagreementError, match="action_history of environment 0"):
        referee.check_history(play.environments.history() + 1)
    with pytest.raises(DisagreementError, match="int32"):
        referee.check_states({**shown, "state.working_grid": shown["state.working_grid"].astype(np.int32)})


def _check(referee, shown):
    referee.check_outcomes(shown)
    referee.check_states(shown)


def test_mistake_is_reported_as_the_shortest_episode_that_shows_it():
    """Truncates a step late in XLA, on a canvas of its own, so that nothing else meets the broken programs."""

    def too_late(submitted, all_solved, submission_count, step_count, config):
        return decide_ending(submitted, all_solved, submission_count, step_count - 1, config)

    combination = {**PLAIN, "executor": "xla", "shape": (4, 1), "max_episode_steps": 2, "max_submissions": 1000}
    with patch("jaxarc.envs.step.decide_ending", too_late):
        tally, finding = fuzz_episodes.play_program(combination, 3, 1000)
        assert tally.steps < 1000
        assert "info['truncated'] of environment" in finding
        assert "The shortest such episode has 2 steps" in finding
        test = finding[finding.index("def test_found") :]
        assert test.count("BboxAction(") == 2
        scope = {"jaxarc": jaxarc, "jax": jax, "np": np, "RawTask": RawTask, "TaskSet": TaskSet}
        exec(test, {**scope, "BboxAction": BboxAction}, scope)
        with pytest.raises(AssertionError):
            scope["test_found"]()
    jax.clear_caches()
    scope["test_found"]()


def test_refused_action_is_a_finding_when_it_is_accepted():
    play = Match(Setting({**PLAIN, "shape": (1, 6), "invalid_action_policy": "raise"}), 0)
    play.run(10)
    check_often = lambda: [play._check_refusal() for _ in range(20)]
    with patch.object(play.environments, "step"), pytest.raises(DisagreementError, match="refused"):
        check_often()
    before = play.tally.raised
    check_often()
    assert play.tally.raised > before


def test_program_writes_its_summary_and_fails_on_a_finding(tmp_path, capsys):
    path = tmp_path / "fuzz.json"
    with patch.object(fuzz_episodes, "play_program", lambda *_: (StepCounts(steps=7), "")):
        assert fuzz_episodes.main(["--only", "2", "--json", str(path)]) == 0
    assert json.loads(path.read_text())["steps"] == 7
    with patch.object(fuzz_episodes, "play_program", lambda *_: (StepCounts(steps=7), "a mismatch")):
        assert fuzz_episodes.main(["--only", "2", "--seed", "4"]) == 1
    assert 'make fuzz ARGS="--seed 4 --only 2"\na mismatch' in capsys.readouterr().out
