"""PureJaxRL's ``ppo.py``, unchanged, on jaxarc: give an environment with five-value steps a name, and train on it.

    git clone https://github.com/luchris429/purejaxrl
    pip install distrax brax navix
    python examples/clients/purejaxrl_ppo.py purejaxrl

``ppo.py`` takes a name alone, so whatever else is to be chosen is chosen where the name is registered.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import gymnax
import jax
import numpy as np
from gymnax.environments.classic_control.cartpole import CartPole
from gymnax.wrappers import LegacyStepAPIWrapper
from rich.console import Console

from jaxarc.adapters import GymnaxEnvironment

SETTINGS = {
    "LR": 2.5e-3, "NUM_ENVS": 64, "NUM_STEPS": 32, "UPDATE_EPOCHS": 4, "NUM_MINIBATCHES": 4, "GAMMA": 0.99,
    "GAE_LAMBDA": 0.95, "CLIP_EPS": 0.2, "ENT_COEF": 0.005, "VF_COEF": 0.5, "MAX_GRAD_NORM": 0.5,
    "ACTIVATION": "tanh", "ANNEAL_LR": True,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("clone", type=Path, help="folder of PureJaxRL")
    parser.add_argument("--steps", type=int, default=300_000)
    given = parser.parse_args()
    sys.path.insert(0, str(given.clone / "purejaxrl"))
    from ppo import make_train

    gymnax.register("jaxarc-starter", partial(GymnaxEnvironment, "starter", legacy_step=True))
    gymnax.register("cartpole", lambda: LegacyStepAPIWrapper(CartPole()))
    console = Console(highlight=False)
    for name in ("jaxarc-starter", "cartpole"):
        settings = {**SETTINGS, "ENV_NAME": name, "TOTAL_TIMESTEPS": given.steps}
        train = jax.jit(make_train(settings)).lower(jax.random.key(0)).compile()
        start = time.process_time()
        metrics = jax.device_get(train(jax.random.key(0))["metrics"])
        seconds = time.process_time() - start
        tenth = max(len(metrics["returned_episode"]) // 10, 1)
        returns = [
            metrics["returned_episode_returns"][part][metrics["returned_episode"][part]].mean()
            for part in (slice(tenth), slice(-tenth, None))
        ]
        steps = np.size(metrics["returned_episode"])
        console.print(f"{name}: {steps / seconds:,.0f} steps per CPU second")
        console.print(f"  mean return {returns[0]:.2f} in the first tenth, {returns[1]:.2f} in the last")


if __name__ == "__main__":
    main()
