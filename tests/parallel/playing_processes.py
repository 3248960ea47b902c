"""What each process of `test_processes` runs: meet the others, agree, and play a rollout together."""

import json

import jax

from jaxarc.config import ParallelConfig
from jaxarc.parallel import ProcessError, any_of, digest, exchange, is_first, joined, of_first, require_same, rollout

BATCH = 6  # which four devices do not divide


def fingerprint():
    """Play a little on all devices there are, and return the hash of everything that came of it, and its totals."""
    from small_world import KEY, filling, make_world  # makes arrays, which has to wait until all have met

    env, params = make_world()
    result = rollout(env, params, filling(), KEY, BATCH, 12, record=True)
    whole = result.gather()
    return digest((whole.states, whole.tally, whole.trajectory)), vars(result.totals)


def main(address: str, count: str, number: str) -> None:
    place = {"coordinator_address": address, "num_processes": int(count), "process_id": int(number)}
    config = ParallelConfig(num_devices=0, multihost=True, connect_seconds=120, **place)
    with joined(config):
        mine = jax.process_index()
        refused = ""
        try:
            require_same({"color": "red", "size": mine})
        except ProcessError as error:
            refused = str(error)
        told = {
            "devices": jax.device_count(),
            "is_first": is_first(),
            "texts": exchange("grid" * (mine + 1)),
            "any": [any_of(mine == 1), any_of(False)],
            "first": [of_first(mine == 0), of_first(mine == 1)],
            "refused": refused,
            "played": fingerprint(),
        }
    print(json.dumps(told))
