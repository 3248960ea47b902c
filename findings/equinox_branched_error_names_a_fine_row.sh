#!/usr/bin/env bash
# Equinox 0.13.8, JAX 0.11.2 on a CPU. Python 3.12 or later.
#
# One expects: under vmap, eqx.branched_error_if raises the message of a row whose check fails.
# What happens: it raises the message with the largest index among all rows, also of those whose check passes: the
#   maximum of the index and the "any" of the predicate are taken apart.
# Why it matters: in a batch of environments the error names a rule that nobody broke. Give fine rows the index 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile equinox==0.13.8 jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'EOF' 2>/dev/null
import equinox as eqx
import jax
import jax.numpy as jnp

MESSAGES = ["MESSAGE-0", "MESSAGE-1", "MESSAGE-2"]


@eqx.filter_jit
def message_of(is_wrong, index):
    check = lambda one, which: eqx.branched_error_if(jnp.zeros(()), one, which, MESSAGES)
    return jax.vmap(check)(is_wrong, index)


def raised(is_wrong, index):
    try:
        jax.block_until_ready(message_of(jnp.array(is_wrong), jnp.array(index)))
    except Exception as error:
        return [one for one in MESSAGES if one in str(error)]


is_wrong = [True, False, False]
seen = raised(is_wrong, [0, 1, 2]), raised(is_wrong, [1, 0, 0])
print("row 0 is wrong, indices of the rows 0 1 2: raised", seen[0])
print("row 0 is wrong, indices of the rows 1 0 0: raised", seen[1])
assert seen == (["MESSAGE-2"], ["MESSAGE-1"])
EOF
