"""Several agents spread over devices learn what they learn on one, bit for bit."""

import json

from process_group import run_python

SCRIPT = """
import hashlib, json
import jax, jax.numpy as jnp, numpy as np
from jaxarc.config import *
from jaxarc.agents.ppo import TrainConfig
from jaxarc.parallel.mesh import SPLIT, data_mesh, place, replicate
from small_run import RULES_2X2
from small_tasks import tasks_of
from jaxarc.agents import updates
rules = RULES_2X2.with_fields(max_episode_steps=4, allowed_operations=(1, 2, 33, 34))
train_config = TrainConfig(AgentConfig(num_envs=4, rollout_steps=4, num_minibatches=2), NetworkConfig(hidden_size=4),
                ScheduleConfig(), AnswerConfig(), CloningConfig(num_updates=0), num_updates=2)
params = updates.make_params(tasks_of(([[0, 0]], [[1, 2]]), ([[1]], [[2], [2]])), rules)
keys = jax.vmap(jax.random.key)(jnp.arange(4))
found = {}
for count in (None, 4):
    mesh = None if count is None else data_mesh(count)
    state, shared = updates.start_training(keys, params, train_config, CurriculumConfig()), params
    if mesh is not None:
        state, shared = place(state, mesh, SPLIT), replicate(params, mesh)
    state, progress = updates.run_updates(state, shared, train_config, 2, mesh)
    played = updates.measure(state.players, shared, mesh)
    leaves = jax.tree.leaves((state, progress, played))
    used = len(leaves[0].sharding.device_set)
    digest = hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()
    found[str(count)] = [used, digest]
print(json.dumps(found))
"""


def test_agents_spread_over_devices_learn_the_same_bit_for_bit():
    found = json.loads(run_python(SCRIPT, devices=4))
    assert {count: used for count, (used, _) in found.items()} == {"None": 1, "4": 4}
    assert len({digest for _, digest in found.values()}) == 1
