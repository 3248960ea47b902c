"""Whether the weights of a saved agent fit another canvas."""

from pathlib import Path

import pytest

from jaxarc.config import JaxArcConfig, NetworkConfig, TaskConfig
from jaxarc.training.checkpoint import CheckpointError
from jaxarc.training.experiment import Experiment
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.saved_agent import _parts_of_policy, _require_weights_fit

RULES = JaxArcConfig().with_fields(
    max_grid_height=5,
    max_grid_width=4,
    reveal_target=True,
    include_step_count=True,
    selection_format="bbox",
    invalid_action_policy="noop",
)


def experiment_of(kind):
    return Experiment(environment=RULES, network=NetworkConfig(kind=kind), task=TaskConfig(max_side=4))


@pytest.mark.parametrize("kind", ["cells", "residual_cnn"])
def test_weights_for_the_cells_of_one_canvas_are_refused_on_another(kind):
    experiment = experiment_of(kind)
    rules = experiment.environment.with_fields(max_grid_height=6, max_grid_width=6)
    message = r"the agent of run has weights for .* canvas of 5x4, so it plays on no other; train .*kind=relational"
    with pytest.raises(CheckpointError, match=message):
        _require_weights_fit(RunFolder(Path("run")), experiment, _parts_of_policy(experiment, rules))


@pytest.mark.parametrize(("kind", "side"), [("relational", 6), ("cells", None)])
def test_weights_without_places_fit_every_canvas_and_all_fit_their_own(kind, side):
    experiment = experiment_of(kind)
    rules = experiment.environment
    if side is not None:
        rules = rules.with_fields(max_grid_height=side, max_grid_width=side)
    parts = _parts_of_policy(experiment, rules)
    _require_weights_fit(RunFolder(Path("run")), experiment, parts)
    assert parts["learner.policy"].grid_shape == rules.grid_shape
