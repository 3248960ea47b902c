"""What devices tell one another is counted in the compiled program; a rollout's tell nothing."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P
from small_world import filling, make_world

from jaxarc.parallel import data_mesh
from jaxarc.parallel.collectives import Collective, count_collectives
from jaxarc.parallel.program import compile_play, make_plan
from jaxarc.parallel.task_shards import shard_tasks

PROGRAM = """
  %sum = f32[2,3]{1,0} all-reduce(%x), channel_id=1, to_apply=%add
  %more = f32[]{:T(128)} all-reduce(%y), channel_id=2, to_apply=%add
  %both = (bf16[4,8]{1,0:T(8,128)}, s8[16]{0}) all-to-all(%a, %b), replica_groups={{0,1}}
  %begin = (f32[2]{0}, f32[8]{0}) all-gather-start(%x), dimensions={0}
  %end = f32[8]{0} all-gather-done(%begin)
  %send = (pred[5], pred[5], u32[], u32[]) collective-permute-start(%p), source_target_pairs={{0,1}}
  ROOT %out = f32[2,3]{1,0} add(%sum, %all-reduce-like), metadata={op_name="all-reduce(x)"}
"""


def test_each_kind_is_counted_with_the_bytes_that_it_leaves_on_a_device():
    assert count_collectives(PROGRAM) == {
        "all-reduce": Collective(2, 4 * 6 + 4),
        "all-to-all": Collective(1, 2 * 32 + 16),
        "all-gather": Collective(1, 4 * 8),
        "collective-permute": Collective(1, 5),
    }


def test_a_backend_that_shows_nothing_is_named():
    class Hidden:
        def as_text(self):
            return None

    with pytest.raises(ValueError, match="does not show the HLO"):
        count_collectives(Hidden())


def test_a_compiled_sum_over_devices_is_found():
    mesh = data_mesh(1)
    total = jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
    text = jax.jit(total).lower(jnp.ones(3)).as_text("hlo")
    assert count_collectives(text) == {"all-reduce": Collective(1, 12)}


@pytest.mark.parametrize("sharded", [False, True])
def test_only_sharded_tasks_make_the_devices_of_a_rollout_talk(sharded):
    env, params = make_world()
    params = shard_tasks(params, data_mesh(1)) if sharded else params
    plan, _ = make_plan(env, params, filling(), 4, data_mesh(1))
    found = count_collectives(compile_play(plan, 2).call)
    assert set(found) == ({"all-gather", "reduce-scatter"} if sharded else set())
