"""Traces as a data set of Minari: what is written is read back, and what is of others is refused."""

import os

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


def write(dataset_id, action_format="bbox", expert="me"):
    spec = ExpertSpec(expert, 3, "", action_format)
    known = zip(PAIRS.items(), ACTIONS[action_format], strict=True)
    traces = {one: checked_trace(WorkUnit(pair, spec), actions) for (one, pair), actions in known}
    sets.write_minari(dataset_id, traces, PAIRS, "my-tasks")


@pytest.mark.parametrize(
    "dataset_id",
    [
        *("painter", "my/painter", "a/b-v0", "my painter-v0", "", "/my-v0", "../my-v0", "my//x-v0", "data/my-v0"),
        *("my/data/x-v0", "my/x-v0\n", "my/x-v", "my/x-v-1", "my/x-v00", "taken/x-v0/y-v0", "taken"),
    ],
)
def test_an_id_that_minari_cannot_list_is_refused_before_anything_is_written(minari, tmp_path, dataset_id):
    write("taken/x-v0")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(sets.MinariError, match="id"):
        write(dataset_id)
    assert sorted(tmp_path.rglob("*")) == before
    assert list(minari.list_local_datasets()) == ["taken/x-v0"]
    if dataset_id != "taken/x-v0/y-v0":
        with pytest.raises(sets.MinariError, match="id of a data set"):
            list(sets.read_minari(dataset_id))


def test_sets_stand_beside_others_in_nested_namespaces(minari):
    ids = ["a/b/x-v0", "a/b/x-v1", "lone-v0", "taken/x-v0"]
    for dataset_id in ids:
        write(dataset_id)
    assert sorted(minari.list_local_datasets()) == ids
    assert minari.namespace.list_local_namespaces() == ["a", "a/b", "taken"]


def test_the_folder_of_sets_may_be_a_relative_one(minari, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", "sets")
    write("jaxarc/mine-v0")
    assert [line.pair_id for line in sets.read_minari("jaxarc/mine-v0")] == list(PAIRS)
    assert os.environ["MINARI_DATASETS_PATH"] == "sets"


@pytest.mark.skipif(os.name != "posix", reason="Windows has no limit of a file's size")
def test_a_full_disk_is_one_line_and_leaves_nothing(minari, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))
    try:
        with pytest.raises(sets.MinariError, match=r"mine-v0.*File too large; make room") as caught:
            write("jaxarc/mine-v0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore")
def test_sets_that_minari_joined_are_read(minari):
    write("jaxarc/mine-v0")
    write("jaxarc/yours-v0", expert="you")
    parts = [minari.load_dataset(name) for name in ("jaxarc/mine-v0", "jaxarc/yours-v0")]
    minari.combine_datasets(parts, "jaxarc/both-v0")
    found = list(sets.read_minari("jaxarc/both-v0"))
    wanted = [(who, pair_id) for who in ("me", "you") for pair_id in PAIRS]
    assert [(line.spec.expert, line.pair_id) for line in found] == wanted
    assert found[0].unit == WorkUnit(next(iter(PAIRS.values())), found[0].spec).content_hash
    minari.delete_dataset("jaxarc/yours-v0")
    with pytest.raises(sets.MinariError, match="no data set 'jaxarc/yours-v0' here"):
        list(sets.read_minari("jaxarc/both-v0"))


@pytest.mark.parametrize(
    ("file", "content"),
    [("main_data.hdf5", b"cut"), ("metadata.json", b'{"total'), ("metadata.json", b"{}"), ("main_data.hdf5", None)],
)
def test_a_damaged_set_is_named_in_a_line(minari, tmp_path, file, content):
    write("jaxarc/mine-v0")
    path = tmp_path / "jaxarc" / "mine-v0" / "data" / file
    path.write_bytes(path.read_bytes()[:2000] if content == b"cut" else content or b"")
    with pytest.raises(sets.MinariError, match=r"^the data set 'jaxarc/mine-v0' cannot be read: .*$"):
        list(sets.read_minari("jaxarc/mine-v0"))


def test_without_minari_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sets, "missing_libraries", lambda extra: [extra])
    with pytest.raises(sets.MinariError, match=r"jaxarc-rl\[minari\]"):
        list(sets.read_minari("jaxarc/mine-v0"))
