"""What the devices of a rollout tell one another: nothing, unless its tasks are sharded."""

import pytest
from small_world import filling, make_world

from jaxarc.parallel import data_mesh
from jaxarc.parallel.program import compile_play, make_statics
from jaxarc.parallel.shards import shard_tasks
from jaxarc.profiling import count_collectives


@pytest.mark.parametrize("sharded", [False, True])
def test_only_sharded_tasks_make_the_devices_of_a_rollout_talk(sharded):
    env, params = make_world()
    params = shard_tasks(params, data_mesh(1)) if sharded else params
    statics, _ = make_statics(env, params, filling(), 4, data_mesh(1))
    found = count_collectives(compile_play(statics, 2).call)
    assert {name for name, each in found.items() if each.num_places} == (
        {"all-gather", "reduce-scatter"} if sharded else set()
    )
