#!/usr/bin/env bash
# Gymnasium 1.3.0 against 1.4.0. Python 3.10 or later.
#
# One expects: the vector wrapper RecordEpisodeStatistics reports return 3 and length 3 for episodes of three steps with
#   reward 1, under both modes of autoreset.
# What happens: under AutoresetMode.SAME_STEP, 1.3.0 leaves out the first step of every episode but the first: 2 and 2.
#   Under NEXT_STEP it is right, and 1.4.0 is right under both.
# Why it matters: gymnax 1.0.1 holds Gymnasium below 1.4, so that 1.3.0 is what pip installs beside it. Returns of
#   environments that reset themselves in the same step, as batched ones on accelerators do, are too low.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
cat > "$folder/episodes.py" <<'EOF'
import sys

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics


class ThreeSteps(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        return np.full(1, self.count, np.float32), 1.0, self.count == 3, False, {}


def episodes(mode):
    """Return and length of the first three episodes."""
    envs = RecordEpisodeStatistics(SyncVectorEnv([ThreeSteps], autoreset_mode=mode))
    envs.reset(seed=0)
    found = []
    while len(found) < 3:
        info = envs.step(np.array([0]))[-1]
        if "episode" not in info:
            info = info.get("final_info", {})
        if "episode" in info:
            found.append((float(info["episode"]["r"][0]), int(info["episode"]["l"][0])))
    return found


right, wrong = [(3.0, 3)] * 3, [(3.0, 3), (2.0, 2), (2.0, 2)]
for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
    seen = episodes(mode)
    print(f"gymnasium {gymnasium.__version__}, {mode.name}: returns and lengths {seen}")
    is_bad = gymnasium.__version__ == "1.3.0" and mode == AutoresetMode.SAME_STEP
    assert seen == (wrong if is_bad else right)
EOF
for version in 1.3.0 1.4.0; do
    "$folder/venv/bin/pip" install --quiet --no-compile "gymnasium==$version" numpy==2.2.6
    "$folder/venv/bin/python" "$folder/episodes.py"
done
