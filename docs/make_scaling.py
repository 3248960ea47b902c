"""Write the tables of docs/scaling.md from what `jaxarc benchmark scaling --json FILE` measured.

python docs/make_scaling.py FILE [--played STEPS --learned STEPS]
"""

import argparse
import json
from pathlib import Path

import jax

from jaxarc.benchmarks.scaling_estimate import EIGHT_A_NODE, ShardedPlay, Training, estimate_table
from jaxarc.cli.settings import read_experiment
from jaxarc.training import load_pairs
from jaxarc.training.updates import make_params, start_seed

PAGE = Path(__file__).parent / "scaling.md"
MEASURED = ("<!-- measured -->\n", "<!-- end of measured -->\n")
ESTIMATED = ("<!-- estimated -->\n", "<!-- end of estimated -->\n")
MEMORY_SPEED = 4.8e12  # bytes a second of an accelerator's memory (HBM3e of an H200)
REACHED = 0.5  # of it
LEARNING_SPEED = 1e6  # steps a second of one accelerator with learning
VARIATION = 5.0  # percent, of the time of a call, where the report does not tell
ENVS_ON_A_DEVICE, GRID_BYTES, LOADS = 4096, 900, 3
EXPERIMENT = "ladder_l2"


def replace_between(page, marks, text):
    before, rest = page.split(marks[0])
    return f"{before}{marks[0]}\n{text}\n{marks[1]}{rest.split(marks[1])[1]}"


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def measured_table(report):
    lines = ["| row | what | median | min – max | target |", "|---|---|---|---|---|"]
    for row in report["rows"]:
        target = "" if row["target"] is None else f"{row['target_is']} {row['target']:g}"
        missed = ", **missed**" if row["met"] is False else ""
        spread = "" if len(row["samples"]) == 1 else f"{number(row['min'])} – {number(row['max'])}"
        lines.append(
            f"| `{row['id']}` | {row['what']} | {number(row['value'])} {row['unit']} | {spread} | {target}{missed} |"
        )
    return f"{report['hardware']}, jax {report['versions']['jax']}\n\n" + "\n".join(lines) + "\n"


def gradient_bytes(experiment):
    """Bytes of all weights of one agent; nothing is computed."""
    params = make_params(load_pairs(experiment.task, experiment.environment.grid_shape).train, experiment.environment)
    start = lambda key: start_seed(key, params, experiment.train_config, experiment.curriculum).learner.policy
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(start, jax.random.key(0))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--played", type=float, help="measured steps a second of one accelerator, random policy")
    parser.add_argument("--learned", type=float, help="measured steps a second of one accelerator with learning")
    asked = parser.parse_args()
    report = json.loads(asked.report.read_text())
    value = {row["id"]: row["value"] for row in report["rows"]}
    experiment = read_experiment([f"experiment={EXPERIMENT}"])
    agent, num_bytes = experiment.agent, gradient_bytes(experiment)
    played = asked.played or REACHED * MEMORY_SPEED / value["traffic-replicated"]
    training = Training(
        steps_per_second=asked.learned or LEARNING_SPEED,
        steps_per_update=ENVS_ON_A_DEVICE * agent.rollout_steps,
        exchanges_per_update=agent.num_epochs * agent.num_minibatches,
        gradient_bytes=num_bytes,
    )
    play = ShardedPlay(played, ENVS_ON_A_DEVICE, GRID_BYTES, LOADS)
    page = replace_between(PAGE.read_text(), MEASURED, measured_table(report))
    facts = estimate_facts(asked, value, played, training)
    table = estimate_table(play, value.get("variation-2", VARIATION) / 100, training)
    PAGE.write_text(replace_between(page, ESTIMATED, f"{facts}\n{table}"))


def estimate_facts(asked, value, played, training):
    """Say which numbers go into the formulas, and where they come from."""
    guess = (
        f"{100 * REACHED:.0f} % of {MEMORY_SPEED / 1e12:g} TB/s of memory at "
        f"{value['traffic-replicated'] / 1e3:.0f} kB a step (`traffic-replicated`), a guess"
    )
    variation = "`variation-2`" if "variation-2" in value else "an assumption"
    inside, between = EIGHT_A_NODE.inside, EIGHT_A_NODE.between
    link = lambda link: f"{link.bytes_per_second / 1e9:g} GB/s and {1e6 * link.seconds_per_message:g} µs a message"
    facts = [
        f"one accelerator plays {played / 1e6:,.0f} M steps/s ({'measured' if asked.played else guess})",
        f"it learns from {training.steps_per_second / 1e6:g} M ({'measured' if asked.learned else 'an assumption'}), "
        f"{training.steps_per_update:,} in an update with {training.exchanges_per_update} exchanges of "
        f"{training.gradient_bytes / 1e3:,.0f} kB of gradients (`{EXPERIMENT}`, {ENVS_ON_A_DEVICE:,} environments)",
        f"the time of a call varies by {value.get('variation-2', VARIATION):.1f} % ({variation})",
        f"{EIGHT_A_NODE.devices_per_node} accelerators of a node have {link(inside)} each, nodes {link(between)} each",
    ]
    return "".join(f"- {fact};\n" for fact in facts[:-1]) + f"- {facts[-1]}.\n"


if __name__ == "__main__":
    main()
