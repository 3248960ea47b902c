"""Nothing but the key and its own number decides what an environment lives through."""

import numpy as np
import pytest
from eight_devices import eight_devices
from fingerprint import NUM_STEPS, play
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

MOST = 8  # environments


@pytest.fixture(scope="module")
def ask():
    with eight_devices() as ask:
        yield ask


@pytest.fixture(scope="module")
def alone():
    """What all environments live through on one device, at once, with a key of that seed."""
    played = {}
    return lambda seed: played.setdefault(seed, play(MOST, 1, executor="xla", seed=seed))


# A new mix of numbers compiles anew, for some seconds; more examples find nothing that these do not.
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    num_envs=st.sampled_from([1, 5, 7, MOST]),
    num_devices=st.sampled_from([1, 2, 4, 8]),
    chunk_steps=st.sampled_from([None, 1, 5]),
    executor=st.sampled_from(["native", "xla"]),
    seed=st.integers(0, 2**31),
)
@example(num_envs=MOST, num_devices=8, chunk_steps=None, executor="xla", seed=7)
@example(num_envs=MOST, num_devices=8, chunk_steps=None, executor="native", seed=7)
@example(num_envs=7, num_devices=2, chunk_steps=5, executor="xla", seed=7)
@example(num_envs=3, num_devices=4, chunk_steps=1, executor="xla", seed=7)
def test_batch_devices_chunks_and_executor_change_nothing(
    ask, alone, num_envs, num_devices, chunk_steps, executor, seed
):
    played = ask(num_envs=num_envs, num_devices=num_devices, chunk_steps=chunk_steps, executor=executor, seed=seed)
    whole = alone(seed)
    assert played.pop("used") == num_devices
    assert played["environments"] == whole["environments"][:num_envs]
    assert len(set(whole["environments"])) == MOST
    metrics = [np.array(counts[:num_envs], np.float64) for counts in whole["metrics"]]
    assert played["totals"] == [*(counts.sum() for counts in metrics), num_envs * NUM_STEPS]
    assert [sum(counts) for counts in played["tasks"]] == played["totals"][:2]
    if num_envs == MOST:
        assert played == {name: whole[name] for name in played}


def test_another_key_changes_everything(alone):
    here, there = alone(1)["environments"], alone(2)["environments"]
    assert not set(here) & set(there)


def test_a_mesh_whose_axis_is_tracked_in_types_changes_nothing(ask, alone):
    played = ask(num_envs=5, num_devices=4, executor="native", is_explicit=True)
    assert played["environments"] == alone(7)["environments"][:5]
    assert played["used"] == 4


@pytest.mark.parametrize("world", ["generated", "loading"])
def test_generated_and_augmented_tasks_are_the_same_on_any_number_of_devices(ask, world):
    whole = play(5, 1, world=world)
    assert ask(num_envs=5, num_devices=4, world=world) == {**whole, "used": 4}
    assert min(whole["tasks"][0]) > 0  # episodes of every task
