"""The JAX kernels against the NumPy reference, operation by operation: no mismatch in any case."""

import functools

import jax
import numpy as np
import pytest
from compiling import AS_USERS, EXECUTORS
from reference.cases import random_cases
from reference.kernel_cases import differences, expected_results, kernel_arguments, with_boxes

from jaxarc.envs.operations.execute import KernelStatics, execute_batch

BATCH = 2048
# canvas shape -> number of batches; about 104,000 cases over all, each in all executors
SIZES = {(30, 30): 12, (5, 5): 14, (3, 7): 8, (12, 9): 8, (1, 1): 2, (1, 6): 2, (4, 1): 2, (30, 4): 3}


@functools.cache
def _compiled(shape, executor):
    statics = KernelStatics(shape, executor, tuple(range(42)))
    execute = lambda canvas, command, pairs: execute_batch(canvas, command, pairs, statics)
    return jax.jit(execute, compiler_options=AS_USERS)


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("as_boxes", [False, True], ids=["mask", "bbox"])
def test_kernels_agree_with_the_reference(shape, as_boxes):
    rng = np.random.default_rng([*shape, as_boxes])
    for _ in range(SIZES[shape] if not as_boxes else -(-SIZES[shape] // 2)):
        cases = random_cases(rng, BATCH, *shape)
        cases = with_boxes(cases) if as_boxes else cases
        expected = expected_results(cases)
        for executor in EXECUTORS:
            edit = _compiled(shape, executor)(*kernel_arguments(cases, as_boxes))
            wrong = differences(edit, cases, expected)
            assert not wrong, f"{executor}: {len(wrong)} mismatches, first: {wrong[:5]}"
