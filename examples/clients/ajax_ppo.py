"""ajax-rl's PPO on jaxarc, which hands it the environment itself, with a flat layout.

pip install ajax-rl gymnax six
python examples/clients/ajax_ppo.py
"""

import argparse
import time

import jax
import jax.numpy as jnp
from ajax.agents.PPO.PPO import PPO
from ajax.logging.wandb_logging import LoggingConfig
from rich.console import Console

from jaxarc.adapters import GymnaxEnvironment

SETTINGS = {
    "n_envs": 64, "n_steps": 32, "batch_size": 512, "n_epochs": 4, "actor_learning_rate": 2.5e-3,
    "critic_learning_rate": 2.5e-3, "ent_coef": 0.005, "gamma": 0.99,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("--steps", type=int, default=300_000)
    given = parser.parse_args()
    console = Console(highlight=False)
    environments = {"starter": GymnaxEnvironment("starter", layout="flat"), "CartPole-v1": "CartPole-v1"}
    for name, env in environments.items():
        log = LoggingConfig(config={}, log_frequency=given.steps // 10, use_wandb=False)
        start = time.process_time()
        _, out = PPO(env, **SETTINGS).train(seed=0, n_timesteps=given.steps, num_episode_test=64, logging_config=log)
        returns = jax.block_until_ready(out["Eval/episodic mean reward"])[0]
        returns = returns[jnp.isfinite(returns)]  # the run ends at a whole rollout, so the last evaluation may be NaN
        seconds = time.process_time() - start
        console.print(f"{name}: {given.steps / seconds:,.0f} steps per CPU second, evaluations included")
        console.print(f"  mean return {returns[0]:.2f} -> {returns[-1]:.2f}, of the likeliest actions")
        console.print("  of each evaluation:", " ".join(f"{mean:.2f}" for mean in returns))


if __name__ == "__main__":
    main()
