#!/usr/bin/env bash
# pgmpy 1.1.2. Python 3.11 or later.
#
# One expects: model.simulate(200, seed=0) returns the same table in every process.
# What happens: the values are the same, but the order of the columns follows PYTHONHASHSEED, which Python draws anew for
#   every process.
# Why it matters: simulate(...).to_numpy() with a graph in the order of model.nodes() is the usual input of causal
#   discovery. The columns then belong to other nodes, in each run to others, while the seed is fixed. Select columns
#   by name: table[list(model.nodes())].
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile pgmpy==1.1.2
cat > "$folder/simulate.py" <<'EOF'
import logging
import warnings

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

model = DiscreteBayesianNetwork([("rain", "wet"), ("sprinkler", "wet")])
wet = [[0.9, 0.2, 0.2, 0.1], [0.1, 0.8, 0.8, 0.9]]
model.add_cpds(
    TabularCPD("rain", 2, [[0.8], [0.2]]),
    TabularCPD("sprinkler", 2, [[0.5], [0.5]]),
    TabularCPD("wet", 2, wet, ["rain", "sprinkler"], [2, 2]),
)
table = model.simulate(200, seed=0, show_progress=False)
print(*table.columns, "|", *(int(table[name].astype(int).sum()) for name in sorted(table.columns)))
EOF
for seed in 0 1 2 3; do
    PYTHONHASHSEED=$seed "$folder/venv/bin/python" "$folder/simulate.py" 2>/dev/null | tee -a "$folder/seen"
done
echo "columns | ones of rain, sprinkler, wet: orders $(cut -d'|' -f1 "$folder/seen" | sort -u | wc -l), values $(cut -d'|' -f2 "$folder/seen" | sort -u | wc -l)"
[ "$(cut -d'|' -f1 "$folder/seen" | sort -u | wc -l)" -gt 1 ]
[ "$(cut -d'|' -f2 "$folder/seen" | sort -u | wc -l)" -eq 1 ]
