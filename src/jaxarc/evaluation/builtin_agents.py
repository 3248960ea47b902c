"""A policy that submits at once."""

import equinox as eqx
import jax.numpy as jnp

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.types import Observation, PRNGKey


class SubmitPolicy(eqx.Module):
    """Submits at once: right where the answer equals the input."""

    selection_format: str = eqx.field(static=True)
    grid_shape: tuple[int, int] = eqx.field(static=True)

    @classmethod
    def for_config(cls, config: JaxArcConfig) -> "SubmitPolicy":
        """Make the policy of environments with this config."""
        return cls(config.action.selection_format, config.grid_shape)

    def __call__(self, key: PRNGKey, observation: Observation) -> StructuredAction:
        return submission(self.selection_format, self.grid_shape)


def submission(selection_format: str, grid_shape: tuple[int, int]) -> StructuredAction:
    """Return the action that submits; its selection does not matter."""
    if selection_format == "mask":
        return MaskAction(c.SUBMIT, jnp.zeros(grid_shape, jnp.bool_))
    if selection_format == "point":
        return PointAction(c.SUBMIT, 0, 0)
    return BboxAction(c.SUBMIT, 0, 0, 0, 0)
