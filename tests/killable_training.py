"""A ``jaxarc train`` process to be killed: it starts in a second, because what it runs was compiled before."""

import contextlib
import pickle
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import jax
import numpy as np
from forked import start_forked
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from small_run import Ready

from jaxarc.agents import train as agent_training
from jaxarc.agents import updates
from jaxarc.cli.main import main
from jaxarc.cli.settings import read_experiment
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.native.library import native_library
from jaxarc.prng import keys_of_seeds


def start(target, *arguments: Any) -> BaseProcess:
    """Start a process that has this file, and so the whole package, imported already."""
    return start_forked([__name__], target, *arguments)


def prepare(file: Path, overrides: list[str]) -> None:
    """Compile what a run calls, and write it into a file together with the run's first state."""
    experiment = read_experiment(overrides)
    rules = experiment.environment
    pairs = load_pairs(experiment.task, rules.grid_shape, augmentation=rules.augmentation)
    learned, measured = (updates.make_params(tasks, rules) for tasks in (pairs.train, pairs.eval))
    keys = keys_of_seeds(experiment.training.seeds)
    state = updates.start_training(keys, learned, experiment.train_config, experiment.curriculum)
    length = experiment.training.updates_per_report
    run_updates = lambda state: updates.run_updates(state, learned, experiment.train_config, length)
    measure = lambda players: updates.measure(players, measured)
    players = state.players
    contents = jax.device_get(state), _pack(run_updates, state), _pack(measure, players)
    file.write_bytes(pickle.dumps(contents))


def command(file: Path, log: Path, arguments: list[str]) -> None:
    """Run ``jaxarc`` with what was compiled in place of the compiler."""
    state, run_updates, measure = pickle.loads(file.read_bytes())
    start = lambda *_: jax.tree.map(jax.numpy.asarray, state)
    agent_training.start_training = Ready(start, updates.start_training)
    agent_training.run_updates, agent_training.measure = Compiled(*run_updates), Compiled(*measure)
    with log.open("a") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(arguments)


def arrays_of(checkpoint: Path) -> dict[str, tuple]:
    """Return the type, shape and bytes of each array of a checkpoint, without what a config says of them."""
    with np.load(checkpoint / "arrays.npz") as arrays:
        return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


class Compiled:
    """A compiled function of one pytree and of params, which are part of it already."""

    def __init__(self, executable: tuple, result: Any):
        native_library()  # whose kernels the program calls
        self.call, self.result = deserialize_and_load(*executable), jax.tree.structure(result)

    def lower(self, *_: Any) -> "Compiled":
        return self

    def compile(self, _: Any = None) -> "Compiled":
        return self

    def memory_analysis(self) -> None:
        """Say nothing, as of a program whose backend reports no sizes."""

    def __call__(self, tree: Any, params: Any) -> Any:
        return jax.tree.unflatten(self.result, self.call(jax.tree.leaves(tree)))


def _pack(function, tree: Any) -> tuple[tuple, Any]:
    """Return the compiled function of a list of leaves, and an example of what it returns."""
    leaves, structure = jax.tree.flatten(tree)
    flat = jax.jit(lambda leaves: jax.tree.leaves(function(jax.tree.unflatten(structure, leaves)))).lower(leaves)
    compiled = flat.compile()
    kept = serialize(compiled)  # before its first call, after which that is not possible
    result = jax.tree.unflatten(jax.tree.structure(jax.eval_shape(function, tree)), compiled(leaves))
    return kept, jax.device_get(result)
