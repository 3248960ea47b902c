"""The check passes what keeps the contract, and finds and names each planted fault."""

import functools
import re

import faulty_environments as faulty
import jax
import numpy as np
import pytest
from faulty_environments import Toy, ToyAutoReset

import jaxarc
from jaxarc.constants import CLEAR, FILL, SUBMIT
from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.testing import EnvironmentCheckError, check_environment, create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions

CANVAS = (3, 4)
GRID = np.array([[1, 2, 3], [4, 5, 6]])
TASKS = TaskSet(
    "check",
    (
        RawTask("check/one", ((GRID, GRID[::-1]),) * 2, ((GRID, GRID[::-1]),)),
        RawTask("check/two", ((GRID, GRID + 1),) * 2, ((GRID, GRID + 2),)),
    ),
)


@functools.cache
def make(selection_format="point", mode="train", tasks=TASKS, **fields):
    fields = {"invalid_action_policy": "noop", "allowed_operations": (FILL + 1, CLEAR, SUBMIT), **fields}
    return jaxarc.make(tasks, create_test_config(4, selection_format, CANVAS, mode=mode, **fields))


OURS = {  # together every wrapper, format, mode and executor
    "point, train": (lambda env: AutoReset(FlatActions(env)), ("point", "train"), "auto"),
    "point, test": (lambda env: FlatActions(AutoReset(env)), ("point", "test"), "xla"),
    "bbox, train": (lambda env: EpisodeStatistics(env), ("bbox", "train"), "auto"),
    "bbox, test": (lambda env: EpisodeStatistics(AutoReset(env)), ("bbox", "test"), "auto"),
    "mask, train": (lambda env: env, ("mask", "train"), "xla"),
    "mask, test": (lambda env: AutoReset(env), ("mask", "test"), "auto"),
}


@pytest.mark.parametrize(("dress", "rules", "executor"), OURS.values(), ids=OURS)
def test_our_environments_pass(dress, rules, executor):
    env, params = make(*rules, executor=executor)
    report = check_environment(dress(env), params)
    assert report.episodes_terminated > 0
    assert report.episodes_truncated > 0
    assert len(report.passed) >= 9
    assert ("answers stay hidden" in report.passed) == (rules[1] == "test")


def test_policy_that_raises_and_typed_key_are_fine():
    env, params = make(invalid_action_policy="raise")
    assert "pure" in check_environment(env, params, jax.random.key(1), num_envs=2, num_steps=3).passed


def test_generated_tasks_pass_and_the_report_says_what_was_skipped():
    config = make("point", "test")[1].config
    env, params = jaxarc.make(procedural_tasks("procedural/color-map", CANVAS), config)
    report = check_environment(env, params)
    assert "generator" in report.skipped["answers stay hidden"]
    assert set(report.skipped).isdisjoint(report.passed)


@pytest.mark.parametrize("mode", ["train", "test"])
@pytest.mark.parametrize("dress", [lambda env: env, ToyAutoReset], ids=["plain", "auto-reset"])
def test_toy_that_keeps_the_contract_passes(dress, mode):
    report = check_environment(dress(Toy()), make(mode=mode)[1])
    assert report.episodes_terminated > 0
    assert report.episodes_truncated > 0


FAULTS = {  # environment -> the check that finds it, and a name in what it says
    faulty.ReturnsAnotherStateDtype: ("stable types", ".step_count"),
    faulty.CountsInStaticField: ("stable types", "static field"),
    faulty.ForgetsDiscount: ("report types", "'discount'"),
    faulty.BranchesOnValues: ("traceable", "TracerBoolConversionError"),
    faulty.RefusesBatches: ("playable", "vmap"),
    faulty.LeavesItsSpace: ("spaces", "observation_space"),
    faulty.DividesByZero: ("finite numbers", "['mean']"),
    faulty.ShowsTheStateBefore: ("views", "observe"),
    faulty.EndsTwice: ("endings", "truncated"),
    faulty.GoesOnAfterTheEnd: ("inert when done", "reward"),
    faulty.PaysNothingWhereItGoesOn: ("step and reset", "[2]"),
    faulty.BranchesWhereItGoesOn: ("step and reset", "TracerBoolConversionError"),
    faulty.DrawsFromNumpy: ("pure", ".task_index"),
    faulty.ChangesItsArguments: ("pure", "step"),
    faulty.RemembersCalls: ("pure", "keys"),
    faulty.LooksAtNeighbors: ("pure", "neighbors"),
    faulty.HintsInInfo: ("answers stay hidden", "'hint'"),
}


@pytest.mark.parametrize(
    ("fault", "check", "named"),
    [(fault, *found) for fault, found in FAULTS.items()],
    ids=lambda x: x.__name__ if isinstance(x, type) else "",
)
def test_planted_fault_is_found_and_named(fault, check, named):
    env = fault(Toy()) if issubclass(fault, ToyAutoReset) else fault()
    found = failures_of(env, make(mode="test" if check == "answers stay hidden" else "train")[1])
    assert any(named in sentence for sentence in found[check]), found


FULL = np.arange(12).reshape(CANVAS) % 10
FULL_TASKS = TaskSet(
    "full",
    tuple(
        RawTask(f"full/{name}", ((FULL, FULL),), ((FULL, output),))
        for name, output in (("one", FULL[::-1]), ("two", (FULL + 2) % 10))
    ),
)


def failures_of(env, params, **options):
    with pytest.raises(EnvironmentCheckError) as caught:
        check_environment(env, params, **options)
    return {
        check: [said for other, said in caught.value.failures if other == check] for check, _ in caught.value.failures
    }


LEAKS = {
    "cells of an answer": (lambda params: faulty.CountsTheAnswersCells(), r"'size'\] of step"),
    "shape of an array": (faulty.SizesAnArrayByTheAnswers, r"shape .*'seen'"),
    "submit": (lambda params: faulty.SaysWhetherASubmitIsRight(), r"'right'\] of step"),
    "next episode": (lambda params: faulty.ShowsTheLastAnswer(), r"\.observation of reset_next"),
    "next episode after auto-reset": (
        lambda params: ToyAutoReset(faulty.ShowsTheLastAnswer()),
        r"\.observation of step",
    ),
}


@pytest.mark.parametrize(("make_env", "said"), LEAKS.values(), ids=LEAKS)
def test_a_leak_is_found_wherever_it_is(make_env, said):
    # Answers that fill the canvas cannot be made larger, and no random grid is ever one of them.
    params = make(mode="test", tasks=FULL_TASKS)[1]
    found = failures_of(make_env(params), params, make_env=make_env)
    assert list(found) == ["answers stay hidden"]
    assert any(re.search(said, sentence) for sentence in found["answers stay hidden"]), found


def test_a_scored_submit_may_tell_whether_it_was_right_and_nothing_more():
    params = make(mode="test", tasks=FULL_TASKS, score_on_submit=True)[1]
    assert "answers stay hidden" in check_environment(faulty.SaysWhetherASubmitIsRight(), params).passed
    assert "answers stay hidden" in failures_of(ToyAutoReset(faulty.ShowsTheLastAnswer()), params)


def test_all_faults_are_listed_at_once():
    class TwoFaults(faulty.EndsTwice, faulty.DividesByZero):
        pass

    with pytest.raises(EnvironmentCheckError) as caught:
        check_environment(TwoFaults(), make()[1])
    assert {"endings", "finite numbers"} <= {name for name, _ in caught.value.failures}
