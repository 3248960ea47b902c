"""PPO of stable-baselines3 on many environments at once, which are one compiled call.

    pip install ".[sb3]"
    python examples/sb3_gymnasium.py --steps 120000

stable-baselines3 has its own type of vector environment. ``OneCall`` below is that type around ours: 32 environments
step in one call, where ``SubprocVecEnv`` would start 32 processes. The task is that of ppo_gymnax.py: paint a blue 3x3
grid red and submit it, one action of 18 in each step, ten right ones in a row.
"""

import argparse
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

import jaxarc
from jaxarc.adapters import GymnasiumVectorEnv
from jaxarc.datasets import TaskSet
from jaxarc.render import render_grid
from jaxarc.tasks import RawTask
from jaxarc.wrappers import FlatActions

NUM_ENVS, NUM_STEPS = 32, 32


def make_environments(num_envs: int) -> GymnasiumVectorEnv:
    blue, red = np.full((3, 3), 1), np.full((3, 3), 2)
    tasks = TaskSet("red", (RawTask("paint-it-red", ((blue, red),), ((blue, red),)),))
    env, params = jaxarc.make(
        tasks,
        selection_format="point",
        max_grid_height=3,
        max_grid_width=3,
        max_episode_steps=30,
        allowed_operations=(2, 34),  # fill red, submit
    )
    return GymnasiumVectorEnv(FlatActions(env), params, num_envs, AutoresetMode.SAME_STEP)


class OneCall(VecEnv):
    """A vector environment of Gymnasium, of kind same-step, as stable-baselines3 wants it."""

    def __init__(self, envs: GymnasiumVectorEnv):
        self.envs, self.actions = envs, None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> np.ndarray:
        seeds = None if None in self._seeds else self._seeds
        self._reset_seeds()
        return self.envs.reset(seed=seeds)[0]

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        observations, rewards, terminations, truncations, infos = self.envs.step(self.actions)
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place in np.flatnonzero(terminations | truncations):
            told[place]["terminal_observation"] = infos["final_obs"][place]
            told[place]["TimeLimit.truncated"] = bool(truncations[place])  # then the value of what follows counts
            told[place]["is_success"] = bool(infos["final_info"]["success"][place])
        return observations, rewards.astype(np.float32), terminations | truncations, told

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("environments of one call share their attributes; set it before making them")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError("there are no single environments behind one call")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))


class Progress(BaseCallback):
    """Prints the mean return of the last hundred episodes, ten times in all."""

    def __init__(self, console: Console, total: int):
        super().__init__()
        self.console, self.every, self.next = console, max(1, total // 10), 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer
        if self.num_timesteps >= self.next and episodes:
            self.next += self.every
            mean = float(np.mean([episode["r"] for episode in episodes]))
            bar = "█" * max(0, round(3 * mean))
            self.console.print(f"step {self.num_timesteps:7,}: mean return {mean:6.2f} {bar}", highlight=False)


def show_episode(model: PPO, console: Console) -> None:
    """Let the agent do what it thinks best, and print the grids on the way."""
    envs = make_environments(1)
    grids, (observation, _) = [], envs.reset(seed=0)
    ended = False
    while not ended:
        grids.append(render_grid(observation[0]))
        action, _ = model.predict(observation, deterministic=True)
        observation, _, terminations, truncations, infos = envs.step(action)
        ended = bool((terminations | truncations)[0])
    console.print(Columns([Panel(grid, title=str(step), expand=False) for step, grid in enumerate(grids)]))
    outcome = "solved" if infos["final_info"]["success"][0] else "not solved"
    console.print(f"{outcome} in {len(grids)} steps", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=120_000)
    options = parser.parse_args()
    console = Console()
    envs = VecMonitor(OneCall(make_environments(NUM_ENVS)))
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=NUM_STEPS,
        batch_size=256,
        n_epochs=4,
        learning_rate=3e-3,
        ent_coef=0.01,
        seed=0,
        device="cpu",
    )
    model.learn(options.steps, callback=Progress(console, options.steps))
    console.print("All right is 11 less a hundredth for each of ten steps. What it does now, as it thinks best:")
    show_episode(model, console)


if __name__ == "__main__":
    main()
