"""One integer per action, for agents that choose among a fixed number of actions."""

import dataclasses
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32

from jaxarc.device_arrays import device_array
from jaxarc.envs.action_masks import FlatActionCodec
from jaxarc.envs.environment import Action
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.host_arrays import to_numpy
from jaxarc.interface import Environment, State, Step, compiled_step
from jaxarc.spaces import Discrete
from jaxarc.utils.error_handling import JAXErrorHandler, enforce_rules, refuse_unstructured
from jaxarc.wrappers.wrapper import Wrapper


@final
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FlatActions(Wrapper[State]):
    """Takes an action as one integer, ``0 .. n - 1`` with ``n = env.action_space(params).n``.

    The actions are the legal operations times the points, or the boxes, of the canvas, numbered by
    :class:`~jaxarc.envs.action_masks.FlatActionCodec`. There may be at most 100,000 of them, and masks have no
    numbers. It works around an :class:`AutoReset` and inside one.
    """

    env: Environment[State, Any]

    def to_structured(self, action: Int[Array, "*B"] | int, params: EnvParams) -> StructuredAction:
        """Return the point or box action that a number stands for; one out of range gets an invalid operation."""
        return FlatActionCodec.of(params.config).to_structured(_number(action))

    def to_flat(self, action: StructuredAction, params: EnvParams) -> Int32[Array, "*B"]:
        """Return the number of a point or box action; -1 when it is illegal or out of range."""
        return FlatActionCodec.of(params.config).to_flat(action)

    def step(self, state: State, action: Action, params: EnvParams) -> Step[State]:
        """Take one step with the action of this number; ``action.invalid_action_policy`` treats one out of range.

        Raises:
            TypeError: the action is not an integer.
            RuntimeError: it is out of range and the policy is ``"raise"``.
        """
        return _step(self.env, state, _number(action), params)

    def step_and_reset(self, state: State, action: Action, params: EnvParams) -> Step[State]:
        """Take one step, and start the next episode where it ended; see :meth:`Environment.step_and_reset`."""
        return _step_and_reset(self.env, state, _number(action), params)

    def action_space(self, params: EnvParams) -> Discrete:
        """The numbers of the legal actions; ``n`` is how many there are.

        Raises:
            ValueError: too many; see :meth:`FlatActionCodec.of`.
        """
        return Discrete(FlatActionCodec.of(params.config).num_actions)


@compiled_step
def _step(env: Environment[Any, Any], state: Any, action: Int32[Array, ""], params: EnvParams) -> Step[Any]:
    return env.step(state, _checked(env, action, params), params)


@compiled_step
def _step_and_reset(env: Environment[Any, Any], state: Any, action: Int32[Array, ""], params: EnvParams) -> Step[Any]:
    return env.step_and_reset(state, _checked(env, action, params), params)


def _checked(env: Environment[Any, Any], action: Int32[Array, ""], params: EnvParams) -> StructuredAction:
    # A number out of range becomes operation -1 further down. With the policy "raise" it is refused here, where the
    # message can name the number.
    codec = FlatActionCodec.of(params.config)
    if env.checks_actions(params) and JAXErrorHandler.stops_on_error():
        action = enforce_rules(action, [(codec.rule, action)], JAXErrorHandler.get_error_mode())
    return codec.to_structured(action)


def _number(action: Any) -> Int32[Array, "*B"]:
    if isinstance(action, type):
        refuse_unstructured(action)
    if not isinstance(action, jax.Array | np.ndarray | np.generic | int) or isinstance(action, bool):
        raise TypeError(
            f"a flat action is one integer, got a {type(action).__name__}; env.to_flat(action, params) turns a "
            "structured action into one"
        )
    number = action if isinstance(action, jax.Array) else to_numpy(action)
    if not jnp.issubdtype(number.dtype, jnp.integer):
        raise TypeError(f"a flat action is an integer, got dtype {number.dtype}; cast it with .astype(int)")
    if isinstance(number, np.ndarray) and number.size and (number.max() >= 2**31 or number.min() < -(2**31)):
        raise OverflowError(f"a flat action must fit int32, got {number}")
    return device_array(number, jnp.int32)
