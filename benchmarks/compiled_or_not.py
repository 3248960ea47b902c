"""Time two reference workloads compiled and not, in turn: a function of 200 operations, and a training step.

python benchmarks/compiled_or_not.py
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxarc.nn import optimized_train_step
from jaxarc.surrogate import to_arrays

ROUNDS = 5


def expensive_fn(x):
    for _ in range(100):
        x = jnp.sin(x) + jnp.cos(x)
    return x


def network(params, x):
    return jnp.tanh(x @ params["hidden"]) @ params["out"]


def seconds_in_turn(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median seconds of each call, timed one after the other in each round, after one that warms up."""
    for call in calls.values():
        jax.block_until_ready(call())
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def batches_of_a_function() -> dict[str, Callable[[], object]]:
    batch = jnp.ones((64, 10))
    vectorized = jax.vmap(expensive_fn)
    compiled = jax.jit(vectorized)
    return {
        "one example after the other": lambda: jnp.stack([expensive_fn(x) for x in batch]),
        "`vmap`": lambda: vectorized(batch),
        "`jit` of `vmap`": lambda: compiled(batch),
    }


def training_steps() -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    labelled = {"x": rng.normal(size=(256, 32)), "y": rng.normal(size=(256, 2))}  # as an xarray.Dataset has them
    arrays = to_arrays(labelled)
    optimizer = optax.adam(1e-3)

    def step(take: Callable[[], dict]) -> Callable[[], object]:
        start = {"hidden": jnp.zeros((32, 64)), "out": jnp.zeros((64, 2))}
        state = [start, optimizer.init(start)]

        def call():
            settings = {"model": network, "optimizer": optimizer, "precision": "float32"}
            state[0], state[1], loss = optimized_train_step(*state, take(), **settings)
            return loss

        return call

    def uncompiled():
        with jax.disable_jit():
            return plain()

    plain = step(lambda: arrays)
    return {
        "nothing compiled": uncompiled,
        "compiled, labelled data converted in each step": step(lambda: to_arrays(labelled)),
        "compiled, converted once": step(lambda: arrays),
    }


def main() -> None:
    for title, calls in (("64 examples of 10", batches_of_a_function()), ("training step", training_steps())):
        seconds = seconds_in_turn(calls)
        fastest = min(seconds.values())
        print(f"| {title} | median | times the fastest |\n|---|---|---|")
        for name, value in seconds.items():
            print(f"| {name} | {1000 * value:,.3f} ms | {value / fastest:,.1f} |")
        print()


if __name__ == "__main__":
    main()
