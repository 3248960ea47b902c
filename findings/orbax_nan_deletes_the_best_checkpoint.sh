#!/usr/bin/env bash
# orbax-checkpoint 0.12.8, JAX 0.11.2 on a CPU. Python 3.12 or later.
#
# One expects: CheckpointManager with best_fn and best_mode="max" keeps the checkpoints with the highest metrics, and a
#   metric that is NaN counts as the worst, or is refused.
# What happens: Python's sort is given the NaN, which is neither more nor less than any number. With max_to_keep=2 and
#   the metrics 0.9, NaN, 0.1, 0.2 the checkpoint of 0.9 is deleted, and best_step() names the NaN, then 0.1, then 0.2.
#   With the NaN first the same metrics keep 0.9.
# Why it matters: one update that diverges, or one evaluation without an episode, deletes the best weights of the run,
#   which cannot be brought back. Write -inf in place of NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile orbax-checkpoint==0.12.8 jax==0.11.2 jaxlib==0.11.2 numpy==2.4.6
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - 2>/dev/null <<'EOF'
from math import nan
from pathlib import Path

import numpy as np
import orbax.checkpoint as ocp

OPTIONS = ocp.CheckpointManagerOptions(max_to_keep=2, best_fn=lambda metrics: metrics["score"], best_mode="max")


def kept(name, scores):
    """The scores whose checkpoints are left, and the one that counts as the best."""
    with ocp.CheckpointManager(Path(name).absolute(), options=OPTIONS) as manager:
        for step, score in enumerate(scores):
            manager.save(step, args=ocp.args.StandardSave({"w": np.zeros(2)}), metrics={"score": score})
            manager.wait_until_finished()
        return [scores[step] for step in manager.all_steps()], scores[manager.best_step()]


seen = {}
for name, scores in (("without", [0.9, 0.1, 0.2]), ("second", [0.9, nan, 0.1, 0.2]), ("first", [nan, 0.9, 0.1, 0.2])):
    seen[name] = kept(name, scores)
    print(f"scores {scores}: kept {seen[name][0]}, best {seen[name][1]}")
assert seen["without"] == ([0.9, 0.2], 0.9)
assert seen["second"] == ([0.1, 0.2], 0.2)
assert seen["first"] == ([0.9, 0.2], 0.9)
EOF
