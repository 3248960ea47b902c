"""PPO of stable-baselines3, MaskablePPO of sb3-contrib, and PPO of sbx on many environments in one compiled call.

pip install stable-baselines3 sb3-contrib sbx-rl
python examples/clients/sb3_ppo.py --algorithm maskable
"""

import argparse
import importlib
import time

import gymnasium
import numpy as np
from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import jaxarc
from jaxarc.adapters import Sb3VecEnv

NUM_ENVS = 32
ALGORITHMS = {"ppo": "stable_baselines3:PPO", "maskable": "sb3_contrib:MaskablePPO", "sbx": "sbx:PPO"}
SETTINGS = {
    "n_steps": 32, "batch_size": 256, "n_epochs": 4, "learning_rate": 2.5e-3, "ent_coef": 0.005, "gamma": 0.99,
    "seed": 0,
}  # fmt: skip


class Episodes(BaseCallback):
    """Adds the rewards up by itself, to be compared with what ``VecMonitor`` says of each episode."""

    def __init__(self) -> None:
        super().__init__()
        self.returns: list[float] = []
        self.num_wrong = 0
        self.running = np.zeros((2, NUM_ENVS))  # return and length

    def _on_step(self) -> bool:
        self.running += self.locals["rewards"], np.ones(NUM_ENVS)
        for index in np.flatnonzero(self.locals["dones"]):
            metrics = self.locals["infos"][index]["episode"]
            self.num_wrong += not np.allclose(self.running[:, index], (metrics["r"], metrics["l"]), atol=1e-4)
            self.returns.append(metrics["r"])
            self.running[:, index] = 0
        return True


def algorithm_of(name: str) -> type:
    """Return the class; only the library that is asked for is imported."""
    module, attribute = ALGORITHMS[name].split(":")
    return getattr(importlib.import_module(module), attribute)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("--algorithm", choices=tuple(ALGORITHMS), default="ppo")
    parser.add_argument("--steps", type=int, default=60_000)
    given = parser.parse_args()
    environments = {"jaxarc starter": lambda: Sb3VecEnv(*jaxarc.make("starter"), NUM_ENVS)}
    if given.algorithm != "maskable":  # CartPole has no masks
        environments["CartPole-v1"] = lambda: DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * NUM_ENVS)
    for name, make in environments.items():
        model = algorithm_of(given.algorithm)("MlpPolicy", VecMonitor(make()), **SETTINGS)
        model.learn(1)  # compiles what is to be compiled
        episodes = Episodes()
        start = time.process_time()
        model.learn(given.steps, callback=episodes)
        seconds = time.process_time() - start
        tenth = max(len(episodes.returns) // 10, 1)
        console = Console(highlight=False)
        console.print(f"{given.algorithm}, {name}: {given.steps / seconds:,.0f} steps per CPU second")
        means = np.mean(episodes.returns[:tenth]), np.mean(episodes.returns[-tenth:])
        console.print(f"  mean return {means[0]:.2f} in the first tenth, {means[1]:.2f} in the last")
        console.print(f"  {episodes.num_wrong} of {len(episodes.returns)} episode statistics wrong")


if __name__ == "__main__":
    main()
