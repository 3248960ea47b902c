"""Train the same agents with matrix products in float32 and in bfloat16, on a CPU that rounds as an accelerator does.

A CPU leaves the factors of ``network.precision=bfloat16`` as they are. Here each product that asks for it rounds them,
the products of the gradient too, so that both curves can be compared without an accelerator::

    PYTHONPATH=tests JAX_PLATFORMS=cpu python -m campaign.accelerator.bfloat16_curves experiment=ladder_l1
"""

import sys
from collections.abc import Sequence
from typing import Any
from unittest import mock

import jax
import numpy as np

from jaxarc.agents.train import train
from jaxarc.cli.settings import read_experiment
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.nn import layers

_BFLOAT16 = {"exponent_bits": 8, "mantissa_bits": 7}


def main(choices: Sequence[str]) -> None:
    """Print the share of evaluation pairs that each seed solves, report by report."""
    for precision in ("float32", "bfloat16"):
        fixed = ("training.num_seeds=3", "training.compilation_cache=false", f"network.precision={precision}")
        rates, num_rounded = solve_rates([*choices, *fixed])
        print(f"{precision}, {num_rounded} products traced with rounded factors")
        for steps, seeds in rates.items():
            print(
                f"  {steps:>9,} steps  " + "  ".join(f"{rate:.3f}" for rate in seeds) + f"  mean {np.mean(seeds):.3f}"
            )


def solve_rates(choices: Sequence[str]) -> tuple[dict[int, list[float]], int]:
    """Train as ``jaxarc train`` does, and return evaluation solve rates of all seeds by step, and products rounded."""
    experiment = read_experiment(choices)
    product = jax.lax.dot_general_p
    bind, num_rounded = product.bind, 0

    def round_and_bind(*factors: Any, precision: Any, **params: Any) -> Any:
        nonlocal num_rounded
        if precision == jax.lax.DotAlgorithmPreset.BF16_BF16_F32:
            num_rounded += 1
            factors = tuple(jax.lax.reduce_precision(factor, **_BFLOAT16) for factor in factors)
        return bind(*factors, precision=precision, **params)

    jax.clear_caches()
    asks = mock.patch.object(layers, "compiles_for_cpu", return_value=False)
    with asks, mock.patch.object(product, "bind", round_and_bind):
        rules = experiment.environment
        pairs = load_pairs(experiment.task, rules.grid_shape, augmentation=rules.augmentation)
        reports = train(experiment, pairs).reports
    rates: dict[int, list[float]] = {}
    for report in reports:
        if report.evaluation_solve_rate is not None:
            rates.setdefault(report.environment_steps, []).append(report.evaluation_solve_rate)
    return rates, num_rounded


if __name__ == "__main__":
    main(sys.argv[1:])
