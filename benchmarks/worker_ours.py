"""Measures this package on request; see worker_protocol.py."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
from ppo_peer import Game, training_sampler
from worker_protocol import Request, serve

from jaxarc.benchmarks import versions
from jaxarc.benchmarks.speed import PythonLoop, Throughput, play_params
from jaxarc.benchmarks.training import with_environments
from jaxarc.benchmarks.training_parts import TrainingParts
from jaxarc.cli.settings import read_experiment
from jaxarc.envs import ArcEnvironment, BboxAction
from jaxarc.wrappers import AutoReset

Sample = Callable[[float], float]
_samplers: dict[tuple, Sample] = {}


def measure(request: Request) -> float:
    kind, mode, selection, side, batch, longest = (
        request[name] for name in ("kind", "mode", "selection", "side", "batch", "longest_scan")
    )
    key = (kind, mode, selection, side, batch)
    if key not in _samplers:
        params = play_params(selection, side)
        if kind == "training":
            _samplers[key] = training(mode, side, batch)
        elif kind == "loop":
            loop = PythonLoop(params, compiled_outside=mode == "jit")
            _samplers[key] = lambda seconds: 1e6 / loop.sample(seconds)
        elif kind == "resets":
            _samplers[key] = Throughput.of_resets(params, batch, longest).sample
        else:
            _samplers[key] = Throughput.of_steps(params, batch, longest).sample
    return _samplers[key](request["seconds"])


def training(mode: str, side: int, batch: int) -> Sample:
    """Return a sampler of the experiment that ``mode`` names, or of the plain PPO with the network that it names."""
    if mode not in {"mlp", "cnn"}:
        parts = TrainingParts.of(with_environments(read_experiment([f"experiment={mode}"]), batch))
        return lambda seconds: parts.sample(seconds).learning
    return training_sampler(game(side, batch), mode)


def game(side: int, batch: int) -> Game:
    env, params = AutoReset(ArcEnvironment()), play_params("bbox", side)
    params = replace(params, config=params.config.with_fields(reveal_target=True))

    def step(carry: tuple, actions: jax.Array, key: jax.Array) -> tuple:
        boxes = BboxAction(actions[:, 0], *actions[:, 1:].T)
        states, shown, reward, done, _ = jax.vmap(env.step, (0, 0, None))(carry[0], boxes, params)
        return (states, shown), reward, done

    start = lambda key: jax.vmap(env.reset, (0, None))(jax.random.split(key, batch), params)
    observe = lambda carry: jnp.stack([carry[1]["working_grid"], carry[1]["target_grid"]], axis=-1)
    return Game(start, step, observe, side, batch)


if __name__ == "__main__":
    serve(lambda: {"package": "jaxarc", **versions()}, measure, _samplers.clear)
