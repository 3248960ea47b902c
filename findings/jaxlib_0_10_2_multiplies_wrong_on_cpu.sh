#!/usr/bin/env bash
# jaxlib 0.10.2 against 0.11.2 on a CPU (x86-64). Python 3.12 or later.
#
# One expects: jit of a mapped product of rows with a 3x3 matrix, squared and summed by row, is NumPy's result up to
#   rounding.
# What happens: with jaxlib 0.10.2 hundreds of 33,000 rows are wrong, without an error or a warning. With
#   XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type= none is wrong, and none with 0.11.2.
# Why it matters: 0.10.2 is the newest jaxlib that pip gives to Python 3.11. It is what a small network does with a batch
#   of samples of three features. Nothing but a comparison with NumPy shows it (jax-ml/jax#39103).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
cat > "$folder/rows.py" <<'EOF'
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np

rows = np.random.default_rng(0).standard_normal((33_000, 3)).astype(np.float32)
weights = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
by_row = jax.jit(jax.vmap(lambda row: jnp.sum((jnp.asarray(weights) @ row) ** 2)))
wanted = ((rows.astype(np.float64) @ weights.T) ** 2).sum(-1)
wrong = int((~np.isclose(np.asarray(by_row(rows)), wanted, rtol=1e-3, atol=1e-4)).sum())
print(f"jaxlib {jax.lib.__version__} XLA_FLAGS={os.environ.get('XLA_FLAGS', '')}: {wrong} of {len(rows)} rows are wrong")
assert (wrong > 0) == (sys.argv[1] == "wrong")
EOF
export JAX_PLATFORMS=cpu
"$folder/venv/bin/pip" install --quiet --no-compile jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$folder/venv/bin/python" "$folder/rows.py" wrong
XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type= "$folder/venv/bin/python" "$folder/rows.py" right
"$folder/venv/bin/pip" install --quiet --no-compile jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
"$folder/venv/bin/python" "$folder/rows.py" right
