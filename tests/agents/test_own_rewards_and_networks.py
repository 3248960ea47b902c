"""Rewards and networks of one's own: known by name, loaded where a user names them, and checked before they learn."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from edit_world import config

import jaxarc
from jaxarc.agents import Experiment, Network, OwnPartError, own_parts, register_network, register_reward
from jaxarc.agents.cell_network import CellNetwork
from jaxarc.agents.edits import kinds_of
from jaxarc.agents.own_parts import NETWORKS, REWARDS, make_network, rewarded
from jaxarc.agents.updates import environment_of
from jaxarc.config import AgentConfig, ConfigValidationError, GameConfig, NetworkConfig
from jaxarc.wrappers import RewardWrapper

KINDS = kinds_of(config(2, 2))
CODE = """
from jaxarc.agents.cell_network import CellNetwork
from jaxarc.wrappers import RewardWrapper

class Sparse(RewardWrapper):
    def reward(self, reward, info, before, after, params):
        return info["success"]

class Net(CellNetwork):
    pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for parts in (NETWORKS, REWARDS):
        monkeypatch.setattr(parts, "_registered", {})
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_code.py").write_text(CODE)
    return tmp_path


def of_kind(kind):
    return make_network(jax.random.key(0), (2, 2), KINDS, NetworkConfig(kind=kind, hidden_size=4))


class Bonus(RewardWrapper):
    def reward(self, reward, info, before, after, params):
        return jnp.float32(7)


class Wide(CellNetwork):
    def kind_logits(self, features):
        return features.whole


class Callable(CellNetwork):
    activation: object = None

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.activation = jax.nn.relu


class Fails(CellNetwork):
    def value(self, features):
        return features.nothing


def test_an_own_reward_is_what_a_run_earns():
    register_reward(Bonus)
    env, params = jaxarc.make("starter")
    env = environment_of(params, AgentConfig(reward="Bonus"))
    state, _ = env.reset(jax.random.key(0), params)
    assert float(env.step(state, env.action_space(params).sample(jax.random.key(1)), params)[2]) == 7


@pytest.mark.parametrize("where", ["own_code.py", "own_code"])
def test_a_file_or_a_module_is_run_where_it_is_named_and_the_name_of_the_class_stays(where, monkeypatch):
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    assert (REWARDS.load(f"{where}:Sparse"), NETWORKS.load(f"{where}:Net")) == ("Sparse", "Net")
    assert type(of_kind("Net")).__name__ == "Net"
    experiment = Experiment(network=NetworkConfig(kind="Net"), agent=AgentConfig(reward="Sparse"))
    assert experiment.as_dict()["network"]["kind"] == "Net"


def test_a_config_runs_no_file(folder):
    (folder / "own_code.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(ConfigValidationError, match=r"no network 'own_code.py:Net'.*--network.*no reward.*--reward"):
        Experiment(network=NetworkConfig(kind="own_code.py:Net"), agent=AgentConfig(reward="own_code.py:Sparse"))


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("none.py:Net", "FileNotFoundError"),
        ("nomodule:Net", "nomodule"),
        ("own_code.py", "file.py:NAME"),
        (":", "file.py:NAME"),
        ("own_code.py:Nett", "it has Net"),
        ("own_code.py:Sparse", "derives from Network"),
        ("jaxarc.agents:Network", "lacks color_logits"),
        ("exits.py:Net", r"exits.py, line 2.*sys.exit"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(folder, name, quoted):
    (folder / "exits.py").write_text("import sys\nsys.exit(3)")
    with pytest.raises(OwnPartError, match=quoted) as caught:
        NETWORKS.load(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("network", "quoted"),
    [
        (Wide, rf"\(2, 9\) from kind_logits for 2 observations, and must return \(2, {len(KINDS)}\)"),
        (Callable, r"\.activation.*static=True"),
        (Fails, r"test_own_rewards_and_networks.py, line \d+\): AttributeError.*nothing"),
    ],
)
def test_a_network_that_cannot_be_trained_is_named(network, quoted):
    register_network(network)
    with pytest.raises(OwnPartError, match=quoted):
        of_kind(network.__name__)


@pytest.mark.parametrize(
    ("method", "quoted"), [(lambda *_: jnp.zeros(3), r"shape \(3,\)"), (lambda *given: given[2]["succes"], "KeyError")]
)
def test_a_reward_that_is_no_number_or_fails_is_named(method, quoted):
    register_reward(type("Odd", (RewardWrapper,), {"reward": method, "__module__": __name__}))
    with pytest.raises(OwnPartError, match=quoted):
        rewarded("Odd", jaxarc.make("starter")[1])


def test_a_name_has_one_class_until_its_module_writes_it_anew():
    named = lambda name, module: type(name, (Bonus,), {"__module__": module})
    first, second = named("Mine", __name__), named("Mine", __name__)
    register_reward(first)
    compiled = jax.jit(lambda: jnp.float32(REWARDS.find("Mine") is first))
    assert compiled() == 1
    register_reward(second)
    assert compiled() == 0  # no program of the old class is left
    with pytest.raises(OwnPartError, match="taken by another reward"):
        register_reward(named("Mine", own_parts.__name__))
    with pytest.raises(OwnPartError, match="of this package"):
        register_reward(named("editing", __name__))


def test_a_game_takes_neither():
    register_reward(Bonus)
    register_network(Fails)
    with pytest.raises(ConfigValidationError, match=r"agent.reward must be empty.*'residual_cnn' for a game"):
        Experiment(game=GameConfig("ice"), agent=AgentConfig(reward="Bonus"), network=NetworkConfig(kind="Fails"))


def test_the_interface_of_networks_is_public():
    assert issubclass(CellNetwork, Network)
    assert issubclass(Network, eqx.Module)
