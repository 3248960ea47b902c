#!/usr/bin/env bash
# JAX 0.11.2 on a CPU. Python 3.12 or later. About 30 s.
#
# One expects: jnp.array(x), which is documented to copy, and jnp.array(x, copy=True) hold the values that x had at the
#   call; device_put(x, may_alias=False) does not share memory with x.
# What happens: where x begins at a multiple of 64 bytes, as one NumPy array in four does by chance, jnp.array takes its
#   copy later while a step runs on the device: values that are written into x after the call are in the array. And
#   device_put shares the memory of x for good, with may_alias=False too.
# Why it matters: a loader that refills one buffer, or an environment that reuses its mask, trains on batches of later
#   items, and only on some machines and in some runs. A copy by NumPy, jnp.asarray(x.copy()), is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'EOF'
import jax
import jax.numpy as jnp
import numpy as np


def buffer(offset):
    """A float32 array of 1 MiB whose address is a multiple of 64, and offset bytes more."""
    raw = np.zeros(2**20 + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start : start + 2**20].view(np.float32)


@jax.jit
def step(weights):
    return jnp.linalg.norm(weights @ weights @ weights @ weights)


weights = jnp.ones((1000, 1000))
step(weights).block_until_ready()


def num_wrong(put, offset, running):
    """Of ten arrays of ones, into whose buffers twos are written right after the call."""
    wrong = 0
    for _ in range(10):
        values = buffer(offset)
        values[:] = 1
        result = step(weights) if running else None
        array = put(values)
        if not running:
            array.block_until_ready()
        values[:] = 2
        wrong += float(array[-1]) != 1
        jax.block_until_ready(result)
    return wrong


late = {
    (name, offset): num_wrong(put, offset, running=True)
    for name, put in (
        ("jnp.array(x)", jnp.array),
        ("jnp.array(x, copy=True)", lambda x: jnp.array(x, copy=True)),
        ("jnp.asarray(x.copy())", lambda x: jnp.asarray(x.copy())),
    )
    for offset in (0, 16)
}
for (name, offset), wrong in late.items():
    print(f"{name:24} beside a step, address 64 n + {offset:2}: {wrong:2} of 10 wrong")
shared = num_wrong(lambda x: jax.device_put(x, may_alias=False), 0, running=False)
print(f"device_put(x, may_alias=False), no step: {shared} of 10 wrong")
assert late["jnp.array(x)", 0] > 0
assert late["jnp.array(x, copy=True)", 0] > 0
assert late["jnp.asarray(x.copy())", 0] == late["jnp.asarray(x.copy())", 16] == 0
assert shared == 10
EOF
