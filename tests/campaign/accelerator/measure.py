"""On a GPU: first the same bits as on the processor, then rollouts, resets and training beside their bounds.

``make accelerator-measure`` runs on any GPU that JAX sees. It writes ``accelerator.json`` and
``accelerator.svg``. The bounds are those that ``make accelerator`` computed for an H200.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jax
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from surrogate_rows import WORKLOADS
from surrogate_workload import Learner

import jaxarc
from campaign.accelerator.check import BANDWIDTH, RESULT
from campaign.accelerator.program_costs import LAUNCH_SECONDS
from campaign.accelerator.programs import SURROGATES, TRAINED_ENVS, training_parts
from jaxarc.agents.train import run_updates_in_place
from jaxarc.agents.updates import start_training
from jaxarc.prng import keys_of_seeds
from jaxarc.surrogate import create_jax_surrogate_train_step, kl_divergence_loss_jax
from jaxarc.unroll import RandomPolicy, unroll, vectorize
from jaxarc.wrappers import AutoReset

SIDES: Final = (5, 30)
STEPS: Final = 64
COMPARED_ENVS: Final = 512


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    sizes: tuple[int, ...]  # environments of rollouts, in the order in which they are measured
    trained_envs: int
    surrogates: tuple[str, ...]
    seconds: float  # of timing for each row


WHOLE: Final = Extent(
    tuple(4**n for n in range(5, 11)), TRAINED_ENVS, SURROGATES, 3.0
)  # 1,024 to 1,048,576 environments
REHEARSAL: Final = Extent((64, 256), 64, ("sets-32",), 0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, measure, write, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    console = Console()
    device = jax.devices()[0]
    if device.platform == "cpu" and not chosen.rehearse:
        console.print("JAX sees no accelerator here, so nothing is measured; --rehearse runs all parts on a CPU")
        return 2
    for side in SIDES:
        if differing := different_leaves(side, device, jax.devices("cpu")[0]):
            console.print(f"{side}x{side}: {device.device_kind} and the processor differ in {differing}")
            return 1
    console.print(f"{device.device_kind} plays the same episodes as the processor, bit for bit")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for row in measured_rows(REHEARSAL if chosen.rehearse else WHOLE):
        rows.append(row)
        bound = "" if row["bound_per_second"] is None else f", bound of an H200 {row['bound_per_second']:,.0f}"
        console.print(f"{row['what']}: {row['per_second']:,.0f} per second{bound}", highlight=False, soft_wrap=True)
        # After each row, and the picture too: a run that is stopped keeps what it has.
        result = {"device": device.device_kind, "jax": jax.__version__, "rows": rows}
        (chosen.folder / "accelerator.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        draw(rows, device.device_kind, chosen.folder / "accelerator.svg")
    return 0


def different_leaves(side: int, one: Any, other: Any, num_envs: int = COMPARED_ENVS) -> list[str]:
    """Play the same episodes on two devices, and name what differs."""
    results = []
    for device in (one, other):
        with jax.default_device(device):
            start, roll = _rollout(side, num_envs)
            states = start(jax.random.key(0))
            results.append(jax.device_get(roll(states, jax.random.key(1))))
    leaves = (jax.tree_util.tree_leaves_with_path(result) for result in results)
    pairs = zip(*leaves, strict=True)
    return [jax.tree_util.keystr(path) for (path, a), (_, b) in pairs if not np.array_equal(a, b)]


def measured_rows(extent: Extent) -> Iterator[dict[str, Any]]:
    """Measure rollouts of each size, resets, training and surrogates; a size that does not fit ends its series."""
    bounds = json.loads(RESULT.read_text())
    for side in SIDES:
        for num_envs in extent.sizes:
            try:
                start, roll = _rollout(side, num_envs)
                play = lambda states, roll=roll: roll(states, jax.random.key(1))[0]
                calls = _calls_per_second(play, start(jax.random.key(0)), extent.seconds)
            except jax.errors.JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                break
            bound = _bound(bounds[f"rollout-bbox-{side}"], num_envs)
            what = f"steps of {num_envs:,} environments, {side}x{side}, box actions"
            yield _row(what, side, num_envs, calls * STEPS * num_envs, bound)
    num_envs = extent.sizes[len(extent.sizes) // 2]
    start, _ = _rollout(30, num_envs)
    calls = _calls_per_second(lambda _: start(jax.random.key(2)), start(jax.random.key(0)), extent.seconds)
    bound = _bound(bounds["reset-30"], num_envs)
    yield _row(f"resets of {num_envs:,} environments, 30x30", None, num_envs, calls * num_envs, bound)
    yield _training_row(extent, bounds["update-ladder_l2"])
    for name in extent.surrogates:
        bound = bounds[f"surrogate-{name}"]["bound_steps_per_second"] if name in SURROGATES else None
        yield _surrogate_row(name, extent.seconds, bound)


def _training_row(extent: Extent, program: dict[str, Any]) -> dict[str, Any]:
    experiment, params, _ = training_parts(extent.trained_envs)
    config = experiment.train_config
    state = start_training(keys_of_seeds([0]), params, config, experiment.curriculum)
    learn = lambda state: run_updates_in_place(state, params, train_config=config, length=1)[0]
    calls = _calls_per_second(learn, state, extent.seconds)
    what = f"steps with learning, ladder_l2, {extent.trained_envs:,} environments"
    bound = program["bound_steps_per_second"] if extent.trained_envs == program["num_envs"] else None
    return _row(what, None, extent.trained_envs, calls * config.agent.samples_per_update, bound)


def _surrogate_row(name: str, seconds: float, bound: float | None) -> dict[str, Any]:
    learner = Learner(WORKLOADS[name], create_jax_surrogate_train_step, kl_divergence_loss_jax)

    def learn(_: Any) -> Any:
        learner.learn()
        return learner.metrics

    calls = _calls_per_second(learn, None, seconds)
    num_examples = WORKLOADS[name].num_examples
    return _row(f"examples of a surrogate, {name}", None, num_examples, calls * num_examples, bound)


def draw(rows: Sequence[dict[str, Any]], device: str, path: Path) -> None:
    """Draw steps per second over the number of environments, measured and bound."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for side in sorted({row["side"] for row in rows} - {None}):
        series = [row for row in rows if row["side"] == side]
        sizes = [row["num_envs"] for row in series]
        (line,) = axes.loglog(sizes, [row["per_second"] for row in series], "o-", label=f"{side}x{side}, {device}")
        bounds = [row["bound_per_second"] for row in series]
        axes.loglog(sizes, bounds, "--", color=line.get_color(), label=f"{side}x{side}, bound of an H200")
    sizes = sorted({row["num_envs"] for row in rows if row["side"] is not None})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("environments")
    axes.set_ylabel("steps per second")
    figure.legend(loc="outside upper center", ncols=2)
    figure.savefig(path)
    plt.close(figure)


def _rollout(side: int, num_envs: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two compiled functions: from a key to states, and from states and a key to states and what was played."""
    fits = {} if side == 30 else {"max_grid_height": side, "max_grid_width": side, "too_large": "skip"}
    rules = {"invalid_action_policy": "noop", "history_enabled": False, "executor": "xla", **fits}
    env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox", **rules)
    env = AutoReset(env)
    policy = vectorize(RandomPolicy(env.action_space(params)))

    @jax.jit
    def start(key: Any) -> Any:
        return jax.vmap(env.reset, (0, None))(jax.random.split(key, num_envs), params)[0]

    def roll(states: Any, key: Any) -> Any:
        def step(states: Any, key: Any) -> Any:
            keys = jax.random.split(key, num_envs)[None]
            return unroll(env, params, policy, states, keys, lambda t: (t.reward.sum(), t.done.sum()))

        return jax.lax.scan(step, states, jax.random.split(key, STEPS))

    return start, jax.jit(roll, donate_argnums=0)


def _calls_per_second(call: Callable[[Any], Any], state: Any, seconds: float) -> float:
    """Time calls that take the state of the last one; the first two compile and warm up."""
    state = jax.block_until_ready(call(call(state)))
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        state = jax.block_until_ready(call(state))
        count += 1
    return count / (time.perf_counter() - start)


def _bound(program: dict[str, Any], num_envs: int) -> float:
    """Steps per second that a program cannot exceed on an H200."""
    return num_envs / (program["launches"] * LAUNCH_SECONDS + program["bytes_per_env"] * num_envs / BANDWIDTH)


def _row(what: str, side: int | None, num_envs: int, per_second: float, bound: float | None) -> dict[str, Any]:
    return {"what": what, "side": side, "num_envs": num_envs, "per_second": per_second, "bound_per_second": bound}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="few environments, on a CPU too")
    parser.add_argument("--folder", type=Path, default=Path("dist"), help="for the result and the picture (dist)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
