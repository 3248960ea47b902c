"""Layers on several devices do what they do on one, forward and backward: eight devices in a process of their own."""

import json

import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from process_group import run_python

from jaxarc.parallel import pipeline

SCRIPT = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr
from jaxarc.parallel import create_mesh, pipeline
from jaxarc.profiling import count_collectives

def stage(weights, part):
    return lax.scan(lambda x, w: (x + jnp.tanh(x @ w), None), part, weights)[0]

def lengths(jaxpr):
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "scan":
            yield eqn.params["length"]
        is_program = lambda x: isinstance(x, Jaxpr | ClosedJaxpr)
        for inner in filter(is_program, jax.tree.leaves(list(eqn.params.values()), is_leaf=is_program)):
            yield from lengths(inner)

weights = 0.1 * jax.random.normal(jax.random.key(0), (24, 4, 4))
batch = jax.random.normal(jax.random.key(1), (24, 4))
wanted = jax.random.normal(jax.random.key(2), (24, 4))
loss = lambda through: lambda weights, batch: jnp.square(through(weights, batch) - wanted).mean()
alone = jax.jit(jax.value_and_grad(loss(stage), (0, 1)))(weights, batch)
found = {}
for shape, names, num_parts in [
    ((3,), ("stage",), 1), ((3,), ("stage",), 4), ((8,), ("stage",), 3), ((2, 4), ("data", "stage"), 3),
    ((4, 2), ("data", "stage"), 6), ((2, 4), ("stage", "data"), 2),
]:
    mesh = create_mesh(shape, names)
    through = lambda weights, batch: pipeline(stage, weights, batch, mesh, num_parts)
    split = jax.device_put(weights, jax.NamedSharding(mesh, jax.P("stage")))
    learn = jax.jit(jax.value_and_grad(loss(through), (0, 1))).lower(split, batch).compile()
    both = zip(jax.tree.leaves(learn(split, batch)), jax.tree.leaves(alone))
    apart = max(float(np.abs(jax.device_get(a) - jax.device_get(b)).max() / np.abs(b).max()) for a, b in both)
    beats = max(lengths(jax.make_jaxpr(through)(weights, batch).jaxpr))
    found[f"{names} {shape} {num_parts}"] = [mesh.shape["stage"], num_parts, apart, beats, count_collectives(learn)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    return list(json.loads(run_python(SCRIPT, devices=8)).values())


def test_a_pipeline_is_its_layers_one_after_the_other_forward_and_backward(found):
    assert len(found) == 6
    assert max(apart for _, _, apart, _, _ in found) < 1e-5


def test_the_parts_pass_in_as_many_beats_as_there_are_parts_and_stages_less_one(found):
    for num_stages, num_parts, _, beats, _ in found:
        assert beats == max(num_parts + num_stages - 1, 24 // num_stages)  # or the layers of a stage, if these are more


def test_only_what_a_stage_hands_on_travels(found):
    for _, _, _, _, collectives in found:
        assert collectives["collective-permute"][0] >= 2  # one forward, one backward
        assert collectives["all-gather"][0] == collectives["all-to-all"][0] == 0


MESH = AbstractMesh((2, 3), ("data", "stage"))
WEIGHTS, BATCH = jnp.ones((6, 2, 2)), jnp.ones((8, 2))


def test_what_does_not_fit_is_named():
    use = lambda weights, batch, mesh, num_parts: pipeline(lambda _, part: part, weights, batch, mesh, num_parts)
    for arguments, named in (
        ((WEIGHTS, BATCH, MESH, 3), "8.*3.*2"),
        ((WEIGHTS[:4], BATCH, MESH, 2), "3 stages.*4"),
        (((WEIGHTS, WEIGHTS[:3]), BATCH, MESH, 2), "3 and 6"),
        ((WEIGHTS, BATCH, AbstractMesh((2,), ("data",)), 2), r"'stage'.*\('data',\)"),
        ((WEIGHTS, BATCH, AbstractMesh((2, 2), ("stage", "model")), 2), r"\('stage', 'model'\)"),
    ):
        with pytest.raises(ValueError, match=named):
            use(*arguments)
