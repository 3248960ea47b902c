"""A run of a surrogate on several devices: what it learns is what it learns on one, but for rounding."""

import json

import jax
import numpy as np
import pytest
from process_group import run_python

from jaxarc.surrogate.mesh_placement import MeshPlacement

SCRIPT = """
import json, tempfile
from pathlib import Path
import jax, numpy as np
from jaxarc.config import CheckpointConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.config import ParentSetsConfig
from jaxarc.config import StructuralModelConfig
from jaxarc.config import SurrogateMeshConfig
from jaxarc.config import SurrogateConfig
from jaxarc.runs import RunFolder
from jaxarc.surrogate import SurrogateExperiment, make_task, train_surrogate

def learn(folder, steps=99, resume=False, **mesh):
    experiment = SurrogateExperiment(
        surrogate=SurrogateConfig(problem="parent_sets", steps_per_report=1, reports_per_evaluation=9),
        surrogate_network=SurrogateNetworkConfig(latent_size=8, num_layers=2, num_heads=2),
        surrogate_training=SurrogateTrainingConfig(num_steps=4, warmup_steps=1),
        structural_models=StructuralModelConfig(num_variables=3, num_samples=6),
        parent_sets=ParentSetsConfig(models_per_batch=8, eval_models=4),
        checkpoint=CheckpointConfig(min_seconds=0), surrogate_mesh=SurrogateMeshConfig(**mesh))
    told = []
    stop = lambda: len(told) > steps
    return train_surrogate(experiment, make_task(experiment), folder, told.append, stop, resume=resume)

whole, broken = (RunFolder(Path(tempfile.mkdtemp())) for _ in range(2))
expected = learn(whole)
learn(broken, 2, data_devices=2, stages=2, parts=4)
outcome = learn(broken, resume=True, data_devices=2, model_devices=2)
losses = lambda outcome: [report.total_loss for report in outcome.reports if report.total_loss is not None]
models = [outcome.state.model for outcome in (expected, outcome)]
print(json.dumps({
    "losses": [losses(expected), losses(outcome)],
    "kl": [each.reports[-1].kl for each in (expected, outcome)],
    "same_kind": jax.tree.structure(models[0]) == jax.tree.structure(models[1]),
    "devices": sorted({len(leaf.devices()) for leaf in jax.tree.leaves(models[1]) if isinstance(leaf, jax.Array)}),
}))
"""


def test_a_run_over_stages_goes_on_over_matrices_and_learns_what_one_device_does():
    found = json.loads(run_python(SCRIPT, devices=4))
    ours, theirs = found["losses"]
    assert len(ours) == 4
    assert theirs == pytest.approx(ours, abs=1e-4)
    assert found["kl"][1] == pytest.approx(found["kl"][0], abs=1e-4)
    assert found["same_kind"]
    assert found["devices"] == [1]


def test_a_batch_that_cannot_be_split_evenly_is_refused():
    placement = MeshPlacement(jax.sharding.AbstractMesh((2, 3), ("data", "stage")), accumulation_steps=2, num_parts=4)
    with pytest.raises(ValueError, match=r"a batch of 24 examples .*over 2 device.* a multiple of 16"):
        placement.place_batch(np.ones(24))
