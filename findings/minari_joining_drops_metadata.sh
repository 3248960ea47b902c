#!/usr/bin/env bash
# Minari 0.5.4, Gymnasium 1.3.0. Python 3.10 or later.
#
# One expects: minari.combine_datasets makes a set with the episodes of its parts, with what is known of them.
# What happens: the metadata of episodes (update_episode_metadata) and the description of the sets are not copied; the
#   joined episodes have an id and a number of steps.
# Why it matters: level, seed, expert or verdict of an episode stand there, as no other field of Minari takes them. After
#   a join nobody can tell which episode is of which task, unless the parts are kept.
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


def create(name, level):
    episode = EpisodeBuffer(
        id=0,
        observations=np.zeros((2, 4), np.float32),
        actions=np.array([0]),
        rewards=[1.0],
        terminations=[True],
        truncations=[False],
    )
    spaces = gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    made = minari.create_dataset_from_buffers(
        name, [episode], action_space=spaces[0], observation_space=spaces[1], description="levels"
    )
    made.storage.update_episode_metadata([{"level": level}], [0])
    return minari.load_dataset(name)


def known(data):
    episodes = data.storage.get_episode_metadata(range(data.total_episodes))
    return data.storage.metadata.get("description"), [sorted(set(one) - {"id", "total_steps"}) for one in episodes]


parts = [create("my/first-v0", 1), create("my/second-v0", 2)]
joined = minari.combine_datasets(parts, "my/both-v0")
print("parts: ", [known(part) for part in parts])
print("joined:", known(joined))
assert [known(part) for part in parts] == [("levels", [["level"]])] * 2
assert known(joined) == (None, [[], []])
EOF
