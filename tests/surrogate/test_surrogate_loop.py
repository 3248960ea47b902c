"""A short run of a surrogate: what it reports, writes and keeps when it is stopped, and how it goes on."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import same, without_clocks

from jaxarc.config import CheckpointConfig, SurrogateConfig, SurrogateTrainingConfig
from jaxarc.runs import RunFolder, TrainingDivergedError
from jaxarc.runs.folder import read_reports
from jaxarc.surrogate import CandidateSet, TrainingBatchJAX
from jaxarc.surrogate.agreement import agreement
from jaxarc.surrogate.held_out import load_model
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment, SurrogateReport
from jaxarc.surrogate.surrogate_task import ExpertBatch, SurrogateTask
from jaxarc.surrogate.surrogate_training import train_surrogate

pytestmark = pytest.mark.usefixtures("standard_promotion")

EXPERIMENT = SurrogateExperiment(
    surrogate=SurrogateConfig(problem="parent_sets", seed=3, steps_per_report=4, reports_per_evaluation=2),
    surrogate_training=SurrogateTrainingConfig(num_steps=18, learning_rate=0.05, warmup_steps=2),
    checkpoint=CheckpointConfig(min_seconds=0.0, keep_last=9),
)


class Scorer(eqx.Module):
    weights: jax.Array

    def __call__(self, data, candidates):
        return data[0] @ self.weights[0] + candidates.features[:, 0] * self.weights[1, 0]


_COMPILED = []


class Problem(SurrogateTask):
    """Two candidates; the expert likes the one whose number is larger."""

    def __init__(self, spoil=None, fail_at=None):
        self.spoil, self.fail_at = spoil, fail_at
        self.asked = []  # steps

    def make_model(self, key):
        return Scorer(0.01 * jax.random.normal(key, (2, 3), jnp.float32))

    def batch(self, seed, step):
        self.asked.append(step)
        if step == self.fail_at:
            raise OSError("the disk is gone")
        examples, candidates = self.draw((seed, step))
        if step == self.spoil:
            examples = eqx.tree_at(lambda x: x.observational_data, examples, examples.observational_data * jnp.inf)
        return ExpertBatch(examples, candidates)

    def evaluate(self, model):
        examples, candidates = self.draw((99,))
        logits = jax.vmap(model)(examples.observational_data, candidates)
        return agreement(*map(np.asarray, (logits, examples.expert_probs, candidates.is_real)))

    def make_step(self, model, optimizer, config):
        """Return a step that is compiled once for all tests of this file."""
        if not _COMPILED:
            _COMPILED.append(super().make_step(model, optimizer, config))
        return _COMPILED[0]

    def draw(self, place):
        numbers = np.random.default_rng(place).normal(size=(6, 2)).astype(np.float32)
        probs = np.exp(numbers) / np.exp(numbers).sum(axis=-1, keepdims=True)
        data = np.repeat(numbers[:, None, :, None], 3, axis=-1)
        ones = jnp.ones((6, 2, 1), jnp.float32)
        boxes = jnp.ones((6, 2, 2), jnp.float32)
        candidates = CandidateSet(ones, boxes, ones, jnp.ones((6, 2), jnp.bool_))
        return ExpertBatch(TrainingBatchJAX(data, probs, np.ones(6)), candidates)


def run(experiment=EXPERIMENT, folder=None, problem=None, **options):
    return train_surrogate(experiment, problem or Problem(), folder, **options)


def after(steps):
    """Return what wishes to stop once so many steps are taken."""
    asked = iter(range(10**6))
    return lambda: next(asked) >= steps


@pytest.fixture(scope="module")
def whole():
    with jax.numpy_dtype_promotion("standard"):
        return run()


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def test_the_surrogate_comes_closer_to_its_expert_and_the_reports_tell_so(whole):
    assert [report.update for report in whole.reports] == [0, 4, 8, 12, 16, 18]
    assert [report.kl is not None for report in whole.reports] == [True, False, True, False, True, True]
    assert whole.reports[-1].examples == 18 * 6
    assert whole.reports[-1].kl < 0.5 * whole.reports[0].kl
    assert whole.reports[-1].score == -whole.reports[-1].kl
    assert all(report.seed == 3 and report.total_loss > 0 for report in whole.reports[1:])
    assert not whole.interrupted


@pytest.mark.parametrize("steps", [0, 3, 8, 9])
def test_a_run_that_is_stopped_goes_on_as_if_it_were_not(whole, folder, steps):
    stopped = run(folder=folder, should_stop=after(steps))
    assert stopped.interrupted
    assert (stopped.reports[-1].update, stopped.reports[-1].kl is not None) == (steps, True)
    assert folder.checkpoints.updates()[-1] == steps
    problem = Problem()
    resumed = run(folder=folder, resume=True, problem=problem)
    assert min(problem.asked[1:]) >= steps  # the first one only shows the shapes
    assert same(resumed.state, whole.state)
    assert without_clocks(resumed.reports) == without_clocks(whole.reports)
    written = read_reports(folder.metrics, SurrogateReport)
    assert without_clocks(written) == without_clocks(whole.reports)


def test_an_interrupt_amid_a_report_leaves_the_checkpoint_before_it(whole, folder):
    problem, asked = Problem(), []

    def measure(model):
        asked.append(model)
        if len(asked) == 3:  # in the report of update 16
            raise KeyboardInterrupt
        return Problem.evaluate(problem, model)

    problem.evaluate = measure
    with pytest.raises(KeyboardInterrupt):
        run(folder=folder, problem=problem)
    resumed = run(folder=folder, resume=True)
    assert same(resumed.state, whole.state)
    assert without_clocks(resumed.reports) == without_clocks(whole.reports)


def test_an_error_of_the_data_ends_the_run_and_the_thread_that_loads(folder):
    with pytest.raises(OSError, match="the disk is gone"):
        run(folder=folder, problem=Problem(fail_at=9))
    assert not [thread for thread in threading.enumerate() if thread.name == "jaxarc-prefetch"]
    assert folder.checkpoints.updates()[-1] == 9


def test_a_loss_that_is_not_finite_ends_the_run_and_names_the_last_good_checkpoint(folder):
    with pytest.raises(TrainingDivergedError, match=r"3.*8.*12.*total_loss.*checkpoints/8"):
        run(folder=folder, problem=Problem(spoil=10))
    assert folder.checkpoints.updates()[-1] == 8


def test_a_state_that_is_not_finite_is_not_saved_when_the_run_is_stopped(folder):
    with pytest.raises(TrainingDivergedError):
        run(folder=folder, problem=Problem(spoil=5), should_stop=after(7))
    assert folder.checkpoints.updates()[-1] == 4


def test_the_newest_and_the_best_checkpoints_stay(folder, whole):
    experiment = EXPERIMENT.replace(checkpoint=CheckpointConfig(min_seconds=0.0, keep_last=1, keep_best=2))
    run(experiment, folder)
    ranked = sorted((report.score, report.update) for report in whole.reports if report.score is not None)
    assert set(folder.checkpoints.updates()) == {18, *(update for _, update in ranked[-2:])}


def test_a_saved_model_comes_back_without_the_rest(whole, folder):
    run(folder=folder)
    assert same(load_model(folder.checkpoints.newest(), Problem().make_model(jax.random.key(0))), whole.state.model)
