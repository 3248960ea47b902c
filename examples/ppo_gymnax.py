"""PPO through gymnax's interface alone: nothing below the first function knows that the environment is ARC.

    python examples/ppo_gymnax.py --network mlp
    python examples/ppo_gymnax.py --network cnn
    python examples/ppo_gymnax.py --hidden --updates 1500

The environment is ``jaxarc/starter-v1``: edit a random 3x3 grid into another one that the agent sees, and submit it.
With ``--hidden`` the answer is not shown. It is the mirror image of the grid, which the rewards alone tell.
The whole training, environment included, is one compiled program. ``jaxarc train`` has an agent that learns all of
ARC's editing; this shows how to bring your own.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnax.wrappers import LogWrapper
from rich.console import Console

from jaxarc.adapters import register_gymnax

NUM_ENVS, NUM_STEPS, NUM_EPOCHS, NUM_MINIBATCHES = 64, 32, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.99, 0.95, 0.2, 0.005, 2.5e-3


def make_environment(hidden: bool = False) -> tuple[Any, Any]:
    register_gymnax()
    if not hidden:
        env, params = gymnax.make("jaxarc/starter-v1")  # observations float32[3, 3, 22], 45 actions
        return LogWrapper(env), params
    env, params = gymnax.make(
        "jaxarc/procedural-flip-left-right-v1",  # observations float32[3, 3, 22], 99 actions
        max_grid_height=3,
        max_grid_width=3,
        allowed_operations=(*range(10), 34),  # fill, submit
        max_episode_steps=20,
        include_input=True,  # the target is never shown
        success_bonus=1.0,
        unsolved_submission_penalty=0.0,
    )
    return LogWrapper(env), params


class ActorCritic(eqx.Module):
    encode: Callable[[jax.Array], jax.Array]
    actor: eqx.nn.MLP
    critic: eqx.nn.MLP

    def __init__(self, key: jax.Array, network: str, shape: tuple[int, ...], num_actions: int):
        key_encode, key_actor, key_critic = jax.random.split(key, 3)
        num_features = int(np.prod(shape))
        self.encode = jnp.ravel
        if network == "cnn":
            self.encode = Convolutions(key_encode, shape[-1])
            num_features = self.encode.num_channels * shape[0] * shape[1]
        self.actor = eqx.nn.MLP(num_features, num_actions, 128, 1, jax.nn.tanh, key=key_actor)
        self.critic = eqx.nn.MLP(num_features, 1, 128, 1, jax.nn.tanh, key=key_critic)

    def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        features = self.encode(observation)
        return jax.nn.log_softmax(self.actor(features)), self.critic(features)[0]


class Convolutions(eqx.Module):
    """Two convolutions of 3x3 cells; as products of matrices, because XLA's are slow in a loop on a CPU."""

    layers: list[eqx.nn.Linear]
    num_channels: int = eqx.field(static=True)

    def __init__(self, key: jax.Array, num_inputs: int, num_channels: int = 32):
        key_first, key_second = jax.random.split(key)
        self.num_channels = num_channels
        self.layers = [
            eqx.nn.Linear(9 * num_inputs, num_channels, key=key_first),
            eqx.nn.Linear(9 * num_channels, num_channels, key=key_second),
        ]

    def __call__(self, observation: jax.Array) -> jax.Array:
        height, width, _ = observation.shape
        for layer in self.layers:
            padded = jnp.pad(observation, ((1, 1), (1, 1), (0, 0)))
            around = [padded[row : row + height, column : column + width] for row in range(3) for column in range(3)]
            observation = jax.nn.relu(jax.vmap(jax.vmap(layer))(jnp.concatenate(around, axis=-1)))
        return observation.ravel()


class Sample(NamedTuple):
    observation: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    terminated: jax.Array  # the agent submitted: no reward follows
    truncated: jax.Array  # time is over: later rewards are cut off, and estimated by the value of the final observation
    final_observation: jax.Array  # after the step, before any reset


class Progress(NamedTuple):
    """What an update reports of the episodes that ended in it."""

    mean_return: jax.Array
    solve_rate: jax.Array


class Carry(NamedTuple):
    model: ActorCritic
    optimizer_state: Any
    env_states: Any
    observations: jax.Array
    key: jax.Array


def train(env: Any, params: Any, key: jax.Array, num_updates: int, network: str = "mlp") -> Progress:
    """Learn, and return the progress of each update."""
    key_model, key_reset, key = jax.random.split(key, 3)
    num_gradients = num_updates * NUM_EPOCHS * NUM_MINIBATCHES
    schedule = optax.linear_schedule(LEARNING_RATE, 0.0, num_gradients)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(schedule))
    model = ActorCritic(key_model, network, env.observation_space(params).shape, env.num_actions)
    arrays, static = eqx.partition(model, eqx.is_array)
    observations, env_states = jax.vmap(env.reset, (0, None))(jax.random.split(key_reset, NUM_ENVS), params)

    def step(carry: Carry, key: jax.Array) -> tuple[Carry, tuple[Sample, dict]]:
        key_act, key_step = jax.random.split(key)
        log_probs, values = jax.vmap(eqx.combine(carry.model, static))(carry.observations)
        actions = jax.random.categorical(key_act, log_probs)
        chosen = jnp.take_along_axis(log_probs, actions[:, None], axis=1)[:, 0]
        keys = jax.random.split(key_step, NUM_ENVS)
        observations, env_states, rewards, terminated, truncated, info = jax.vmap(env.step, (0, 0, 0, None))(
            keys, carry.env_states, actions, params
        )
        final = info["final_observation"]
        sample = Sample(carry.observations, actions, chosen, values, rewards, terminated, truncated, final)
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

    def update(carry: Carry, _: None) -> tuple[Carry, Progress]:
        key, key_steps, *key_epochs = jax.random.split(carry.key, 2 + NUM_EPOCHS)
        carry, (samples, info) = jax.lax.scan(step, carry, jax.random.split(key_steps, NUM_STEPS))
        _, last_value = jax.vmap(eqx.combine(carry.model, static))(carry.observations)

        _, final_values = jax.vmap(jax.vmap(eqx.combine(carry.model, static)))(samples.final_observation)

        def backward(later: tuple, step: tuple) -> tuple[tuple, jax.Array]:
            advantage, value = later
            sample, final_value = step
            # A truncated episode still has a future, a terminated one has none; neither goes on in the next sample.
            value = jnp.where(sample.truncated, final_value, value) * (1 - sample.terminated)
            error = sample.reward + GAMMA * value - sample.value
            advantage = error + GAMMA * LAMBDA * (1 - (sample.terminated | sample.truncated)) * advantage
            return (advantage, sample.value), advantage

        start = jnp.zeros(NUM_ENVS), last_value
        _, advantages = jax.lax.scan(backward, start, (samples, final_values), reverse=True)
        everything = samples, advantages, advantages + samples.value
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), everything)
        learned = carry.model, carry.optimizer_state
        for key_epoch in key_epochs:
            order = jax.random.permutation(key_epoch, NUM_ENVS * NUM_STEPS).reshape(NUM_MINIBATCHES, -1)
            learned, _ = jax.lax.scan(learn, learned, jax.tree.map(lambda x, order=order: x[order], flat))
        ended = samples.terminated | samples.truncated
        mean = lambda values: (values * ended).sum() / jnp.maximum(ended.sum(), 1)
        progress = Progress(mean(info["returned_episode_returns"]), mean(info["success"]))
        return Carry(*learned, carry.env_states, carry.observations, key), progress

    start = Carry(arrays, optimizer.init(arrays), env_states, observations, key)
    return jax.lax.scan(update, start, None, num_updates)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=["mlp", "cnn"], default="mlp")
    parser.add_argument("--updates", type=int, default=250, help=f"each of {NUM_ENVS * NUM_STEPS:,} steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", action="store_true", help="mirror a grid, without seeing the answer")
    options = parser.parse_args()
    env, params = make_environment(options.hidden)
    learn = jax.jit(lambda key: train(env, params, key, options.updates, options.network))
    progress = jax.device_get(learn(jax.random.key(options.seed)))
    console = Console()
    every = max(1, options.updates // 10)
    for update in range(every - 1, options.updates, every):
        rate = float(progress.solve_rate[update])
        steps = (update + 1) * NUM_ENVS * NUM_STEPS
        line = f"step {steps:8,}: {100 * rate:5.1f} % solved, mean return {float(progress.mean_return[update]):5.2f} "
        console.print(line + "█" * round(30 * rate), highlight=False)


if __name__ == "__main__":
    main()
