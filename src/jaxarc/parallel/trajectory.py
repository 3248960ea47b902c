"""What every step of a rollout did, where it is recorded."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float32

from jaxarc.envs.structured_actions import StructuredAction


class Trajectory(NamedTuple):
    """Steps of many environments; with the states before the first one they give every observation again."""

    actions: StructuredAction  # arrays [S, B, ...]
    rewards: Float32[Array, "S B"]
    dones: Bool[Array, "S B"]  # an episode ended in this step
    terminated: Bool[Array, "S B"]  # it ended by a submit, not by the limit of steps
