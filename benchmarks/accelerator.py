"""What an accelerator brings to surrogates: the same steps on it and on the processor, then the whole benchmark.

Run it with ``python benchmarks/accelerator.py --json accelerator.json`` where JAX finds an accelerator; what is passed
goes to ``benchmarks/measure.py surrogate``. Elsewhere both sides are the processor.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np
from measure import main as run_benchmark
from surrogate_rows import WORKLOADS
from surrogate_workload import Learner, Workload

from jaxarc.config import SurrogateTrainingConfig
from jaxarc.surrogate import create_jax_surrogate_train_step, kl_divergence_loss_jax

NUM_STEPS = 5
TOLERANCE = 0.02  # relative, of a loss: accelerators multiply float32 in fewer bits
PRECISIONS = ("float32", "bfloat16")


def main(arguments: Sequence[str], workloads: dict[str, Workload] | None = None) -> None:
    """Compare the losses of a few steps, and measure when they agree."""
    accelerator = jax.devices()[0]
    print(f"losses of {NUM_STEPS} steps on the processor and on {accelerator.device_kind} ({accelerator.platform})")
    for name, workload in (workloads or dict(WORKLOADS)).items():
        for precision in PRECISIONS:
            chosen = replace(workload, training=SurrogateTrainingConfig(precision=precision))
            here, there = losses(chosen, jax.devices("cpu")[0]), losses(chosen, accelerator)
            print(f"  {name:10} {precision:9} {np.round(here, 4)} {np.round(there, 4)}")
            if not np.allclose(here, there, rtol=TOLERANCE):
                sys.exit(f"{name} in {precision} learns something else on the accelerator; nothing is measured")
    run_benchmark(["surrogate", *arguments])


def losses(workload: Workload, device: jax.Device) -> list[float]:
    """Return the losses of compiled steps on a device."""
    found = []
    with jax.default_device(device):
        learner = Learner(workload, create_jax_surrogate_train_step, kl_divergence_loss_jax)
        for _ in range(NUM_STEPS):
            learner.learn()
            found.append(float(learner.metrics["total_loss"]))
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
