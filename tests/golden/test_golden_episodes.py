"""Today's environment plays the golden episodes as the one did that they were written with."""

import json

import golden_episodes as golden
import jax
import numpy as np
import pytest
from compiling import AS_USERS
from make_golden import write_all

from jaxarc.constants import ENVIRONMENT_VERSION, NUM_OPERATIONS
from jaxarc.envs import PointAction


@pytest.mark.parametrize(("case", "options"), [*((case, None) for case in golden.CASES), ("mask_test", AS_USERS)])
def test_golden_episodes_have_not_changed(case, options):
    kept = golden.load(case)
    assert kept["version"] == ENVIRONMENT_VERSION, "run tests/golden/make_golden.py for the new version"
    played = golden.play(case, kept["actions"], kept["info_keys"], options)
    changed = [
        f"task {task}, " + (f"action {step - 1}: {kept['actions'][task][step - 1]}" if step else "reset")
        for task, (old, new) in enumerate(zip(kept["hashes"], played, strict=True))
        for step, (before, after) in enumerate(zip(old, new, strict=True))
        if before != after
    ]
    assert not changed, (
        f"the environment behaves differently, first at {changed[0]}; if that is meant, raise ENVIRONMENT_VERSION, say "
        "under Semantics in CHANGELOG.md what changed, and run tests/golden/make_golden.py"
    )


@pytest.mark.parametrize("case", golden.CASES)
def test_golden_episodes_hold_every_operation(case):
    for actions in golden.load(case)["actions"]:
        assert {operation for operation, *_ in actions} == set(range(NUM_OPERATIONS))


@pytest.mark.parametrize("case", ["point_train", "point_test"])
def test_golden_episodes_solve_a_pair_terminate_and_are_truncated_and_go_past_the_end(case):
    env, params = golden.make_case(case)
    endings = []
    for task, actions in enumerate(golden.load(case)["actions"]):
        state, _ = env.reset(jax.random.key(0), params, task, 0)
        for written in actions:
            already_done = bool(state.done)
            state, _, _, _, info = env.step(state, golden.read_action(written), params)
        assert already_done
        endings.append({name for name in ("terminated", "truncated", "success") if info[name]})
    assert endings == [{"terminated", "success"}, {"truncated"}]


def test_episodes_of_the_present_version_are_not_written_over(tmp_path):
    (tmp_path / "point_train.json").write_text(json.dumps({"version": 4}), encoding="utf-8")
    with pytest.raises(FileExistsError, match="version 4"):
        write_all(tmp_path, 4, ("point_train",))
    assert json.loads((tmp_path / "point_train.json").read_text(encoding="utf-8")) == {"version": 4}


def test_episodes_of_an_older_version_are_written_anew(tmp_path):
    kept = golden.load("point_train")
    (tmp_path / "point_train.json").write_text(json.dumps({"version": 4}), encoding="utf-8")
    assert write_all(tmp_path, 5, ("point_train",)) == ["point_train.json"]
    assert json.loads((tmp_path / "point_train.json").read_text(encoding="utf-8")) == {**kept, "version": 5}


def test_episode_with_one_other_color_or_reward_has_another_hash():
    kept = golden.load("point_train")
    env, params = golden.make_case("point_train")
    state, observation = env.reset(jax.random.key(0), params, 0, 0)
    assert golden.hash_of(observation) == kept["hashes"][0][0]
    assert golden.hash_of(
        {**observation, "working_grid": observation["working_grid"].at[0, 0].add(1)}
    ) != golden.hash_of(observation)
    _, _, reward, *_ = env.step(state, PointAction(3, 0, 0), params)
    assert golden.hash_of(reward) != golden.hash_of(reward + np.float32(1e-4))
