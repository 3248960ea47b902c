#!/usr/bin/env bash
# Minari 0.5.4, Gymnasium 1.3.0. Python 3.10 or later.
#
# One expects: observations are read back as they were written: arrays of a Box in an HDF5 file.
# What happens: uint8 observations of a Box 0..255 with 32 or more rows and columns count as images and are stored as
#   JPEG, which is lossy, by default (jpeg_encoding=True). The numbers of colors 0..15 of a 64x64 frame come back as
#   others in most of the cells. int8, and Boxes with other bounds, stay exact.
# Why it matters: in frames of ARC-AGI-3 and of other games on grids a number is an id, not a brightness: 3 for 4 is
#   another object. An offline data set is damaged when it is written, without a word. Pass jpeg_encoding=False.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile 'minari[hdf5]==0.5.4' gymnasium==1.3.0 numpy==2.2.6 pillow==11.3.0
mkdir "$folder/sets"
MINARI_DATASETS_PATH="$folder/sets" "$folder/venv/bin/python" -W ignore - <<'EOF'
import gymnasium
import minari
import numpy as np
from minari.data_collector import EpisodeBuffer

frames = np.random.default_rng(0).integers(0, 16, (5, 64, 64), np.uint8)


def changed(name, frames, high, **options):
    """The part of the cells that comes back as another number."""
    count = len(frames) - 1
    episode = EpisodeBuffer(
        id=0,
        observations=frames,
        actions=np.zeros(count, np.int64),
        rewards=[0.0] * count,
        terminations=[False] * count,
        truncations=[False] * count,
    )
    box = gymnasium.spaces.Box(0, high, frames.shape[1:], frames.dtype)
    actions = gymnasium.spaces.Discrete(2)
    minari.create_dataset_from_buffers(name, [episode], action_space=actions, observation_space=box, **options)
    back = next(minari.load_dataset(name).iterate_episodes()).observations
    return float((np.asarray(back) != frames).mean())


frames = frames.repeat(4, 1).repeat(4, 2)[:, :64, :64]  # cells of 4x4, as a game draws them
seen = {
    "uint8 0..255": changed("frames/a-v0", frames, 255),
    "uint8 0..255, jpeg_encoding=False": changed("frames/b-v0", frames, 255, jpeg_encoding=False),
    "uint8 0..15": changed("frames/c-v0", frames, 15),
    "int8 0..15": changed("frames/d-v0", frames.astype(np.int8), 15),
}
for name, part in seen.items():
    print(f"{name:36} {100 * part:4.1f} % of the numbers changed")
assert seen.pop("uint8 0..255") > 0.1
assert set(seen.values()) == {0.0}
EOF
