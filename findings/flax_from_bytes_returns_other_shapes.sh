#!/usr/bin/env bash
# flax 0.12.12, JAX 0.11.2 on a CPU. Python 3.12 or later.
#
# One expects: flax.serialization.from_bytes(target, stored) checks shapes and dtypes against the target, as it checks
#   the names of the fields, and as its name "target" says.
# What happens: the arrays of the file come back whatever the target's shapes and dtypes are, without a word.
# Why it matters: a checkpoint of a network of another width, or a state of another canvas, loads "successfully". What
#   broadcasts or reshapes afterwards computes with the wrong numbers; the rest fails far from the load.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile flax==0.12.12 jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'EOF'
import jax
import numpy as np
from flax import serialization

stored = serialization.to_bytes({"kernel": np.arange(6, dtype=np.float32).reshape(2, 3)})
targets = {"as stored": (2, 3, np.float32), "transposed": (3, 2, np.float32), "small integers": (9, 9, np.int8)}
for name, (*shape, dtype) in targets.items():
    back = serialization.from_bytes({"kernel": np.zeros(shape, dtype)}, stored)["kernel"]
    print(f"target {name}: {np.dtype(dtype)}{shape} -> {back.dtype}{list(back.shape)}")
    assert (back.shape, back.dtype) == ((2, 3), np.float32)
try:
    serialization.from_bytes({"weights": np.zeros((2, 3))}, stored)
except ValueError as error:
    print("another name is refused:", str(error).splitlines()[0][:80])
else:
    raise SystemExit("another name is accepted as well")
EOF
