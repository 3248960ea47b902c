#!/usr/bin/env bash
# CausalDisco 0.2.4. Python 3.11 or later.
#
# One expects: var_sortability of standardized data is 0.5, as all variances are equal and ties count one half.
# What happens: the default tolerance is 0.0, and variances that should be 1 differ in the last digit. So the result is
#   decided by rounding: with two variables it may be 0 or 1, and the same samples in reverse order give another value.
#   With tol=1e-9 it is 0.5 for all.
# Why it matters: var_sortability is reported to show that a benchmark cannot be solved by sorting variances, and
#   standardizing is the cure. A table may then say "0.98" or "0.0" of data in which nothing can be sorted.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile CausalDisco==0.2.4 numpy==2.5.5 scikit-learn==1.9.1 scipy==1.18.1
"$folder/venv/bin/python" -W ignore - <<'EOF'
import numpy as np
from CausalDisco.analytics import var_sortability


def standardized(num_variables, seed):
    """Samples of a linear model with a random acyclic graph, each column with mean 0 and variance 1."""
    draws = np.random.default_rng(seed)
    weights = np.triu(draws.uniform(0.5, 2, (num_variables, num_variables)), 1)
    samples = np.zeros((1000, num_variables))
    for variable in range(num_variables):
        samples[:, variable] = samples @ weights[:, variable] + draws.standard_normal(1000)
    return (samples - samples.mean(0)) / samples.std(0), weights


seen, reversed_rows, tolerant = [], [], []
for num_variables, seed in ((2, 0), (2, 1), (2, 2), (5, 0), (5, 1), (10, 0), (10, 1), (10, 2)):
    samples, weights = standardized(num_variables, seed)
    seen.append(float(var_sortability(samples, weights)))
    reversed_rows.append(float(var_sortability(samples[::-1], weights)))
    tolerant.append(float(var_sortability(samples, weights, tol=1e-9)))
    print(f"{num_variables:2} variables: {seen[-1]:.2f}, rows reversed {reversed_rows[-1]:.2f}, tol=1e-9 {tolerant[-1]}")
assert tolerant == [0.5] * len(tolerant)
assert sum(abs(value - 0.5) > 0.05 for value in seen) >= 3
assert seen != reversed_rows
EOF
