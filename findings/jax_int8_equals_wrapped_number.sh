#!/usr/bin/env bash
# JAX 0.11.2 on a CPU. Python 3.12 or later.
#
# One expects: int8(-1) == 255 is False and int8(44) == 300 is False, as in NumPy 2 and in Python.
# What happens: JAX converts the Python number to int8 first and wraps it, so that both are True, int8(5) < 128 is
#   False, and clip(int8(100), 0, 200) is -56. No error and no warning, not even with strict dtype promotion.
# Why it matters: grids of colors are int8 with -1 as padding. A mask of a color that does not exist, such as 255 as
#   "none", selects the padding; a bound of 128 or 200 selects nothing. NumPy code that is moved to JAX changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'EOF'
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_numpy_dtype_promotion", "strict")
values = np.array([-1, 5, 44, 100], np.int8)
grid = jnp.asarray(values)
seen = {
    "== 255": ((values == 255).tolist(), (grid == 255).tolist()),
    "== 300": ((values == 300).tolist(), (grid == 300).tolist()),
    "< 128": ((values < 128).tolist(), (grid < 128).tolist()),
    "clip 0..200": (np.clip(values, 0, 200).tolist(), jnp.clip(grid, 0, 200).tolist()),
}
print("int8", values.tolist())
for name, (by_numpy, by_jax) in seen.items():
    print(f"{name:12} NumPy {by_numpy}  JAX {by_jax}")
assert seen["== 255"] == ([False] * 4, [True, False, False, False])
assert seen["== 300"] == ([False] * 4, [False, False, True, False])
assert seen["< 128"] == ([True] * 4, [False] * 4)
assert seen["clip 0..200"] == ([0, 5, 44, 100], [-56] * 4)
EOF
