"""CleanRL's ``ppo.py``, unchanged, on jaxarc: it takes an id, so the environment is registered under one.

git clone https://github.com/vwxyzjn/cleanrl
pip install torch tyro tensorboard
python examples/clients/cleanrl_ppo.py cleanrl
"""

import argparse
import runpy
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from rich.console import Console

import jaxarc
from jaxarc.adapters import GymnasiumEnv


class Returns(gymnasium.Wrapper):
    """Keeps the return of every episode, since ``ppo.py`` looks for them where Gymnasium 0.29 had them."""

    ended: list[float]

    def __init__(self, env: gymnasium.Env, ended: list[float]):
        super().__init__(env)
        self.ended = ended
        self.sum = 0.0

    def step(self, action: Any) -> tuple[Any, ...]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.sum += float(reward)
        if terminated or truncated:
            self.ended.append(self.sum)
            self.sum = 0.0
        return observation, reward, terminated, truncated, info


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("clone", type=Path, help="folder of CleanRL")
    parser.add_argument("--steps", type=int, default=60_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(highlight=False)
    made = jaxarc.make("starter", layout="flat")
    makers = {"jaxarc-starter": lambda: GymnasiumEnv(*made), "cartpole": lambda: gymnasium.make("CartPole-v1")}
    for name, make in makers.items():
        ended: list[float] = []
        gymnasium.register(f"clients/{name}-v0", lambda make=make, ended=ended: Returns(make(), ended))
        steps = ["--total-timesteps", str(given.steps), "--learning-rate", "0.0025", "--ent-coef", "0.005"]
        sys.argv = ["ppo.py", "--env-id", f"clients/{name}-v0", *steps]
        start = time.process_time()
        runpy.run_path(str(given.clone / "cleanrl" / "ppo.py"), run_name="__main__")
        seconds = time.process_time() - start
        tenth = max(len(ended) // 10, 1)
        console.print(f"{name}: {given.steps / seconds:,.0f} steps per CPU second, compilation included")
        means = np.mean(ended[:tenth]), np.mean(ended[-tenth:])
        console.print(f"  mean return {means[0]:.2f} in the first tenth, {means[1]:.2f} in the last")


if __name__ == "__main__":
    main()
