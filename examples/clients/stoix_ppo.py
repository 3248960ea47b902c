"""Stoix's feed-forward PPO on jaxarc, by Stoix's own ``env=jaxarc/default``.

    git clone https://github.com/EdanToledo/Stoix
    pip install stoa-env distrax rlax flashbax orbax-checkpoint tensorflow-probability hydra-core colorama pandas etils
    python examples/clients/stoix_ppo.py Stoix

Stoix requires another version of JAX, and the other package that is named jaxarc, so pip cannot install it together
with this one. It runs from its folder. Its loggers are not needed: those that are not installed are replaced by empty
modules.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnax
import numpy as np
from gymnax.environments.classic_control.cartpole import CartPole
from gymnax.wrappers import LegacyStepAPIWrapper
from rich.console import Console


class Progress:
    """What Stoix logs, kept in memory: the mean return of each evaluation, and the CPU time at which it was known."""

    def __init__(self, config: Any):
        self.steps: list[int] = []
        self.returns: list[float] = []
        self.solved: list[float] = []
        self.seconds: list[float] = []

    def log_config(self, config: Any) -> None:
        pass

    def log(self, metrics: dict[str, Any], t: int, t_eval: int, event: Any) -> None:
        if event.value == "actor" and "solved" in metrics:
            self.solved.append(float(np.mean(metrics["solved"])))
        if event.value == "evaluator":
            self.steps.append(t)
            self.returns.append(float(np.mean(metrics["episode_return"])))
            self.seconds.append(time.process_time())

    def stop(self) -> None:
        pass


def replace_missing_loggers() -> None:
    names = {"neptune": (), "neptune.utils": ("stringify_unsupported",), "wandb": ()}
    names["tensorboard_logger"] = ("configure", "log_value")
    missing = [name for name in names if importlib.util.find_spec(name.split(".")[0]) is None]
    for name in missing:
        module = ModuleType(name)
        for attribute in names[name]:
            setattr(module, attribute, None)
        sys.modules[name] = module


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("clone", type=Path, help="folder of Stoix")
    parser.add_argument("--steps", type=int, default=300_000)
    given = parser.parse_args()
    replace_missing_loggers()
    sys.path.insert(0, str(given.clone))
    import hydra
    from omegaconf import OmegaConf
    from stoix.systems.ppo.anakin import ff_ppo

    gymnax.register("cartpole", lambda: LegacyStepAPIWrapper(CartPole()))  # Stoa unpacks five values
    made: list[Progress] = []
    ff_ppo.StoixLogger = lambda config: made.append(Progress(config)) or made[-1]
    configs = str((given.clone / "stoix" / "configs").resolve())
    for suite, name in (("jaxarc/default", "starter"), ("gymnax/cartpole", "cartpole")):
        overrides = [
            *(f"env={suite}", f"env.scenario.name={name}", f"arch.total_timesteps={given.steps}"),
            *("arch.num_evaluation=8", "arch.total_num_envs=64", "arch.absolute_metric=False"),
            *("system.rollout_length=32", "system.num_minibatches=4", "system.ent_coef=0.005"),
            *("system.actor_lr=2.5e-3", "system.critic_lr=2.5e-3"),
        ]
        with hydra.initialize_config_dir(f"{configs}/default/anakin", version_base="1.2"):
            config = hydra.compose("default_ff_ppo.yaml", [f"hydra.searchpath=[file://{configs}]", *overrides])
        OmegaConf.set_struct(config, False)
        ff_ppo.run_experiment(config)
        last = made[-1]
        speed = np.median(np.diff(last.steps) / np.diff(last.seconds))  # some intervals hold a compilation
        console = Console(highlight=False)
        console.print(f"{name}: {speed:,.0f} steps per CPU second, evaluations included")
        solved = f", solved {last.solved[-1]:.0%}" if last.solved else ""
        console.print(f"  mean return {last.returns[0]:.2f} -> {last.returns[-1]:.2f}{solved}")


if __name__ == "__main__":
    main()
