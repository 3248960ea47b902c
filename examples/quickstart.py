"""A hundred random actions in 1024 environments, on the 400 training tasks of ARC-AGI-1: the README's example."""

import jax

import jaxarc

env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox", invalid_action_policy="noop")
env = jaxarc.wrappers.AutoReset(env)


@jax.jit
def rollout(keys, params):  # 1024 environments, 100 random steps each, compiled as one program
    def step(states, keys):
        actions = jax.vmap(env.action_space(params).sample)(keys)
        states, _, rewards, dones, _ = jax.vmap(env.step, (0, 0, None))(states, actions, params)
        return states, (rewards, dones)

    states, _ = jax.vmap(env.reset, (0, None))(keys[0], params)
    return jax.lax.scan(step, states, keys[1:])[1]


rewards, dones = rollout(jax.random.split(jax.random.key(0), (101, 1024)), params)
print(f"{rewards.size:,} steps, {int(dones.sum()):,} episodes ended, mean reward {float(rewards.mean()):.3f}")
