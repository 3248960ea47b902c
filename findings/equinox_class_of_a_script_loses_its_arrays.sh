#!/usr/bin/env bash
# Equinox 0.13.8, cloudpickle 3.1.3, JAX 0.11.2 on a CPU. Python 3.12 or later.
#
# One expects: a module whose class is written in a script or notebook works in a worker of joblib, ray, dask or
#   submitit, which get it by cloudpickle.
# What happens: cloudpickle sends such a class by value, and the copy in the worker is not registered with JAX's trees. A
#   plain call works, but jax.tree.leaves(module) is the module itself or nothing, so gradients and filter_jit see no
#   arrays. A module of an importable class, such as eqx.nn.Linear, arrives whole.
# Why it matters: hyperparameter sweeps start from notebooks. Training in the worker fails with an AttributeError far
#   from the cause, or updates nothing. Put the class into a file that is imported.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile equinox==0.13.8 cloudpickle==3.1.3 jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
cd "$folder"
cat > script.py <<'EOF'
import cloudpickle
import equinox as eqx
import jax
import jax.numpy as jnp


class Policy(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return self.weight * x


key = jax.random.key(0)
with open("modules", "wb") as file:
    cloudpickle.dump({"script": Policy(jnp.ones(3)), "imported": eqx.nn.Linear(2, 2, key=key)}, file)
EOF
cat > worker.py <<'EOF'
import pickle

import equinox as eqx
import jax

with open("modules", "rb") as file:
    modules = pickle.load(file)
for name, module in modules.items():
    arrays = [leaf for leaf in jax.tree.leaves(module) if eqx.is_array(leaf)]
    print(f"{name}: {len(arrays)} arrays in the worker")
print("a plain call:", modules["script"](2.0))
try:
    print(eqx.filter_jit(modules["script"])(2.0))
except AttributeError as error:
    message = str(error)
    print("filter_jit: AttributeError:", message)
count = lambda name: sum(map(eqx.is_array, jax.tree.leaves(modules[name])))
assert (count("script"), count("imported")) == (0, 2)
assert message
EOF
export JAX_PLATFORMS=cpu
"$folder/venv/bin/python" script.py
"$folder/venv/bin/python" worker.py
