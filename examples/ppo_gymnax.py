"""PPO through gymnax's interface alone: nothing below the first function knows that the environment is ARC.

    python examples/ppo_gymnax.py --updates 80

The task is to paint a blue 3x3 grid red and to submit it: one action of 18 in each step, ten right ones in a row. The
whole training, environment included, is one compiled program. ``jaxarc train`` has an agent that learns all of ARC's
editing; this shows how to bring your own.
"""

import argparse
from typing import Any, NamedTuple

import equinox as eqx
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnax.wrappers import LegacyStepAPIWrapper, LogWrapper
from rich.console import Console

from jaxarc.adapters import GymnaxEnvironment
from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask

NUM_ENVS, NUM_STEPS, NUM_EPOCHS, NUM_MINIBATCHES = 64, 32, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.99, 0.95, 0.2, 0.01, 3e-3


def make_environment() -> tuple[Any, Any]:
    blue, red = np.full((3, 3), 1), np.full((3, 3), 2)
    tasks = TaskSet("red", (RawTask("paint-it-red", ((blue, red),), ((blue, red),)),))
    gymnax.register("paint-it-red", lambda **fields: GymnaxEnvironment(tasks, **fields))
    env, params = gymnax.make(
        "paint-it-red",
        flat_actions=True,
        selection_format="point",
        max_grid_height=3,
        max_grid_width=3,
        max_episode_steps=30,
        allowed_operations=(2, 34),  # fill red, submit
    )
    return LegacyStepAPIWrapper(LogWrapper(env)), params


class ActorCritic(eqx.Module):
    actor: eqx.nn.MLP
    critic: eqx.nn.MLP

    def __init__(self, key: jax.Array, num_inputs: int, num_actions: int):
        key_actor, key_critic = jax.random.split(key)
        self.actor = eqx.nn.MLP(num_inputs, num_actions, 64, 2, jax.nn.tanh, key=key_actor)
        self.critic = eqx.nn.MLP(num_inputs, 1, 64, 2, jax.nn.tanh, key=key_critic)

    def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        features = observation.reshape(-1).astype(jnp.float32)
        return jax.nn.log_softmax(self.actor(features)), self.critic(features)[0]


class Sample(NamedTuple):
    observation: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array


class Carry(NamedTuple):
    model: ActorCritic
    optimizer_state: Any
    env_states: Any
    observations: jax.Array
    key: jax.Array


def train(env: Any, params: Any, key: jax.Array, num_updates: int) -> jax.Array:
    """Learn, and return the mean return of the episodes that ended in each update."""
    key_model, key_reset, key = jax.random.split(key, 3)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(LEARNING_RATE))
    size = int(np.prod(env.observation_space(params).shape))
    model = ActorCritic(key_model, size, env.num_actions)
    arrays, static = eqx.partition(model, eqx.is_array)
    observations, env_states = jax.vmap(env.reset, (0, None))(jax.random.split(key_reset, NUM_ENVS), params)

    def step(carry: Carry, key: jax.Array) -> tuple[Carry, tuple[Sample, dict]]:
        key_act, key_step = jax.random.split(key)
        log_probs, values = jax.vmap(eqx.combine(carry.model, static))(carry.observations)
        actions = jax.random.categorical(key_act, log_probs)
        chosen = jnp.take_along_axis(log_probs, actions[:, None], axis=1)[:, 0]
        keys = jax.random.split(key_step, NUM_ENVS)
        observations, env_states, rewards, dones, info = jax.vmap(env.step, (0, 0, 0, None))(
            keys, carry.env_states, actions, params
        )
        sample = Sample(carry.observations, actions, chosen, values, rewards, dones)
        return carry._replace(env_states=env_states, observations=observations), (sample, info)

    def loss(arrays: Any, batch: Sample, advantage: jax.Array, target: jax.Array) -> jax.Array:
        log_probs, values = jax.vmap(eqx.combine(arrays, static))(batch.observation)
        chosen = jnp.take_along_axis(log_probs, batch.action[:, None], axis=1)[:, 0]
        ratio = jnp.exp(chosen - batch.log_prob)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
        entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1)
        return -surrogate.mean() + 0.5 * ((values - target) ** 2).mean() - ENTROPY * entropy.mean()

    def learn(carry: tuple, minibatch: tuple) -> tuple[tuple, None]:
        arrays, optimizer_state = carry
        gradient = jax.grad(loss)(arrays, *minibatch)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, arrays)
        return (optax.apply_updates(arrays, updates), optimizer_state), None

    def update(carry: Carry, _: None) -> tuple[Carry, jax.Array]:
        key, key_steps, *key_epochs = jax.random.split(carry.key, 2 + NUM_EPOCHS)
        carry, (samples, info) = jax.lax.scan(step, carry, jax.random.split(key_steps, NUM_STEPS))
        _, last_value = jax.vmap(eqx.combine(carry.model, static))(carry.observations)

        def backward(later: tuple, sample: Sample) -> tuple[tuple, jax.Array]:
            advantage, value = later
            going_on = 1 - sample.done.astype(jnp.float32)
            error = sample.reward + GAMMA * value * going_on - sample.value
            advantage = error + GAMMA * LAMBDA * going_on * advantage
            return (advantage, sample.value), advantage

        _, advantages = jax.lax.scan(backward, (jnp.zeros(NUM_ENVS), last_value), samples, reverse=True)
        everything = samples, advantages, advantages + samples.value
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), everything)
        learned = carry.model, carry.optimizer_state
        for key_epoch in key_epochs:
            order = jax.random.permutation(key_epoch, NUM_ENVS * NUM_STEPS).reshape(NUM_MINIBATCHES, -1)
            learned, _ = jax.lax.scan(learn, learned, jax.tree.map(lambda x, order=order: x[order], flat))
        ended = info["returned_episode"]
        returns = (info["returned_episode_returns"] * ended).sum() / jnp.maximum(ended.sum(), 1)
        return Carry(*learned, carry.env_states, carry.observations, key), returns

    start = Carry(arrays, optimizer.init(arrays), env_states, observations, key)
    return jax.lax.scan(update, start, None, num_updates)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=80)
    options = parser.parse_args()
    env, params = make_environment()
    returns = jax.jit(lambda key: train(env, params, key, options.updates))(jax.random.key(0))
    console = Console()
    for update in range(0, options.updates, max(1, options.updates // 10)):
        bar = "█" * max(0, round(3 * float(returns[update])))
        console.print(f"update {update:3d}: mean return {float(returns[update]):6.2f} {bar}", highlight=False)
    console.print(f"at the end: {float(returns[-1]):.2f}; all right is 11 less a hundredth for each of ten steps")


if __name__ == "__main__":
    main()
