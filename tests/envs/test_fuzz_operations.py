"""The JAX kernels against the NumPy reference, operation by operation: no mismatch in any case."""

import functools
from contextlib import nullcontext

import jax
import numpy as np
import pytest
from compiling import AS_USERS, EXECUTORS, QUICKLY, interpreted_triton
from reference.cases import random_cases
from reference.kernel_cases import differences, expected_results, kernel_arguments, with_boxes

from jaxarc.envs.operations.execute import KernelStatics, execute_batch

BATCH = 2048
# canvas shape -> number of batches of masks, of boxes; 38,912 cases of masks and 14,336 of boxes, each in all executors
SIZES = {
    (30, 30): (4, 2),
    (5, 5): (5, 3),
    (3, 7): (4, 0),
    (1, 1): (2, 0),
    (1, 6): (2, 0),
    (4, 1): (0, 1),
    (30, 4): (2, 1),
}
TRITON = {(3, 7), (1, 6)}  # of these one batch in four is also played with the flood fill of NVIDIA's GPUs
OPTIMIZED = {((5, 5), True)}  # compiled as for users; the others in a quarter of the time


@functools.cache
def _compiled(shape, executor, as_boxes):
    statics = KernelStatics(shape, "xla" if executor == "triton" else executor, tuple(range(42)))

    def execute(canvas, command, pairs):
        with interpreted_triton() if executor == "triton" else nullcontext():
            return execute_batch(canvas, command, pairs, statics)

    return jax.jit(execute, compiler_options=AS_USERS if (shape, as_boxes) in OPTIMIZED else QUICKLY)


@pytest.mark.parametrize(
    ("as_boxes", "shape"),
    [(as_boxes, shape) for as_boxes in (False, True) for shape in SIZES if SIZES[shape][as_boxes]],
    ids=lambda value: str(value) if isinstance(value, tuple) else ["mask", "bbox"][value],
)
def test_kernels_agree_with_the_reference(as_boxes, shape):
    rng = np.random.default_rng([*shape, as_boxes])
    for number in range(SIZES[shape][as_boxes]):
        cases = random_cases(rng, BATCH, *shape)
        cases = with_boxes(cases) if as_boxes else cases
        expected = expected_results(cases)
        for executor in (*EXECUTORS, *(["triton"] if shape in TRITON and number % 4 == 0 else [])):
            edit = _compiled(shape, executor, as_boxes)(*kernel_arguments(cases, as_boxes))
            wrong = differences(edit, cases, expected)
            assert not wrong, f"{executor}: {len(wrong)} mismatches, first: {wrong[:5]}"
