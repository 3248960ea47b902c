"""A surrogate learns what an expert thinks of 64 candidate edits, and is evaluated on held-out pairs.

    python examples/surrogate.py --steps 300

The expert tries every candidate in the environment's own arithmetic; the surrogate looks once. The answer is in sight
of both: they are teachers. ``jaxarc train surrogate=lookahead`` is the same on grids of up to 10x10, with a run folder
that ``jaxarc evaluate`` takes; docs/surrogate.md says when a surrogate earns its place.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.columns import Columns
from rich.console import Console
from rich.table import Table

from jaxarc.config import (
    JaxArcConfig,
    LookaheadConfig,
    SurrogateConfig,
    SurrogateTrainingConfig,
    TaskConfig,
)
from jaxarc.envs.operations import get_operation_name
from jaxarc.render import render_grid
from jaxarc.surrogate import SurrogateExperiment, SurrogateReport, make_task, train_surrogate
from jaxarc.surrogate.candidate_features import describe_boxes

SIDE = 5
NUM_SHOWN = 5  # candidates of a state


def make_experiment(num_steps: int) -> SurrogateExperiment:
    rules = JaxArcConfig().with_fields(
        max_grid_height=SIDE,
        max_grid_width=SIDE,
        selection_format="bbox",
        invalid_action_policy="noop",
        start_grid="partial",  # half painted grids are examples too
        reveal_target=True,
        include_input=True,
        history_enabled=False,
        allowed_operations=(*range(10), 31, 33, 34),  # fill, clear, resize, submit; all 35 take longer to compile
    )
    return SurrogateExperiment(
        environment=rules,
        surrogate=SurrogateConfig(problem="lookahead"),
        surrogate_training=SurrogateTrainingConfig(
            num_steps=num_steps, warmup_steps=min(20, num_steps - 1), learning_rate=0.05, weight_decay=0.0
        ),
        lookahead=LookaheadConfig(num_candidates=64, num_examples=128, num_eval=512),
        task=TaskConfig(max_side=SIDE),  # learns from ARC-AGI-1 training tasks, is measured on evaluation tasks
    )


def agreement_table(before: SurrogateReport, after: SurrogateReport) -> Table:
    table = Table("on pairs that it never saw", "before", "after", title="Does it agree with the expert?")
    rows = (
        ("its first choice is one that the expert likes best", "top1_agreement", "{:.1%}"),
        ("such a one is among its first five", "top5_agreement", "{:.1%}"),
        ("what its first choice is worth less than the best", "regret", "{:.4f}"),
        ("KL to the expert, nats", "kl", "{:.3f}"),
    )
    for text, name, form in rows:
        table.add_row(text, *(form.format(getattr(report, name)) for report in (before, after)))
    return table


def decision(problem, model, place: int) -> Columns:
    """Show one held-out state, and what both think of the candidates that the expert likes best."""
    examples = jax.tree.map(lambda leaf: leaf[place], problem.held_out()[0])
    candidates = describe_boxes(examples.actions, examples.is_real, (SIDE, SIDE))
    logits = eqx.filter_jit(model)(examples.data, candidates)
    shares = np.asarray(jax.nn.softmax(jnp.where(examples.is_real, logits, -jnp.inf)))
    table = Table("edit", "rows", "columns", "worth", "expert", "surrogate")
    for number in np.argsort(-np.asarray(examples.probs), kind="stable")[:NUM_SHOWN]:
        edit = jax.tree.map(lambda leaf, number=number: int(leaf[number]), examples.actions)
        table.add_row(
            get_operation_name(edit.operation),
            f"{edit.r1} – {edit.r2}",
            f"{edit.c1} – {edit.c2}",
            f"{examples.scores[number]:.2f}",
            f"{examples.probs[number]:.1%}",
            f"{shares[number]:.1%}",
        )
    working, target, _ = np.asarray(examples.data).transpose(2, 0, 1).astype(np.int8)
    return Columns([render_grid(working), "→", render_grid(target), table])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300, help="each of them 128 states with 64 candidates")
    options = parser.parse_args()
    console = Console()
    experiment = make_experiment(max(1, options.steps))
    task = make_task(experiment)
    outcome = train_surrogate(experiment, task)
    first, last = outcome.reports[0], outcome.reports[-1]
    console.print(agreement_table(first, last))
    console.print(
        f"{last.examples:,} examples in {last.seconds:.1f} s, after {outcome.compile_seconds:.0f} s of compiling\n",
        highlight=False,
    )
    console.print("Three grids on their way to the answer, and the edits that the expert likes best there:")
    for place in (0, 100, 200):
        console.print(decision(task, outcome.state.model, place))


if __name__ == "__main__":
    main()
