"""Collectives are counted in the compiled program: eight devices of the CPU, in a process of their own."""

import json
from unittest.mock import create_autospec

import pytest
from jax.stages import Compiled
from process_group import run_python

from jaxarc.profiling import COLLECTIVES, Collective, count_collectives

NOTHING = dict.fromkeys(COLLECTIVES, Collective(0, 0))
PROGRAM = """
import json, jax, jax.numpy as jnp
from jax import lax
from jaxarc.profiling import count_collectives

mesh = jax.make_mesh((8,), ("B",), axis_types=(jax.sharding.AxisType.Auto,))
batch, same = jax.P("B"), jax.P()

def count(f, out):
    mapped = jax.shard_map(f, mesh=mesh, in_specs=batch, out_specs=out, check_vma=False)
    found = count_collectives(jax.jit(mapped).lower(jnp.ones((64, 8))).compile())
    return {name: each.num_instructions for name, each in found.items()}

ring = [(i, (i + 1) % 8) for i in range(8)]
body = lambda _, x: lax.psum(x, "B") / 8
print(json.dumps({
    "nothing": count(lambda x: x + 1, batch),
    "sum": count(lambda x: lax.psum(x, "B"), same),
    "sum and shift": count(lambda x: lax.ppermute(x, "B", ring) + lax.psum(x * 2, "B"), batch),
    "gather": count(lambda x: lax.all_gather(x, "B"), same),
    "scatter": count(lambda x: lax.psum_scatter(x, "B", scatter_dimension=0, tiled=True), batch),
    "transpose": count(lambda x: lax.all_to_all(x, "B", 1, 0), batch),
    "loop": count(lambda x: lax.fori_loop(0, 5, body, x), batch),
}))
"""


@pytest.fixture(scope="module")
def counts():
    return json.loads(run_python(PROGRAM, devices=8, JAX_PLATFORMS="cpu"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nothing", {}),
        ("sum", {"all-reduce": 1}),
        ("sum and shift", {"all-reduce": 1, "collective-permute": 1}),
        ("gather", {"all-gather": 1}),
        ("scatter", {"reduce-scatter": 1}),
        ("transpose", {"all-to-all": 1}),
        ("loop", {"all-reduce": 1}),
    ],
)
def test_every_collective_is_counted_once(counts, name, expected):
    assert counts[name] == dict.fromkeys(COLLECTIVES, 0) | expected


def test_a_backend_without_text_is_named():
    program = create_autospec(Compiled, instance=True)
    program.as_text.return_value = None
    with pytest.raises(ValueError, match="no text"):
        count_collectives(program)


def test_each_kind_is_counted_with_the_bytes_that_it_leaves_on_a_device():
    text = """
  %sum = f32[2,3]{1,0} all-reduce(%x), channel_id=1, to_apply=%add
  %more = f32[]{:T(128)} all-reduce(%y), channel_id=2, to_apply=%add
  %both = (bf16[4,8]{1,0:T(8,128)}, s8[16]{0}) all-to-all(%a, %b), replica_groups={{0,1}}
  %begin = (f32[2]{0}, f32[8]{0}) all-gather-start(%x), dimensions={0}
  %end = f32[8]{0} all-gather-done(%begin)
  %send = (pred[5], pred[5], u32[], u32[]) collective-permute-start(%p), source_target_pairs={{0,1}}
  ROOT %out = f32[2,3]{1,0} add(%sum, %all-reduce-like), metadata={op_name="all-reduce(x)"}
"""
    assert count_collectives(text) == NOTHING | {
        "all-reduce": Collective(2, 4 * 6 + 4),
        "all-to-all": Collective(1, 2 * 32 + 16),
        "all-gather": Collective(1, 4 * 8),
        "collective-permute": Collective(1, 5),
    }
