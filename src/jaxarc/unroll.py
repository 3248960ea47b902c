"""The loop of reinforcement learning: observe, act, step, again and again, in a batch of environments.

:func:`actor_step` is one turn of the loop in B environments, and :func:`unroll` is S turns in one ``jax.lax.scan``.
Rollouts over devices, evaluation, training and the recorders of experts are built on these two, so all of them agree on
what an agent sees before it acts. What a caller does not record, XLA does not compute.

Example, the rewards of 100 random steps in each of 8 environments::

    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(key_reset, 8), params)
    keys = jax.random.split(key_steps, (100, 8))
    policy = vectorize(RandomPolicy(env.action_space(params)))
    states, rewards = unroll(env, params, policy, states, keys, record=lambda transition: transition.reward)  # [100, 8]
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float32, Key, PyTree, Shaped

from jaxarc.envs.environment import Action
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.interface import Environment
from jaxarc.prng import as_typed_key
from jaxarc.spaces import Space
from jaxarc.types import Info, Observation, PRNGKey

State = TypeVar("State")
Record = TypeVar("Record")


class Policy(Protocol):
    """A function or module that chooses the action of one environment; rollouts ``vmap`` it."""

    def __call__(self, key: PRNGKey, observation: Observation, /) -> Action: ...


class RandomPolicy(eqx.Module):
    """Draws from an action space, such as ``env.action_space(params)``, whatever it observes."""

    space: Space

    def __call__(self, key: PRNGKey, observation: Observation) -> StructuredAction:
        return self.space.sample(as_typed_key(key))


class BatchPolicy(Protocol):
    """Chooses the actions of B environments together.

    It gets one element of the ``keys`` of :func:`unroll`, the observations and the states of all environments. An agent
    looks at the observations alone; the states are for experts, which may see the target.

    Returns:
        The actions, and whatever else the caller wants to record: values, log-probabilities, or None.
    """

    def __call__(self, key: Any, observation: Observation, states: Any, /) -> tuple[StructuredAction, Any]: ...


class Transition(NamedTuple, Generic[State]):
    """One step of B environments; every array has a leading axis B."""

    states: State  # before the step
    observation: Observation  # of the states before the step
    action: StructuredAction
    extras: Any  # what the policy returned beside the action
    reward: Float32[Array, " B"]
    done: Bool[Array, " B"]  # the episode has ended; with auto-reset the next states are those of a new one
    info: Info
    next_states: State  # after the step


def vectorize(policy: Policy) -> BatchPolicy:
    """Turn a policy of one environment into one of B environments, with a key for each."""

    def act(keys: Key[Array, " B"], observation: Observation, states: Any) -> tuple[Any, None]:
        return jax.vmap(policy)(keys, observation), None

    return act


def replay_actions(actions: StructuredAction, observation: Observation, states: Any) -> tuple[StructuredAction, None]:
    """Take given actions: a :class:`BatchPolicy` for an :func:`unroll` whose ``keys`` are the actions, [S, B, ...]."""
    return actions, None


def actor_step(
    env: Environment[State, Any], params: Any, policy: BatchPolicy, states: State, key: Any
) -> tuple[State, Transition[State]]:
    """Observe, act and step once in each of B environments; for loops that carry more than states.

    Args:
        env: of the states.
        params: tasks and rules.
        policy: chooses the B actions.
        states: of B environments.
        key: the policy gets it as it is.

    Returns:
        The states after the step, and what happened.
    """
    # The observation is made from the states and not carried from step to step, so that a loop needs no first
    # observation, and states alone say where it goes on. The one that the step returns is not used, nor computed.
    observation = jax.vmap(env.observe, (0, None))(states, params)
    action, extras = policy(key, observation, states)
    next_states, _, reward, done, info = jax.vmap(env.step, (0, 0, None))(states, action, params)
    return next_states, Transition(states, observation, action, extras, reward, done, info, next_states)


def unroll(
    env: Environment[State, Any],
    params: Any,
    policy: BatchPolicy,
    states: State,
    keys: PyTree[Shaped[Array | np.ndarray, "S ..."]],
    record: Callable[[Transition[State]], Record],
) -> tuple[State, Record]:
    """Take S steps in each of B environments; compilation belongs to the caller.

    Args:
        env: of the states. With auto-reset, a new episode begins where one ends; without, an ended one stays as it is.
        params: tasks and rules.
        policy: chooses the B actions of each step.
        states: of B environments.
        keys: for each step, what the policy gets as its key: keys [S] or [S, B], or actions for :func:`replay_actions`.
        record: picks what to keep of each step.

    Returns:
        The states after the last step, and what ``record`` picked, stacked along a leading axis S.
    """

    # One element of `keys` for each step: [S, B] keys give the policy [B] keys, [S, B, ...] actions give it [B, ...].
    def step(states: State, key: Any) -> tuple[State, Record]:
        states, transition = actor_step(env, params, policy, states, key)
        return states, record(transition)

    return jax.lax.scan(step, states, keys)
