"""The benchmark of surrogates: its rows, what is timed, and that what is timed learns the same."""

import json
import time
from contextlib import nullcontext

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
import surrogate_workload
from measure import main
from surrogate_rows import WORKLOADS, SharedSamples, surrogate_rows
from surrogate_workload import Learner, Workload, time_feeding, time_steps

from jaxarc.benchmarks.measure import measure_rows
from jaxarc.benchmarks.suite import Budget, Suite
from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig
from jaxarc.surrogate import create_surrogate_train_step, kl_divergence_loss_jax


class SmallScorer(eqx.Module):
    """Compiles in no time, and keeps something for its gradient."""

    inner: jax.Array
    outer: jax.Array

    def __init__(self, key, config, num_features):
        self.inner = jax.random.normal(key, (3, config.latent_size), jnp.float32)
        self.outer = jax.random.normal(key, (config.latent_size,), jnp.float32)

    def __call__(self, data, candidates):
        cells = jnp.tanh(data @ self.inner) @ self.outer
        return (candidates.columns @ cells.mean(axis=0)) + candidates.features.sum(axis=-1)


ONCE = Budget(repeats=1, seconds=0.0, longest_scan=1)
NETWORK = SurrogateNetworkConfig(latent_size=8, num_layers=1, num_heads=2)
TINY = Workload(NETWORK, 2, structure=StructuralModelConfig(num_variables=2, max_parents=1, num_samples=4))

pytestmark = pytest.mark.usefixtures("standard_promotion")


@pytest.fixture(autouse=True)
def _models_are_small(monkeypatch):
    monkeypatch.setattr(surrogate_workload, "CandidateScorer", SmallScorer)
    monkeypatch.setattr(surrogate_workload, "make_surrogate_optimizer", lambda _: optax.sgd(0.1))
    surrogate_workload._start.cache_clear()
    yield
    surrogate_workload._start.cache_clear()


def test_every_step_row_is_measured_and_ratios_follow_from_seconds():
    rows = [row for row in surrogate_rows({"tiny": TINY}) if row.row_id.endswith("tiny")]
    value = {result.row.row_id: result.value for result in measure_rows(rows, ONCE, lambda *_: None)}
    assert len(value) == 7
    assert all(number > 0 for number in value.values())
    assert value["speedup-tiny"] == pytest.approx(value["plain-tiny"] / value["compiled-tiny"])
    assert value["amortization-tiny"] == pytest.approx(value["first-tiny"] / value["second-tiny"])
    assert value["plain-tiny"] > value["compiled-tiny"]


def test_steps_that_learn_different_things_are_no_measurement(monkeypatch):
    def twice(predicted, target):
        return 2 * kl_divergence_loss_jax(predicted, target)

    monkeypatch.setattr(
        surrogate_workload, "_plain_learner", lambda workload: Learner(workload, create_surrogate_train_step, twice)
    )
    with pytest.raises(ArithmeticError, match="same loss"):
        time_steps(TINY, 0.0)


def test_every_workload_fits_its_model():
    for workload in WORKLOADS.values():
        batch, candidates = workload.batch()
        assert candidates.is_real.shape == batch.expert_probs.shape == (workload.num_examples, batch.num_candidates)


def feed():
    return time_feeding(lambda: time.sleep(0.03), lambda _: time.sleep(0.05), 5)


def test_loading_is_hidden_behind_work():
    seconds = feed()
    assert seconds["in-turn"] >= 0.08
    assert seconds["prefetched"] < 0.07
    assert seconds["hidden"] > 50


def test_without_prefetching_nothing_is_hidden(monkeypatch):
    monkeypatch.setattr(surrogate_workload, "DataPrefetcher", nullcontext)
    assert feed()["hidden"] < 30


def test_each_number_of_a_measurement_is_handed_out_once():
    efforts = []
    samples = SharedSamples(lambda budget: efforts.append(budget) or {"a": len(efforts), "b": -len(efforts)})
    suite = Suite(ONCE)
    assert [samples.sample(suite, name) for name in "abba"] == [1, -1, -2, 2]
    assert efforts == [ONCE, ONCE]


def test_the_command_writes_its_rows(tmp_path):
    path = tmp_path / "surrogate.json"
    main(["surrogate", "--quick", "--rows", "feeding-in-turn,feeding-hidden", "--json", str(path)])
    rows = {row["id"]: row for row in json.loads(path.read_text())["rows"]}
    assert rows["feeding-in-turn"]["value"] >= 0.025
    assert rows["feeding-hidden"]["target"] == (95 if jax.default_backend() == "cpu" else None)
