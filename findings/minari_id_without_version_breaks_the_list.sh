#!/usr/bin/env bash
# Minari 0.5.4, Gymnasium 1.3.0. Python 3.10 or later.
#
# One expects: an id of a data set without a version, which the documentation writes as optional, "(-v[version])", is
#   taken as version 0 or refused; a refused one leaves nothing.
# What happens: create_dataset_from_buffers("my/painter", ...) ends in a bare TypeError of int(), after it has made the
#   folder of the set. From then on every minari.list_local_datasets(), for all other sets too, ends in the same
#   TypeError, until somebody removes the folder by hand.
# Why it matters: one mistyped id takes away the list of all data sets on the machine, and the message names neither the
#   id nor the folder.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile 'minari[hdf5]==0.5.4' gymnasium==1.3.0 numpy==2.2.6 pillow==11.3.0
mkdir "$folder/sets"
MINARI_DATASETS_PATH="$folder/sets" "$folder/venv/bin/python" -W ignore - <<'EOF'
import os
from pathlib import Path

import gymnasium
import minari
import numpy as np
from minari.data_collector import EpisodeBuffer


def create(name):
    episode = EpisodeBuffer(
        id=0,
        observations=np.zeros((3, 4), np.float32),
        actions=np.array([0, 1]),
        rewards=[0.0, 1.0],
        terminations=[False, True],
        truncations=[False, False],
    )
    spaces = gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    minari.create_dataset_from_buffers(name, [episode], action_space=spaces[0], observation_space=spaces[1])


def error_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


create("my/right-v0")
print("sets:", list(minari.list_local_datasets()))
made = error_of(lambda: create("my/painter"))
listed = error_of(minari.list_local_datasets)
left = (Path(os.environ["MINARI_DATASETS_PATH"]) / "my" / "painter").exists()
print("create my/painter:", made)
print("list of all sets afterwards:", listed)
print("folder is left:", left)
assert made.startswith("TypeError: int()") and listed.startswith("TypeError: int()") and left
EOF
