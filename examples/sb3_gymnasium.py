"""PPO of stable-baselines3 on many environments at once, which are one compiled call.

    pip install ".[sb3]"
    python examples/sb3_gymnasium.py --steps 400000

stable-baselines3 has its own type of vector environment. ``Sb3VecEnv`` is that type around ours: 64 environments step
in one call, where ``SubprocVecEnv`` would start 64 processes. The environment is the starter: edit a random 3x3 grid
into another one that the agent sees, and submit it.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

import jaxarc
from jaxarc.adapters import Sb3VecEnv
from jaxarc.render import render_grid

NUM_ENVS, NUM_STEPS = 64, 32


class Progress(BaseCallback):
    """Prints how many episodes of each 20,000 steps were solved, and their mean return."""

    def __init__(self, console: Console):
        super().__init__()
        self.console, self.next = console, 0
        self.episodes: list[tuple[bool, float]] = []
        self.curve: list[tuple[int, float]] = []  # steps, share of solved episodes

    def _on_step(self) -> bool:
        ended = (info for info in self.locals["infos"] if "episode" in info)
        self.episodes += [(info["is_success"], info["episode"]["r"]) for info in ended]
        return True

    def _on_rollout_end(self) -> None:
        if self.num_timesteps >= self.next and self.episodes:
            self.next += 20_000
            solved, mean = np.mean(self.episodes, axis=0)
            self.curve.append((self.num_timesteps, round(float(solved), 4)))
            words = f"{100 * solved:3.0f} % solved, mean return {mean:5.2f} {'█' * round(30 * solved)}"
            self.console.print(f"step {self.num_timesteps:7,}: {words}", highlight=False)
            self.episodes = []


def show_episode(model: PPO, console: Console) -> None:
    """Let the agent take its likeliest actions, and print the grids on the way."""
    policy = lambda key, observation: int(model.predict(np.asarray(observation), deterministic=True)[0])
    episode = jaxarc.record_episode(policy, *jaxarc.make("starter"), jax.random.key(0), player="PPO")
    grids = {str(step): render_grid(grid) for step, grid in enumerate(episode.steps.grids)}
    grids["answer"] = render_grid(episode.steps.target)
    console.print(Columns([Panel(grid, title=title, expand=False) for title, grid in grids.items()]))
    console.print(repr(episode), highlight=False, markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keep the curve of this seed here, beside those of others")
    options = parser.parse_args()
    console = Console()
    envs = VecMonitor(Sb3VecEnv(*jaxarc.make("starter"), NUM_ENVS))
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=NUM_STEPS,
        batch_size=256,
        n_epochs=4,
        learning_rate=2.5e-3,
        gae_lambda=0.95,
        ent_coef=0.005,
        policy_kwargs={"net_arch": [256, 256]},  # with the default, two layers of 64, it learns later
        seed=options.seed,
        device="cpu",
    )
    progress = Progress(console)
    model.learn(options.steps, callback=progress)
    if options.json:
        curves = json.loads(options.json.read_text()) if options.json.is_file() else {}
        options.json.write_text(json.dumps({**curves, str(options.seed): progress.curve}) + "\n")
    console.print("An episode with its likeliest actions:")
    show_episode(model, console)


if __name__ == "__main__":
    main()
