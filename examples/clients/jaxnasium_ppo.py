"""jaxnasium's PPO on jaxarc, made by its id of gymnax.

pip install jaxnasium gymnax six
python examples/clients/jaxnasium_ppo.py
"""

import argparse
import time

import jax
import jaxnasium as jym
import numpy as np
from jaxnasium.algorithms import PPO
from rich.console import Console

from jaxarc.adapters import register_gymnax

SETTINGS = {
    "num_envs": 64, "num_steps": 32, "num_epochs": 4, "num_minibatches": 4, "learning_rate_start": 2.5e-3,
    "ent_coef_start": 0.005, "ent_coef_end": 0.005, "gamma": 0.99, "log_function": None,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("--steps", type=int, default=300_000)
    given = parser.parse_args()
    register_gymnax()
    console = Console(highlight=False)
    environments = {
        "gymnax:jaxarc/starter-v1": jym.make("gymnax:jaxarc/starter-v1", layout="flat"),
        "CartPole-v1": jym.make("CartPole-v1"),
    }
    for name, env in environments.items():
        start = time.process_time()
        _, returns = jax.block_until_ready(PPO(**SETTINGS, total_timesteps=given.steps).train(jax.random.key(0), env))
        seconds = time.process_time() - start
        curve = [part.mean() for part in np.array_split(returns, min(len(returns), 10))]
        console.print(f"{name}: {given.steps / seconds:,.0f} steps per CPU second, compilation included")
        console.print(f"  mean return {curve[0]:.2f} -> {curve[-1]:.2f}, of the first and the last tenth of updates")
        console.print("  of each tenth:", " ".join(f"{mean:.2f}" for mean in curve))


if __name__ == "__main__":
    main()
