"""Draw docs/images/starter.png: how a plain PPO learns the starter environment.

    python docs/make_starter.py

It trains the networks of examples/ppo_gymnax.py with three seeds each, and keeps the curves in
docs/images/starter.json; ``--redraw`` draws the picture from that file alone.
"""

import argparse
import json
import sys
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
import ppo_gymnax  # noqa: E402

CURVES = ROOT / "docs" / "images" / "starter.json"
PICTURE = ROOT / "docs" / "images" / "starter.png"
SEEDS = 3
POINTS = 50  # of a curve, each the mean of several updates
LABELS = {"mlp": "MLP", "cnn": "CNN"}


def train(num_updates: int) -> dict[str, dict[str, list]]:
    """Return for each network the environment steps, and the share of solved episodes of each seed."""
    env, params = ppo_gymnax.make_environment()
    curves = {}
    for network in LABELS:
        learn = jax.jit(lambda key, network=network: ppo_gymnax.train(env, params, key, num_updates, network))
        rates = [np.asarray(learn(jax.random.key(seed)).solve_rate) for seed in range(SEEDS)]
        updates = (np.arange(POINTS) + 1) * (num_updates // POINTS)
        curves[network] = {
            "steps": (updates * ppo_gymnax.NUM_ENVS * ppo_gymnax.NUM_STEPS).tolist(),
            "solved": [rate.reshape(POINTS, -1).mean(axis=1).round(4).tolist() for rate in rates],
        }
    return curves


def draw(curves: dict[str, dict[str, list]]) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for (network, label), color in zip(LABELS.items(), ("#0074d9", "#ff851b"), strict=True):
        runs = np.array(curves[network]["solved"])
        steps = np.array(curves[network]["steps"]) / 1000
        axes.plot(steps, runs.mean(axis=0), color=color, label=f"{label}, seeds: {len(runs)}", linewidth=2)
        axes.fill_between(steps, runs.min(axis=0), runs.max(axis=0), color=color, alpha=0.2, linewidth=0)
    axes.set(xlabel="environment steps, thousands", ylabel="episodes solved", ylim=(0, 1.03), xlim=(0, None))
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", title="PPO, mean and range")
    figure.savefig(PICTURE, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=250)
    parser.add_argument("--redraw", action="store_true")
    options = parser.parse_args()
    if not options.redraw:
        CURVES.write_text(json.dumps(train(options.updates)) + "\n", encoding="utf-8")
    draw(json.loads(CURVES.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
