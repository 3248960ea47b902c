"""Learns graphs from samples with one peer, in the peers' environment: pc, ges, avici or avici-pretrained.

Reads data sets from a .npz file, writes probabilities of edges [M, d, d] and seconds to another one. A method that
returns one graph gives its edges the probability 1, and both directions of an edge without one 1/2.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable

import numpy as np

NUM_BATCH = 8  # AVICI: models in a training step
LEARNING_RATE = 1e-3
# The published network has 8, 128, 32 and 8 of these, and 85 times the weights.
NETWORK = {"layers": 2, "dim": 32, "key_size": 8, "num_heads": 4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=["pc", "ges", "avici", "avici-pretrained"])
    parser.add_argument(
        "data", help="values and is_set [M, N, d]; for avici also train_values, train_is_set, train_edges"
    )
    parser.add_argument("output")
    parser.add_argument("--seconds", type=float, default=0.0, help="avici: of training, without compilation")
    parser.add_argument("--cpu-time", action="store_true", help="count seconds of CPU time instead of wall-clock time")
    options = parser.parse_args()
    data = dict(np.load(options.data))
    clock = time.process_time if options.cpu_time else time.perf_counter
    method, about = prepare(options.method, data, options.seconds, clock)
    method(data["values"][0], data["is_set"][0])  # what compiles does so here
    begun = clock()
    probs = np.stack([method(*each) for each in zip(data["values"], data["is_set"], strict=True)])
    np.savez(options.output, probs=probs, seconds=(clock() - begun) / len(probs), **about)


Method = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the values and the interventions of one data set, [N, d], to probabilities of edges i -> j, [d, d]."""
Clock = Callable[[], float]


def prepare(name: str, data: dict[str, np.ndarray], seconds: float, clock: Clock) -> tuple[Method, dict[str, float]]:
    """Return a method that is ready to be timed, and figures of its training."""
    if name in ("pc", "ges"):
        return {"pc": run_pc, "ges": run_ges}[name], {}
    return train_avici(data, seconds, clock) if name == "avici" else load_avici(data["values"].shape[-1])


def run_pc(values: np.ndarray, is_set: np.ndarray) -> np.ndarray:
    """Run PC with Fisher's z test at 0.05; it knows no interventions, so all samples count alike."""
    from causallearn.search.ConstraintBased.PC import pc

    return edges_of(pc(values, 0.05, "fisherz", show_progress=False).G.graph)


def run_ges(values: np.ndarray, is_set: np.ndarray) -> np.ndarray:
    """Run GES with the BIC of linear normal models; it knows no interventions, so all samples count alike."""
    from causallearn.search.ScoreBased.GES import ges

    return edges_of(ges(values, score_func="local_score_BIC")["G"].graph)


def edges_of(graph: np.ndarray) -> np.ndarray:
    """Return probabilities of edges from causal-learn's marks of ends: -1 tail, 1 arrow, 0 no edge."""
    # ``graph[i, j]`` is the mark at i's end of the edge with j. i -> j has a tail at i and an arrow at j.
    has_edge = graph != 0
    is_directed = (graph == -1) & (graph.T == 1)
    return np.where(is_directed, 1.0, np.where(has_edge & ~is_directed.T, 0.5, 0.0))


def train_avici(data: dict[str, np.ndarray], seconds: float, clock: Clock) -> tuple[Method, dict[str, float]]:
    """Train AVICI's network on the drawn models for so many seconds, from the first one again where they end."""
    import haiku as hk
    import jax
    import jax.numpy as jnp
    import optax
    from avici.model import BaseModel

    inputs = np.stack([data["train_values"], data["train_is_set"]], axis=-1).astype(np.float32)
    edges = data["train_edges"].astype(np.float32)
    num_variables = edges.shape[-1]
    is_pair = jnp.asarray(1.0 - np.eye(num_variables, dtype=np.float32))
    network = hk.transform(lambda x, is_training: BaseModel(**NETWORK)(x, is_training))
    params = network.init(jax.random.key(0), inputs[:1], True)
    # The rate falls as a cosine over the seconds, whose number of steps is not known before.
    optimizer = optax.inject_hyperparams(
        lambda learning_rate: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(learning_rate))
    )(learning_rate=LEARNING_RATE)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, key, x, y, rate):
        def loss_of(params):
            logits = network.apply(params, key, x, True)
            return (optax.sigmoid_binary_cross_entropy(logits, y) * is_pair).sum() / (is_pair.sum() * len(y))

        loss, gradient = jax.value_and_grad(loss_of)(params)
        state.hyperparams["learning_rate"] = rate
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    def learn(number: int, rate: float) -> None:
        nonlocal params, state
        chosen = np.arange(number * NUM_BATCH, (number + 1) * NUM_BATCH) % len(inputs)
        arguments = jax.random.key(number), inputs[chosen], edges[chosen], jnp.float32(rate)
        params, state, loss = step(params, state, *arguments)
        jax.block_until_ready(loss)

    learn(0, 0.0)  # compiles
    begun, number = clock(), 0
    while (share := (clock() - begun) / seconds) < 1:
        learn(number, LEARNING_RATE * min(1.0, number / 50) * 0.5 * (1 + math.cos(math.pi * share)))
        number += 1
    predict = jax.jit(lambda x: jax.nn.sigmoid(network.apply(params, jax.random.key(0), x[None], False)[0]) * is_pair)

    def method(values: np.ndarray, is_set: np.ndarray) -> np.ndarray:
        return np.asarray(predict(np.stack([values, is_set], axis=-1).astype(np.float32)))

    return method, {"train_steps": number, "train_examples": number * NUM_BATCH}


def load_avici(num_variables: int) -> tuple[Method, dict[str, float]]:
    """Load the published weights, which AVICI downloads."""
    import avici

    model = avici.load_pretrained(download="scm-v0")

    def method(values: np.ndarray, is_set: np.ndarray) -> np.ndarray:
        interventions = is_set.astype(np.float32) if is_set.any() else None
        return np.asarray(model(x=values.astype(np.float32), interv=interventions)) * (1 - np.eye(num_variables))

    return method, {}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers', about packages that they use
    main()
