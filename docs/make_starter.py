"""Draw the pictures docs/images/starter*.png and held_out.png: how a plain PPO learns the first two rungs.

    python docs/make_starter.py
    python docs/make_starter.py starter_hidden
    python docs/make_starter.py held_out
    python docs/make_starter.py starter_sb3   # from what examples/sb3_gymnasium.py --json wrote

It trains the networks of examples/ppo_gymnax.py: two of them with three seeds each on the starter environment, or the
MLP with five seeds where the answer is hidden. ``held_out`` runs the blocks of docs/bring_your_own_agent.md instead,
with five seeds. The curves are kept beside the pictures, as JSON; ``--redraw`` draws a picture from that file alone.
"""

import argparse
import json
import re
import sys
import types
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
import ppo_gymnax  # noqa: E402

IMAGES = ROOT / "docs" / "images"
PICTURES = ("starter", "starter_hidden", "held_out", "starter_sb3")
POINTS = 50  # of a curve, each the mean of several updates
LABELS = {
    "mlp": "MLP",
    "cnn": "CNN",
    "sb3": "stable-baselines3",
    "seen": "tasks trained on",
    "held_out": "held-out tasks",
}
SECTIONS = ("Start with the starter environment", "The rollout", "The update", "A curve on held-out tasks")


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


def train_as_the_page_does() -> dict[str, dict[str, list]]:
    """Return the steps, and the shares of test outputs that each seed solves, of seen tasks and of held-out ones."""
    text = (ROOT / "docs" / "bring_your_own_agent.md").read_text(encoding="utf-8")
    page = sys.modules["page"] = types.ModuleType("page")  # the classes of the page look for it
    for section in SECTIONS:
        part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
        for code in re.findall(r"^```python\n(.*?)^```$", part, re.MULTILINE | re.DOTALL):
            exec(code, page.__dict__)
            if "held_out_curve" in page.__dict__:
                break
    sets = page.train, page.held_out, page.mirror_params.config
    runs = np.array([page.held_out_curve(*sets, num_updates=800, every=50, seed=seed) for seed in range(5)])
    curve = lambda column: {"steps": runs[0, :, 0].tolist(), "solved": runs[:, :, column].round(4).tolist()}
    return {"seen": curve(1), "held_out": curve(2)}


def draw(curves: dict[str, dict[str, list]], picture: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for network, color in zip(curves, ("#0074d9", "#ff851b"), strict=False):
        runs = np.array(curves[network]["solved"])
        steps = np.array(curves[network]["steps"]) / 1000
        axes.plot(steps, runs.mean(axis=0), color=color, label=f"{LABELS[network]}, seeds: {len(runs)}", linewidth=2)
        axes.fill_between(steps, runs.min(axis=0), runs.max(axis=0), color=color, alpha=0.2, linewidth=0)
    what = "test outputs solved" if "held_out" in curves else "episodes solved"
    axes.set(xlabel="environment steps, thousands", ylabel=what, ylim=(0, 1.03), xlim=(0, None))
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.grid(alpha=0.3)
    axes.legend(loc="best", title="PPO, mean and range")
    figure.savefig(picture, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", nargs="?", choices=PICTURES, default=PICTURES[0])
    parser.add_argument("--redraw", action="store_true")
    options = parser.parse_args()
    file = IMAGES / f"{options.picture}.json"
    if options.picture == "starter_sb3":
        seeds = json.loads(file.read_text(encoding="utf-8")).values()
        curves = {
            "sb3": {"steps": [step for step, _ in next(iter(seeds))], "solved": [[y for _, y in s] for s in seeds]}
        }
    elif options.redraw:
        curves = json.loads(file.read_text(encoding="utf-8"))
    else:
        is_of_page = options.picture == "held_out"
        curves = train_as_the_page_does() if is_of_page else train(options.picture == "starter_hidden")
        file.write_text(json.dumps(curves) + "\n", encoding="utf-8")
    draw(curves, file.with_suffix(".png"))


if __name__ == "__main__":
    main()
