"""Compare trained surrogates of graphs with PC, GES and AVICI on the same held-out data sets.

Run by `make benchmark-graphs ARGS="RUN ..."`, with the run folders of `jaxarc train surrogate=graphs`: seeds of one
experiment. All methods get the same standardized samples, half of the data sets with interventions.

Other programs on the machine lengthen wall-clock times. Pin the comparison to a core there (`taskset`), and pass the
CPU seconds that a run took: with `--cpu-seconds` all times are CPU times.
"""

import argparse
import dataclasses
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from jaxarc.cli.settings import read_any_experiment
from jaxarc.config import ConfigValidationError, StructuralModelConfig
from jaxarc.runs import open_run_folder
from jaxarc.runs.metrics import read_reports
from jaxarc.surrogate import edge_probabilities
from jaxarc.surrogate.structural_models import GraphBatch
from jaxarc.training.surrogates import SurrogateExperiment, SurrogateReport
from jaxarc.training.surrogates.evaluate import load_models
from jaxarc.training.surrogates.experiment import EDGES
from jaxarc.training.surrogates.graphs import GraphAccuracy, GraphsTask, graph_accuracy

HERE = Path(__file__).resolve().parent
PYTHON = HERE / ".venv-graph-peers" / "bin" / "python"
WORKER = HERE / "worker_graphs.py"
SURROGATE: Final = "surrogate"
_POOL: Final = 1024  # batches that AVICI learns from


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    console = Console()
    if not PYTHON.is_file():
        console.print(f"{PYTHON.parents[1].name} is missing; run: make benchmark-graphs")
        return 1
    experiments = [_experiment_of(run) for run in options.runs]
    if any(experiment.structural_models != experiments[0].structural_models for experiment in experiments):
        console.print("the runs differ in structural_models; compare seeds of one experiment")
        return 1
    results = [
        _measure_run(run, experiment, options.models, options.cpu_seconds)
        for run, experiment in zip(options.runs, experiments, strict=True)
    ]
    seconds = statistics.mean(result["train_seconds"] for result in results)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        num_batches = _POOL if "avici" in options.methods else 1
        held_out = _write_data(experiments[0], options.models, num_batches, data)
        for name, factor in _entrants(options.methods, options.times):
            clock = [] if options.cpu_seconds is None else ["--cpu-time"]
            peer = [name, *clock, "--seconds", str(factor * seconds)]
            results.append({"times": factor} | _measure_peer(peer, data, held_out, options.models))
            console.print(f"{results[-1]['method']}: measured", highlight=False)
    console.print(_table(results))
    if options.json:
        _record(options.json, experiments[0].structural_models, results)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders of surrogate=graphs")
    parser.add_argument("--models", type=int, default=50, help="data sets of either kind")
    parser.add_argument("--methods", nargs="*", default=["pc", "ges", "avici"], help="also: avici-pretrained")
    parser.add_argument("--times", nargs="*", type=float, default=[1, 10], help="AVICI's training time over ours")
    parser.add_argument("--cpu-seconds", type=float, help="CPU time that a run took; all times are CPU times then")
    parser.add_argument("--json", type=Path, help="where the results go, beside those of other models and methods")
    return parser.parse_args(arguments)


def _entrants(methods: Sequence[str], times: Sequence[float]) -> list[tuple[str, float]]:
    return [(name, factor) for name in methods for factor in (times if name == "avici" else [0.0])]


def _experiment_of(run: Path) -> SurrogateExperiment:
    experiment = read_any_experiment([], open_run_folder(run).config)
    if not isinstance(experiment, SurrogateExperiment) or experiment.surrogate.problem != "graphs":
        raise ConfigValidationError(f"{run} is no run of surrogate=graphs")
    return experiment


def _measure_run(
    run: Path, experiment: SurrogateExperiment, num_models: int, cpu_seconds: float | None
) -> dict[str, Any]:
    folder = open_run_folder(run)
    task = GraphsTask(experiment.graphs, experiment.structural_models, experiment.surrogate_network)
    model = load_models(folder, {EDGES: task}, "last")[EDGES]
    held_out = _held_out(task, num_models)
    values, is_set = _samples(held_out)
    edge_probabilities(model, values[0], is_set[0])  # compiles
    clock = time.perf_counter if cpu_seconds is None else time.process_time
    begun = clock()
    probs = np.stack([edge_probabilities(model, *each) for each in zip(values, is_set, strict=True)])
    seconds = (clock() - begun) / len(probs)
    learned = read_reports(folder.metrics, SurrogateReport)[-1]
    train_seconds = learned.seconds if cpu_seconds is None else cpu_seconds
    measured = {"train_seconds": train_seconds, "train_examples": learned.examples, "seconds": seconds}
    return {"method": f"{SURROGATE}, seed {experiment.surrogate.seed}", **measured} | _accuracies(
        graph_accuracy(probs, np.asarray(held_out.adjacency), num_models)
    )


def _held_out(task: GraphsTask, num_models: int) -> GraphBatch:
    """Return the first data sets of either kind: observational ones, and then those with interventions."""
    first = task.num_observational(task.config.eval_models)
    chosen = np.r_[:num_models, first : first + num_models]
    if first < num_models or len(task.held_out.data) < first + num_models:
        raise ConfigValidationError(f"the held-out models hold fewer than {num_models} of either kind")
    return GraphBatch(task.held_out.data[chosen], task.held_out.adjacency[chosen])


def _samples(batch: GraphBatch) -> tuple[np.ndarray, np.ndarray]:
    data = np.asarray(batch.data)
    return data[..., 0], data[..., 1] > 0


def _write_data(experiment: SurrogateExperiment, num_models: int, num_batches: int, path: Path) -> GraphBatch:
    """Write the held-out data sets, and drawn ones to learn from, the batches of a seed that no run has."""
    task = GraphsTask(experiment.graphs, experiment.structural_models, experiment.surrogate_network)
    held_out = _held_out(task, num_models)
    values, is_set = _samples(held_out)
    # Observational and interventional models are mixed, so that each of AVICI's small batches has both.
    seed = 2**31 - 2
    batches = [task.batch(seed, step) for step in range(num_batches)]
    pool = GraphBatch(*(jnp.concatenate([getattr(batch, name) for batch in batches]) for name in ("data", "adjacency")))
    order = np.random.default_rng(0).permutation(len(pool.data))
    train_values, train_is_set = _samples(GraphBatch(pool.data[order], pool.adjacency[order]))
    edges = np.asarray(pool.adjacency)[order]
    np.savez(
        path, values=values, is_set=is_set, train_values=train_values, train_is_set=train_is_set, train_edges=edges
    )
    return held_out


def _measure_peer(arguments: Sequence[str], data: Path, held_out: GraphBatch, num_models: int) -> dict[str, Any]:
    output = data.with_name("result.npz")
    subprocess.run([str(PYTHON), str(WORKER), *arguments, str(data), str(output)], check=True)
    result = dict(np.load(output))
    accuracy = graph_accuracy(result.pop("probs"), np.asarray(held_out.adjacency), num_models)
    figures = {key: value.item() for key, value in result.items()}
    seconds = float(arguments[-1])
    trained = f", {seconds:.0f} s" if seconds else ""
    return {"method": f"{arguments[0]}{trained}", "train_seconds": seconds, **figures} | _accuracies(accuracy)


def _accuracies(accuracy: GraphAccuracy) -> dict[str, Any]:
    return {kind: each._asdict() for kind, each in accuracy.by_samples.items()}


def _record(path: Path, models: StructuralModelConfig, results: Sequence[dict[str, Any]]) -> None:
    """Write the results into a file, in place of those of equal methods for equal structural models."""
    groups = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    config = dataclasses.asdict(models)
    group = next((each for each in groups if each["structural_models"] == config), None)
    if group is None:
        group = {"structural_models": config, "results": []}
        groups.append(group)
    by_method = {result["method"]: result for result in [*group["results"], *results]}
    group["results"] = list(by_method.values())
    path.write_text(json.dumps(groups, indent=1) + "\n", encoding="utf-8")


def _table(results: Sequence[dict[str, Any]]) -> Table:
    kinds = ("observational", "interventional")
    headers = [f"{what}\n{kind}" for kind in kinds for what in ("AUROC", "expected SHD")]
    table = Table("method", *headers, "training, s", "models\nlearned from", "ms a\ndata set")
    for result in results:
        numbers = [f"{result[kind][what]:.3f}" for kind in kinds for what in ("auroc", "expected_shd")]
        trained = f"{result['train_seconds']:.0f}", f"{result.get('train_examples', 0):,}"
        table.add_row(result["method"], *numbers, *trained, f"{1000 * result['seconds']:.1f}")
    return table


if __name__ == "__main__":
    raise SystemExit(main())
