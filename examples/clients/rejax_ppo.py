"""rejax's PPO on jaxarc, named by an id without a slash.

pip install rejax
python examples/clients/rejax_ppo.py
"""

import argparse
import time
from typing import Any

import jax
from gymnax.environments.classic_control.cartpole import CartPole
from rejax import PPO
from rich.console import Console

from jaxarc.adapters import register_gymnax

SETTINGS = {
    "learning_rate": 2.5e-3, "num_envs": 64, "num_steps": 32, "num_epochs": 4, "num_minibatches": 4,
    "gamma": 0.99, "ent_coef": 0.005, "max_grad_norm": 0.5, "agent_kwargs": {"activation": "tanh"},
}  # fmt: skip


class FiveValueCartPole(CartPole):
    """CartPole with the step that rejax unpacks; gymnax's own wrapper for it cannot be copied, and rejax copies."""

    def step(self, *arguments: Any) -> tuple[Any, ...]:
        observation, state, reward, terminated, truncated, info = super().step(*arguments)
        return observation, state, reward, terminated | truncated, info


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("--steps", type=int, default=300_000)
    given = parser.parse_args()
    register_gymnax()
    console = Console(highlight=False)
    environments = {
        "jaxarc-starter-v1": {"env": "jaxarc-starter-v1", "env_params": {"legacy_step": True, "layout": "flat"}},
        "CartPole-v1": {"env": FiveValueCartPole()},
    }
    for name, choice in environments.items():
        algorithm = PPO.create(**choice, **SETTINGS, total_timesteps=given.steps, eval_freq=given.steps // 8)
        train = jax.jit(algorithm.train).lower(jax.random.key(0)).compile()
        start = time.process_time()
        _, (_, returns) = jax.block_until_ready(train(jax.random.key(0)))  # [evaluations, 128 episodes]
        seconds = time.process_time() - start
        console.print(f"{name}: {given.steps / seconds:,.0f} steps per CPU second, evaluations included")
        console.print(f"  mean return {returns[0].mean():.2f} -> {returns[-1].mean():.2f}")


if __name__ == "__main__":
    main()
