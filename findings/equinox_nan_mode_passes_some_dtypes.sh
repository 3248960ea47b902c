#!/usr/bin/env bash
# Equinox 0.13.8, JAX 0.11.2 on a CPU. Python 3.12 or later.
#
# One expects: with EQX_ON_ERROR=nan, by which eqx.error_if goes on instead of raising, a value whose check fails
#   becomes NaN or, without one, something as visible.
# What happens: float32 and float16 become NaN, integers become their largest number, bool becomes True, and bfloat16
#   comes back unchanged: the failed check leaves no trace.
# Why it matters: a check in mixed precision is silently off. And an action or an index of 2147483647 is clipped by the
#   next gather into the last row, a valid one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile equinox==0.13.8 jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
EQX_ON_ERROR=nan JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'EOF'
import equinox as eqx
import jax.numpy as jnp


@eqx.filter_jit
def checked(value, is_wrong):
    return eqx.error_if(value, is_wrong, "the value is wrong")


values = [jnp.float32(1), jnp.float16(1), jnp.bfloat16(1), jnp.int32(1), jnp.array(False)]
after = {str(value.dtype): checked(value, jnp.array(True)).item() for value in values}
print("after a failed check:", after)
assert after["float32"] != after["float32"]
assert after["float16"] != after["float16"]
assert after["bfloat16"] == 1.0
assert after["int32"] == 2**31 - 1
assert after["bool"] is True
row = jnp.arange(4)[checked(jnp.int32(1), jnp.array(True))]
print("row that the index then selects of 0..3:", row)
assert row == 3
EOF
