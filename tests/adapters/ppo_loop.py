"""PPO as PureJaxRL writes it, on the five-value steps and the log of gymnax's wrappers; a linear policy and value."""

import jax
import jax.numpy as jnp
import optax

NUM_ENVS, NUM_STEPS, NUM_EPOCHS = 16, 8, 4
DISCOUNT, LAMBDA, CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT = 0.99, 0.95, 0.2, 0.5, 0.01


def train(env, env_params, num_actions, key, num_updates):
    """Train, and return the ``info`` of every step: arrays of updates, steps and environments."""
    key_start, key_reset, key_train = jax.random.split(key, 3)
    size = env.observation_space(env_params).shape
    network = {
        "policy": 0.01 * jax.random.normal(key_start, (size[0] * size[1] * 11, num_actions)),
        "value": jnp.zeros((size[0] * size[1] * 11, 1)),
    }
    optimizer = optax.adam(3e-3)
    reset, step_env = jax.vmap(env.reset, (0, None)), jax.vmap(env.step, (0, 0, 0, None))
    observations, states = reset(jax.random.split(key_reset, NUM_ENVS), env_params)

    def act(carry, key):
        network, states, observations = carry
        key_action, key_step = jax.random.split(key)
        logits, values = _evaluate(network, observations)
        actions = jax.random.categorical(key_action, logits)
        log_probs = _log_prob(logits, actions)
        after, states, rewards, dones, info = step_env(
            jax.random.split(key_step, NUM_ENVS), states, actions, env_params
        )
        return (network, states, after), (observations, actions, log_probs, values, rewards, dones, info)

    def update(carry, key):
        network, moments, states, observations = carry
        (_, states, observations), batch = jax.lax.scan(
            act, (network, states, observations), jax.random.split(key, NUM_STEPS)
        )
        advantages = _advantages(batch, _evaluate(network, observations)[1])

        def learn(carry, _):
            network, moments = carry
            gradients = jax.grad(_loss)(network, batch, advantages)
            changes, moments = optimizer.update(gradients, moments)
            return (optax.apply_updates(network, changes), moments), None

        (network, moments), _ = jax.lax.scan(learn, (network, moments), None, NUM_EPOCHS)
        return (network, moments, states, observations), batch[-1]

    carry = (network, optimizer.init(network), states, observations)
    return jax.jit(lambda c, k: jax.lax.scan(update, c, k)[1])(carry, jax.random.split(key_train, num_updates))


def _evaluate(network, observations):
    features = jax.nn.one_hot(observations + 1, 11).reshape(*observations.shape[:-2], -1)
    return features @ network["policy"], (features @ network["value"])[..., 0]


def _log_prob(logits, actions):
    return jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], axis=-1)[..., 0]


def _advantages(batch, last_value):
    _, _, _, values, rewards, dones, _ = batch

    def back(carry, step):
        advantage, next_value = carry
        value, reward, done = step
        error = reward + DISCOUNT * next_value * (1 - done) - value
        advantage = error + DISCOUNT * LAMBDA * (1 - done) * advantage
        return (advantage, value), advantage

    return jax.lax.scan(back, (jnp.zeros_like(last_value), last_value), (values, rewards, dones), reverse=True)[1]


def _loss(network, batch, advantages):
    observations, actions, old_log_probs, old_values, *_ = batch
    logits, values = _evaluate(network, observations)
    ratio = jnp.exp(_log_prob(logits, actions) - old_log_probs)
    gains = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    surrogate = jnp.minimum(ratio * gains, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gains).mean()
    entropy = -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(axis=-1).mean()
    value_loss = jnp.square(values - (old_values + advantages)).mean()
    return -surrogate + VALUE_WEIGHT * value_loss - ENTROPY_WEIGHT * entropy
