"""Draw docs/images/starter.png and starter_hidden.png: how a plain PPO learns the first two rungs.

    python docs/make_starter.py
    python docs/make_starter.py --hidden

It trains the networks of examples/ppo_gymnax.py: two of them with three seeds each on the starter environment, or the
MLP with five seeds where the answer is hidden. The curves are kept beside the pictures, as JSON; ``--redraw`` draws a
picture from that file alone.
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

IMAGES = ROOT / "docs" / "images"
POINTS = 50  # of a curve, each the mean of several updates
LABELS = {"mlp": "MLP", "cnn": "CNN"}


def train(hidden: bool) -> dict[str, dict[str, list]]:
    """Return for each network the environment steps, and the share of solved episodes of each seed."""
    env, params = ppo_gymnax.make_environment(hidden)
    num_updates, num_seeds, networks = (1500, 5, ["mlp"]) if hidden else (250, 3, list(LABELS))
    curves = {}
    for network in networks:
        learn = jax.jit(lambda key, network=network: ppo_gymnax.train(env, params, key, num_updates, network))
        rates = [np.asarray(learn(jax.random.key(seed)).solve_rate) for seed in range(num_seeds)]
        updates = (np.arange(POINTS) + 1) * (num_updates // POINTS)
        curves[network] = {
            "steps": (updates * ppo_gymnax.NUM_ENVS * ppo_gymnax.NUM_STEPS).tolist(),
            "solved": [rate.reshape(POINTS, -1).mean(axis=1).round(4).tolist() for rate in rates],
        }
    return curves


def draw(curves: dict[str, dict[str, list]], picture: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for network, color in zip(curves, ("#0074d9", "#ff851b"), strict=False):
        runs = np.array(curves[network]["solved"])
        steps = np.array(curves[network]["steps"]) / 1000
        axes.plot(steps, runs.mean(axis=0), color=color, label=f"{LABELS[network]}, seeds: {len(runs)}", linewidth=2)
        axes.fill_between(steps, runs.min(axis=0), runs.max(axis=0), color=color, alpha=0.2, linewidth=0)
    axes.set(xlabel="environment steps, thousands", ylabel="episodes solved", ylim=(0, 1.03), xlim=(0, None))
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", title="PPO, mean and range")
    figure.savefig(picture, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", action="store_true")
    parser.add_argument("--redraw", action="store_true")
    options = parser.parse_args()
    file = IMAGES / ("starter_hidden.json" if options.hidden else "starter.json")
    if not options.redraw:
        file.write_text(json.dumps(train(options.hidden)) + "\n", encoding="utf-8")
    draw(json.loads(file.read_text(encoding="utf-8")), file.with_suffix(".png"))


if __name__ == "__main__":
    main()
