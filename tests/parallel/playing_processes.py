"""What each process of `test_processes` runs: meet the others, agree, and play a rollout together."""

import json

import jax

from jaxarc.config import ParallelConfig
from jaxarc.parallel import (
    ProcessError,
    allgather_text,
    any_process,
    broadcast_flag,
    digest,
    distributed_session,
    is_primary,
    require_same,
    rollout,
)

BATCH = 6  # which four devices do not divide


def fingerprint():
    """Play a little on all devices there are, and return the hash of everything that came of it, and its totals."""
    from small_world import KEY, filling, make_world  # makes arrays, which has to wait until all have met

    env, params = make_world()
    result = rollout(env, params, filling(), KEY, BATCH, 12, record=True)
    whole = result.gather()
    return digest((whole.states, whole.metrics, whole.trajectory)), vars(result.totals)


def main(address: str, count: str, number: str) -> None:
    place = {"coordinator_address": address, "num_processes": int(count), "process_id": int(number)}
    config = ParallelConfig(num_devices=0, multihost=True, connect_seconds=120, **place)
    with distributed_session(config):
        mine = jax.process_index()
        refused = ""
        try:
            require_same({"color": "red", "size": mine})
        except ProcessError as error:
            refused = str(error)
        told = {
            "devices": jax.device_count(),
            "is_primary": is_primary(),
            "texts": allgather_text("grid" * (mine + 1)),
            "any": [any_process(mine == 1), any_process(False)],
            "first": [broadcast_flag(mine == 0), broadcast_flag(mine == 1)],
            "refused": refused,
            "played": fingerprint(),
        }
    print(json.dumps(told))
