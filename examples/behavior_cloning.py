"""Behavior cloning: an expert's traces are recorded, a network imitates them, and edits pairs that it never saw.

    python examples/behavior_cloning.py --updates 60

The answer is in sight, as it is for the expert. Reinforcement learning is left out here: ``jaxarc train cloning=painter
cloning.traces=FILE`` does both, and starts from what imitation gave.
"""

import argparse
import tempfile
from pathlib import Path

import jax
from rich.console import Console

from jaxarc.agents import EditPolicy
from jaxarc.agents.cloning import clone_examples, load_examples
from jaxarc.agents.updates import make_params
from jaxarc.config import AgentConfig, CloningConfig, JaxArcConfig, NetworkConfig, TaskConfig
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.evaluation import play_every_task
from jaxarc.experts import Painter
from jaxarc.traces import record_traces
from jaxarc.traces.trace_files import write_trace_file
from jaxarc.traces.units import PairId

SIDE = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=60, help="each of them 4,096 examples")
    options = parser.parse_args()
    console, agent, cloning = Console(), AgentConfig(), CloningConfig(num_updates=max(1, options.updates))

    rules = JaxArcConfig().with_fields(
        max_grid_height=SIDE,
        max_grid_width=SIDE,
        selection_format="bbox",
        invalid_action_policy="noop",
        reveal_target=True,
        include_step_count=True,
        history_enabled=False,
    )
    tasks = load_tasks("arc-agi-1/training").select(max_side=SIDE)
    pairs = load_pairs(TaskConfig(max_side=SIDE), rules.grid_shape)
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder) / "traces.jsonl"
        console.print(f"{write_expert_traces(tasks, traces)} traces of {len(tasks)} tasks", highlight=False)
        params = make_params(pairs.train, rules)
        examples = load_examples(traces, tasks, pairs.train, params, agent.gamma)
    console.print(f"{examples.value_target.shape[0]} situations and what the expert did there", highlight=False)

    measured = make_params(pairs.eval, rules)
    create = jax.jit(lambda key: EditPolicy.create(key, rules, NetworkConfig()))
    learn = jax.jit(lambda policy, key: clone_examples(policy, examples, key, cloning, agent))
    play = jax.jit(lambda policy: play_every_task(lambda _, shown, __: (policy.act(shown), None), measured).solved)
    before = create(jax.random.key(0))
    for name, policy in (("before", before), ("after imitation", learn(before, jax.random.key(1)))):
        solved = play(policy)
        known, unseen = solved[: pairs.num_train], solved[pairs.num_train :]
        console.print(
            f"{name}: {int(known.sum())} of {known.size} imitated pairs solved, {int(unseen.sum())} of {unseen.size} "
            "that it never saw",
            highlight=False,
        )


def write_expert_traces(tasks: TaskSet, path: Path) -> int:
    """Record the painter on every pair; equal pairs are recorded once."""
    recording = record_traces(tasks, Painter(), action_format="bbox")
    recording.require_complete()
    places = {}
    for node in recording.hash_of_node:
        task_id, split, index = node.rsplit("/", 2)
        places[PairId(task_id, split, int(index))] = recording.trace_of(node)
    write_trace_file(path, places)
    return len(recording.traces)


if __name__ == "__main__":
    main()
