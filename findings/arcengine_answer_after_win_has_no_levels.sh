#!/usr/bin/env bash
# arcengine 0.9.3. Python 3.12 or later.
#
# One expects: an action after the game is won is refused, or answered by the last frame, with the levels completed.
# What happens: the answer has no frame, levels_completed 0 and win_levels 0, as the engine fills fields by their former
#   names, which pydantic drops. With raw=True it is a FrameData, where every other answer is a FrameDataRaw.
# Why it matters: an agent that plays on, or a loop that reads its score from the last answer, sees a won game as one
#   without a single level, and frame[-1] is an IndexError. Keep the answer whose state is WIN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile arcengine==0.9.3
"$folder/venv/bin/python" - <<'EOF'
from arcengine import ActionInput, ARCBaseGame, Camera, GameAction, Level


class OneStepLevels(ARCBaseGame):
    """Two levels; any action solves one."""

    def __init__(self):
        levels = [Level(name=str(index), grid_size=(8, 8)) for index in range(2)]
        super().__init__("steps", levels, Camera(), available_actions=[1])

    def step(self):
        if self.action.id == GameAction.ACTION1:
            self.next_level()
        self.complete_action()


game = OneStepLevels()
action = ActionInput(id=GameAction.ACTION1)
game.perform_action(ActionInput(id=GameAction.RESET), raw=True)
answers = [game.perform_action(action, raw=True) for _ in range(3)]
for name, answer in zip(("level 1", "level 2", "after WIN"), answers):
    kind = type(answer).__name__
    print(f"{name}: {kind} {answer.state.name}, {len(answer.frame)} frames, ", end="")
    print(f"{answer.levels_completed} of {answer.win_levels} levels")
won, after = answers[1:]
assert (won.state.name, won.levels_completed, won.win_levels) == ("WIN", 2, 2)
assert (after.state.name, after.levels_completed, after.win_levels, len(after.frame)) == ("WIN", 0, 0, 0)
assert (type(won).__name__, type(after).__name__) == ("FrameDataRaw", "FrameData")
EOF
