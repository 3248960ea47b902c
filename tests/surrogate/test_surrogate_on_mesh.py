"""A surrogate learns the same on any mesh, but for rounding: eight devices in a process of their own."""

import json

import equinox as eqx
import jax
import pytest
from linear_scorer import make_batch
from process_group import run_python

from jaxarc.surrogate import CandidateScorer, MeshPlacement, SurrogateNetworkConfig, in_one_piece, over_stages

SCRIPT = """
import json
import equinox as eqx, jax, jax.numpy as jnp, numpy as np
from jaxarc.parallel import create_mesh
from jaxarc.profiling import CompileCounter, count_collectives
from jaxarc.surrogate import *

B, N, K, F = 16, 3, 5, 3
network = SurrogateNetworkConfig(latent_size=8, num_layers=4, num_heads=2)
config = SurrogateTrainingConfig(num_steps=10, warmup_steps=0)
optimizer, random = make_surrogate_optimizer(config), np.random.default_rng(0)
data, probs = random.normal(size=(B, 2 * N, N, 3)).astype(np.float32), random.dirichlet(np.ones(K), B)
batch = TrainingBatchJAX(data, probs, random.random(B))
boxes = [jnp.asarray(random.integers(0, 2, (B, K, N)), jnp.float32) for _ in range(2)]
features = jnp.asarray(random.normal(size=(B, K, F)), jnp.float32)
candidates = CandidateSet(*boxes, features, jnp.ones((B, K), jnp.bool_))
make_model = jax.jit(lambda: CandidateScorer(jax.random.key(0), network, F))

def learn(model, mesh=None, config=config):
    placement = MeshPlacement(mesh, config.accumulation_steps)
    step = create_jax_surrogate_train_step(model, placement.keep(optimizer), kl_divergence_loss_jax, config)
    model, state = placement.place_weights((model, init_optimizer(optimizer, model)))
    examples, losses = placement.place_batch((batch, candidates)), []
    for time in range(3):
        before = jax.tree.leaves(eqx.filter((model, state), eqx.is_inexact_array))
        with CompileCounter() as counter:
            model, state, metrics = step(model, state, *examples)
        losses.append(float(metrics["total_loss"]))
    counter.assert_none()
    return losses, model, state, all(leaf.is_deleted() for leaf in before), step, examples

expected, *_ = learn(make_model())
found = {"expected": expected}
first = lambda leaf: leaf.addressable_shards[0].data.shape
parts = lambda tree: [first(x) for x in (tree.trunk.layers.rows_in.weight, tree.gate.bias, tree.head.last.bias)]
count = lambda *arguments: count_collectives(step.compile(*arguments))
for shape, names, num_parts in [((8,), "data", 2), ((4, 2), "data model", 1), ((2, 4), "data model", 1),
                                ((2, 4), "data stage", 1)]:
    mesh, model = create_mesh(shape, names.split()), make_model()
    if "stage" in names:
        model = over_stages(model, mesh, num_parts=2)
    chosen = config.replace(accumulation_steps=num_parts)
    losses, model, state, donated, step, examples = learn(model, mesh, chosen)
    collectives = {} if shape == (2, 4) and "model" in names else count(model, state, *examples)
    found[f"{names} {shape}"] = [losses, donated, parts(model), parts(state[1][0].mu), collectives]

with jax.transfer_guard("disallow"):
    jax.block_until_ready(step(model, state, *examples))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    return json.loads(run_python(SCRIPT, devices=8))


@pytest.fixture(scope="module")
def meshes(found):
    return {name: told for name, told in found.items() if name.startswith("data")}


def test_the_losses_are_those_of_one_device(found, meshes):
    assert found["expected"][2] < found["expected"][0]
    for losses, *_ in meshes.values():
        assert losses == pytest.approx(found["expected"], abs=1e-5)


@pytest.mark.skipif(jax.config.jax_debug_nans, reason="JAX donates nothing where it looks for NaN")
def test_model_and_state_are_donated(meshes):
    assert all(donated for _, donated, *_ in meshes.values())


def test_each_device_holds_its_part_of_the_weights_and_of_their_moments(meshes):
    whole, gate, head = [4, 8, 24], [16], [1]
    parts = {name: weights for name, (_, _, weights, *_) in meshes.items()}
    assert parts == {
        "data (8,)": [whole, gate, head],
        "data model (4, 2)": [[4, 8, 12], [8], head],
        "data model (2, 4)": [[4, 8, 6], [4], head],
        "data stage (2, 4)": [[1, 8, 24], gate, head],
    }
    for _, _, weights, moments, _ in meshes.values():
        assert moments == weights


def test_devices_that_split_examples_alone_only_add_up(meshes):
    def used(name):
        return {kind for kind, (count, _) in meshes[name][4].items() if count}

    assert used("data (8,)") == {"all-reduce"}
    assert used("data stage (2, 4)") == {"all-reduce", "collective-permute"}
    assert "all-gather" in used("data model (4, 2)")


def mesh_of(*axes):
    return jax.make_mesh((1,) * len(axes), axes, axis_types=(jax.sharding.AxisType.Auto,) * len(axes))


def test_batches_and_meshes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"'data'.*\('model',\)"):
        MeshPlacement(mesh_of("model"))
    with pytest.raises(ValueError, match=r"4 examples .* 1 device.* 3$"):
        MeshPlacement(mesh_of("data"), accumulation_steps=3).place_batch(make_batch(count=4))


@pytest.fixture(scope="module")
def scorer():
    network = SurrogateNetworkConfig(latent_size=4, num_layers=2, num_heads=2)
    return jax.jit(lambda: CandidateScorer(jax.random.key(0), network, 1))()


def test_layers_that_stages_cannot_share_are_named(scorer):
    stages = jax.sharding.AbstractMesh((3,), ("stage",))
    with pytest.raises(ValueError, match=r"num_layers.*2, 3.*0"):
        over_stages(scorer, stages, 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"'stage'.*\('data',\)"):
        over_stages(scorer, mesh_of("data"), 1)
    pipelined = over_stages(scorer, mesh_of("stage"), 1)
    assert eqx.tree_equal(in_one_piece(pipelined), scorer)
    with pytest.raises(ValueError, match="CandidateScorer"):
        over_stages(pipelined, mesh_of("stage"), 1)
