"""What acts in a rollout."""

from typing import Protocol

import equinox as eqx

from jaxarc.envs.spaces import Space
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.prng import as_typed_key
from jaxarc.types import Observation, PRNGKey


class Policy(Protocol):
    """A function or module that chooses the action of one environment; rollouts ``vmap`` it."""

    def __call__(self, key: PRNGKey, observation: Observation, /) -> StructuredAction: ...


class RandomPolicy(eqx.Module):
    """Draws from an action space, such as ``env.action_space(params)``, whatever it observes."""

    space: Space

    def __call__(self, key: PRNGKey, observation: Observation) -> StructuredAction:
        return self.space.sample(as_typed_key(key))
