"""The agent of an evaluation: a policy, or a policy with a memory of its episode; and one that submits at once."""

import abc
from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, PyTree

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.environment import Action, ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import ACTION_CLASSES, BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.errors import UsageError
from jaxarc.types import Observation, PRNGKey
from jaxarc.unroll import Policy
from jaxarc.wrappers import FlatActions

Memory = PyTree[Array]

_CANNOT_ACT: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)  # on an observation of another shape


class AgentMismatchError(UsageError, ValueError):
    """An agent needs other observations than it gets, or takes other actions than it may."""


class EpisodeSpec(NamedTuple):
    """An episode of an evaluation, by task, pair and attempt."""

    task_index: Int32[Array, "*B"]  # in the task set
    pair_index: Int32[Array, "*B"]  # which test input of the task
    attempt_index: Int32[Array, "*B"]  # which episode of this test input, from 0 on


class Agent(eqx.Module):
    """Acts in one episode with a memory; evaluations ``vmap`` it.

    An agent without memory is simply a :class:`jaxarc.parallel.Policy`, a function ``(key, observation) -> action``.
    """

    @abc.abstractmethod
    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        """Make the memory that an episode starts with, any pytree of arrays, from its first observation."""

    @abc.abstractmethod
    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[Action, Memory]:
        """Return the next action, structured or flat, and the memory with its shapes and dtypes unchanged."""


class Memoryless(Agent):
    """A policy as an agent."""

    policy: Policy

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        return ()

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[Action, Memory]:
        return self.policy(key, observation), memory


def as_agent(agent: Agent | Policy) -> Agent:
    """Return an agent as it is, and a policy as an agent without memory."""
    return agent if isinstance(agent, Agent) else Memoryless(agent)


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


def as_structured(action: Action, params: EnvParams) -> StructuredAction:
    """Return an action as it is, and of flat actions, integers, those that they number; see :class:`FlatActions`.

    Raises:
        ValueError: the actions of the config have no numbers.
    """
    is_flat = isinstance(action, int | jax.Array)
    return FlatActions(ArcEnvironment()).to_structured(action, params) if is_flat else action


def require_agent_fits(agent: Agent, params: EnvParams) -> None:
    """Refuse an agent that cannot act on the observations, or whose actions the environment does not take.

    Only shapes are computed.

    Raises:
        AgentMismatchError: with the observation or action that there is, and the one that is expected.
        TypeError, ValueError: the actions are numbers, but no integers, or the config has too many to number.
    """
    selection_format = params.config.action.selection_format
    wanted = ACTION_CLASSES[selection_format]
    key = jax.random.key(0)
    # Everything is traced by shapes, so a wrong agent is refused before any task is played.
    observation = eqx.filter_eval_shape(lambda: ArcEnvironment().reset(key, params)[1])
    try:
        action, memory, after = eqx.filter_eval_shape(_first_step, agent, key, observation)
    except _CANNOT_ACT as error:
        raise AgentMismatchError(
            f"the agent cannot act on what this environment shows, {_describe(observation)} "
            f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); "
            "evaluate it with the observations that it was made for"
        ) from error
    action = eqx.filter_eval_shape(as_structured, action, params)
    if not isinstance(action, wanted):
        raise AgentMismatchError(
            f"the agent takes actions of type {type(action).__name__}, but action.selection_format is "
            f"{selection_format!r}, which takes {wanted.__name__} or an integer; change the agent or the config"
        )
    if not _same_shapes(memory, after):
        raise AgentMismatchError(
            f"the agent's memory changes from {_describe(memory)} to {_describe(after)} in its first step; keep "
            "structure, shapes and dtypes as start made them"
        )


def _first_step(agent: Agent, key: PRNGKey, observation: Observation) -> tuple[Action, Memory, Memory]:
    index = jnp.int32(0)
    memory = agent.start(key, EpisodeSpec(index, index, index), observation)
    action, after = agent.act(key, observation, memory)
    return action, *(jax.tree.map(jnp.asarray, tree) for tree in (memory, after))


def _same_shapes(left: PyTree, right: PyTree) -> bool:
    """Whether structure, shapes and dtypes are the same."""
    # The memory is carried through a loop, whose types may not change from step to step.
    kinds = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)] for tree in (left, right)]
    return jax.tree.structure(left) == jax.tree.structure(right) and kinds[0] == kinds[1]


def _describe(tree: PyTree) -> str:
    """Write shapes and dtypes as text: ``working_grid int8[3, 3], step_count int32[]``."""
    if isinstance(tree, dict):
        return ", ".join(f"{name} {_describe(part)}" for name, part in tree.items())
    leaves = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree)]
    return ", ".join(leaves) or "nothing"
