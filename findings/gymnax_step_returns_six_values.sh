#!/usr/bin/env bash
# gymnax 1.0.1 with rejax 0.1.3, JAX 0.11.2 on a CPU. Python 3.12 or later.
#
# One expects: env.step returns (observation, state, reward, done, info), as in every gymnax before 1.0 and as its
#   clients unpack it, and pip keeps rejax 0.1.3 from a gymnax that it cannot use.
# What happens: step returns six values, with terminated and truncated apart. pip installs both without a conflict, and
#   rejax's PPO fails in its first step: "too many values to unpack (expected 5)".
# Why it matters: an unpinned install of a client of gymnax is broken today, and the message names no package. Pin
#   gymnax below 1.0 for such clients, or wrap the environment.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile gymnax==1.0.1 rejax==0.1.3 jax==0.11.2 jaxlib==0.11.2
"$folder/venv/bin/pip" check
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - <<'EOF'
import gymnax
import jax
from rejax import PPO

key = jax.random.key(0)
env, params = gymnax.make("CartPole-v1")
_, state = env.reset(key, params)
values = env.step(key, state, 0, params)
print("gymnax: step returns", len(values), "values")
try:
    PPO.create(env="CartPole-v1", total_timesteps=1024).train(key)
except ValueError as error:
    message = str(error)
    print("rejax:", message)
assert len(values) == 6
assert message == "too many values to unpack (expected 5)"
EOF
