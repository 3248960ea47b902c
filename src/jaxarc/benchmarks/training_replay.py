"""An environment that costs nothing, as the bound of what a faster one could bring to training."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Int32

from jaxarc.agents import EditPolicy
from jaxarc.envs.environment import Environment, Step
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.wrappers.wrapper import Wrapper


class Happened(eqx.Module):
    """What each recorded step paid and told."""

    reward: Float32[Array, "*B R"]
    done: Bool[Array, "*B R"]
    info: Info  # without the final observation, leaves [*B, R]


class Recording(eqx.Module):
    """Steps that happened, and which of them comes next."""

    position: Int32[Array, "*B"]  # 0 .. R - 1
    shown: Observation
    shown_next: Observation
    happened: Happened


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Replay(Wrapper[Recording]):
    """Plays recorded steps over and over, whatever the action: rewards, endings and information as they happened.

    Observations have the shapes and dtypes of the real ones, but there are only two of each environment, which take
    turns: were there one, the compiler would compute once what a network makes of it.
    """

    env: Environment[Any]  # the recorded one
    recordings: Recording  # of B environments

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[Recording, Observation]:
        """Begin with the recording of any environment, whatever task is asked for."""
        num_envs = self.recordings.position.shape[0]
        chosen = jax.random.randint(key, (), 0, num_envs, jnp.int32)
        recording = jax.tree.map(lambda x: x[chosen], self.recordings)
        return recording, recording.shown

    def reset_next(self, state: Recording, params: EnvParams) -> tuple[Recording, Observation]:
        """Begin again with the first recorded step."""
        return dataclasses.replace(state, position=jnp.zeros_like(state.position)), state.shown

    def step(self, state: Recording, action: StructuredAction, params: EnvParams) -> Step[Recording]:
        now = jax.tree.map(lambda x: x[state.position], state.happened)
        after = Recording(
            (state.position + 1) % state.happened.done.shape[-1], state.shown_next, state.shown, state.happened
        )
        return after, after.shown, now.reward, now.done, {**now.info, "final_observation": after.shown}

    def observe(self, state: Recording, params: EnvParams) -> Observation:
        return state.shown

    def info(self, state: Recording, params: EnvParams) -> Info:
        """Report on the step to come, as of an episode that is going on."""
        told = jax.tree.map(lambda x: x[state.position], state.happened.info)
        going_on = dict.fromkeys(("terminated", "truncated"), jnp.zeros_like(state.position, jnp.bool_))
        return {**told, **going_on, "final_observation": state.shown}


def record(
    policy: EditPolicy, env: Environment[Any], params: EnvParams, states: Any, key: PRNGKey, num_steps: int
) -> Recording:
    """Let a policy take ``num_steps`` steps in each of B environments that reset themselves."""
    step_all = jax.vmap(env.step, (0, 0, None))

    def play(states: Any, key_edit: PRNGKey) -> tuple[Any, Happened]:
        decision = policy.sample(key_edit, env.observe(states, params))
        states, _, reward, done, info = step_all(states, policy.to_action(decision.edit), params)
        return states, Happened(reward, done, {name: info[name] for name in info if name != "final_observation"})

    last, happened = jax.lax.scan(play, states, jax.random.split(key, num_steps))
    happened = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), happened)
    position = jnp.zeros(happened.done.shape[0], jnp.int32)
    return Recording(position, env.observe(states, params), env.observe(last, params), happened)
