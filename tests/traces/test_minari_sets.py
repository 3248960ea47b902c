"""Traces as a data set of Minari: what is written is read back, and what is of others is refused."""

import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.experts import Pair
from jaxarc.traces import ExpertSpec, PairId, WorkUnit
from jaxarc.traces import minari_sets as sets
from jaxarc.traces.units import checked_trace

PAIRS = {
    PairId("one", "train", 0): Pair(np.zeros((2, 3), np.int8), np.full((2, 3), 4, np.int8)),
    PairId("two", "test", 1): Pair(np.ones((1, 2), np.int8), np.array([[1, 7]], np.int8)),
}
ACTIONS = {
    "bbox": [[(c.FILL + 4, 0, 0, 1, 2), (c.SUBMIT, 0, 0, 0, 0)], [(c.FILL + 7, 0, 1, 0, 1), (c.SUBMIT, 0, 0, 0, 0)]],
    "mask": [[(c.FILL + 4, 0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2), (c.SUBMIT,)], [(c.FILL + 7, 0, 1), (c.SUBMIT,)]],
}


@pytest.fixture
def minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    pytest.importorskip("h5py", reason="h5py is not installed; pip install 'minari[hdf5]'")
    return pytest.importorskip("minari", reason="minari is not installed; pip install 'minari[hdf5]'")


@pytest.mark.parametrize("action_format", ACTIONS)
def test_traces_come_back_with_pair_expert_and_verdict(minari, action_format):
    spec = ExpertSpec("me", 3, "", action_format)
    known = zip(PAIRS.items(), ACTIONS[action_format], strict=True)
    traces = {one: checked_trace(WorkUnit(pair, spec), actions) for (one, pair), actions in known}
    sets.write_minari("jaxarc/mine-v0", traces, PAIRS, "my-tasks")

    found = list(sets.read_minari("jaxarc/mine-v0"))
    assert {line.pair_id: line.actions for line in found} == {one: trace.actions for one, trace in traces.items()}
    assert {(line.spec, line.dataset) for line in found} == {(spec, "my-tasks")}
    loaded = minari.load_dataset("jaxarc/mine-v0")
    assert [about["verdict"] for about in loaded.storage.get_episode_metadata([0, 1])] == ["exact", "exact"]
    first = next(loaded.iterate_episodes())
    assert first.observations["working_grid"].shape == (3, 30, 30)
    np.testing.assert_array_equal(first.observations["working_grid"][-1], first.observations["target_grid"][-1])
    assert first.rewards.tolist() == [0.0, 1.0]
    assert first.terminations.tolist() == [False, True]
    with pytest.raises(sets.MinariError, match="jaxarc/mine-v0"):
        sets.write_minari("jaxarc/mine-v0", traces, PAIRS, "my-tasks")


@pytest.mark.filterwarnings("ignore")
def test_a_set_of_another_environment_is_refused_by_name(minari):
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    buffer = minari.data_collector.EpisodeBuffer(
        observations=np.zeros((2, 4), np.float32), actions=np.array([0]), rewards=[1.0], terminations=[True],
        truncations=[False],
    )  # fmt: skip
    spaces = gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    minari.create_dataset_from_buffers(
        "cart/pole-v0", [buffer], action_space=spaces[0], observation_space=spaces[1], description="CartPole"
    )
    with pytest.raises(sets.MinariError, match=r"cart/pole-v0.*CartPole"):
        list(sets.read_minari("cart/pole-v0"))
    with pytest.raises(sets.MinariError, match="no/such-v0"):
        list(sets.read_minari("no/such-v0"))


def test_without_minari_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sets, "missing_libraries", lambda extra: [extra])
    with pytest.raises(sets.MinariError, match=r"jaxarc-rl\[minari\]"):
        list(sets.read_minari("jaxarc/mine-v0"))
