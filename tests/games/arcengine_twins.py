"""Five of the games written with arcengine's sprites, levels and camera; it needs arcengine and none of this package.

``python tests/games/arcengine_twins.py JOB`` plays the streams of a JSON file and prints a digest of each, of all
frames, states and numbers of completed levels, and how many seconds all of them took.
"""

import json
import sys
import time
import zlib
from itertools import islice
from pathlib import Path
from typing import ClassVar

from arcengine import ActionInput, ARCBaseGame, Camera, GameAction, Level, RenderableUserDisplay, Sprite
from streams import stream

STEPS = {1: (0, -1), 2: (0, 1), 3: (-1, 0), 4: (1, 0)}
STATES = {"NOT_FINISHED": 0, "WIN": 1, "GAME_OVER": 2}


class Bar(RenderableUserDisplay):
    """What is left of a budget, in the last row."""

    def __init__(self, game):
        self.game = game

    def render_interface(self, frame):
        budget = self.game.current_level.get_data("budget")
        if budget:
            lit = max(budget - self.game._action_count, 0) * 64 // budget
            frame[63, :lit] = 11
            frame[63, lit:] = 3
        return frame


class Twin(ARCBaseGame):
    letters: ClassVar[dict] = {}  # letter -> (name, layer, color) of each sprite
    available: ClassVar[list] = [1, 2, 3, 4]
    background = 4

    def __init__(self, levels):
        made = [
            Level(
                [
                    Sprite([[color]], name, x, y, layer, tags=[name])
                    for y, row in enumerate(level["rows"])
                    for x, letter in enumerate(row)
                    for name, layer, color in self.letters.get(letter, [])
                ],
                (len(level["rows"][0]), len(level["rows"])),
                {"budget": level["budget"]},
            )
            for level in levels
        ]
        camera = Camera(background=self.background, letter_box=5, interfaces=[Bar(self)])
        self.stack = []
        super().__init__("twin", made, camera, available_actions=self.available)

    def on_set_level(self, level):
        self.stack = []
        self.dress()

    def dress(self):
        """Give sprites the colors that depend on others."""

    def tagged(self, name):
        return self.current_level.get_sprites_by_tag(name)

    def at(self, x, y, name):
        return next((one for one in self.tagged(name) if (one.x, one.y) == (x, y)), None)

    def is_free(self, x, y, *names):
        width, height = self.current_level.grid_size
        return 0 <= x < width and 0 <= y < height and not any(self.at(x, y, name) for name in names)

    def step(self):
        number = self.action.id.value
        if number in self.available:
            self.play(number)
            self.dress()
        budget = self.current_level.get_data("budget")
        goes_on = not self._next_level and self._state.name == "NOT_FINISHED"
        if number and budget and goes_on and self._action_count >= budget:
            self.lose()
        self.complete_action()


class Crates(Twin):
    letters: ClassVar[dict] = {
        "#": [("wall", 0, 3)],
        "P": [("player", 3, 11)],
        "C": [("crate", 2, 12)],
        "G": [("goal", 1, 8)],
        "X": [("crate", 2, 12), ("goal", 1, 8)],
        "O": [("player", 3, 11), ("goal", 1, 8)],
    }
    available: ClassVar[list] = [1, 2, 3, 4, 7]

    def places(self):
        return [(one, one.x, one.y) for name in ("player", "crate") for one in self.tagged(name)]

    def play(self, number):
        before = self.places()
        if number == 7:
            for one, x, y in self.stack.pop() if self.stack else []:
                one.set_position(x, y)
        else:
            (player,) = self.tagged("player")
            dx, dy = STEPS[number]
            x, y = player.x + dx, player.y + dy
            crate = self.at(x, y, "crate")
            if crate and self.is_free(x + dx, y + dy, "wall", "crate"):
                crate.move(dx, dy)
            if self.is_free(x, y, "wall", "crate"):
                player.move(dx, dy)
            if before != self.places():
                self.stack = [*self.stack, before][-16:]
        goals = {(one.x, one.y) for one in self.tagged("goal")}
        if goals == {(one.x, one.y) for one in self.tagged("crate")} and number != 7:
            self.next_level()

    def dress(self):
        for crate in self.tagged("crate"):
            crate.pixels[:] = 14 if self.at(crate.x, crate.y, "goal") else 12


class Ice(Twin):
    letters: ClassVar[dict] = {
        "#": [("rock", 0, 10)],
        "O": [("pit", 1, 9)],
        "G": [("goal", 2, 8)],
        "P": [("player", 3, 12)],
    }

    def play(self, number):
        (player,) = self.tagged("player")
        dx, dy = STEPS[number]
        fell = False
        while self.is_free(player.x + dx, player.y + dy, "rock"):
            player.move(dx, dy)
            fell = fell or self.at(player.x, player.y, "pit") is not None
        if self.at(player.x, player.y, "goal"):
            self.next_level()
        elif fell:
            self.lose()


class Lamps(Twin):
    letters: ClassVar[dict] = {"L": [("lamp", 0, 13)], "X": [("lamp", 0, 13), ("on", 1, 11)]}
    available: ClassVar[list] = [6]
    background = 3

    def play(self, number):
        place = self.camera.display_to_grid(self.action.data["x"], self.action.data["y"])
        if place is None:
            return
        x, y = place
        if self.at(x, y, "lamp"):
            for dx, dy in [(0, 0), *STEPS.values()]:
                self.switch(x + dx, y + dy)
        if not self.tagged("on"):
            self.next_level()

    def switch(self, x, y):
        on = self.at(x, y, "on")
        if on:
            self.current_level.remove_sprite(on)
        elif self.at(x, y, "lamp"):
            self.current_level.add_sprite(Sprite([[11]], "on", x, y, 1, tags=["on"]))


class Order(Twin):
    letters: ClassVar[dict] = {
        "#": [("wall", 0, 3)],
        "1": [("token", 1, 8)],
        "2": [("token", 2, 11)],
        "3": [("token", 3, 14)],
        "4": [("token", 4, 9)],
        "P": [("player", 5, 1)],
    }

    def play(self, number):
        (player,) = self.tagged("player")
        dx, dy = STEPS[number]
        if self.is_free(player.x + dx, player.y + dy, "wall"):
            player.move(dx, dy)
        token = self.at(player.x, player.y, "token")
        if token:
            first = min(one.layer for one in self.tagged("token"))
            self.current_level.remove_sprite(token)
            if token.layer > first:
                self.lose()
            elif not self.tagged("token"):
                self.next_level()


class Flood(Twin):
    colors: ClassVar[dict] = {"r": 8, "y": 11, "g": 14, "b": 9}
    letters: ClassVar[dict] = {letter: [("cell", 0, color)] for letter, color in colors.items()}
    available: ClassVar[list] = [6]

    def play(self, number):
        place = self.camera.display_to_grid(self.action.data["x"], self.action.data["y"])
        if place is None:
            return
        cells = {(one.x, one.y): one for one in self.tagged("cell")}
        old, new = cells[0, 0].pixels[0, 0], cells[place].pixels[0, 0]
        if old != new:
            todo = [(0, 0)]
            while todo:
                x, y = todo.pop()
                if (x, y) in cells and cells[x, y].pixels[0, 0] == old:
                    cells[x, y].pixels[:] = new
                    todo += [(x + dx, y + dy) for dx, dy in STEPS.values()]
        if len({int(one.pixels[0, 0]) for one in cells.values()}) == 1:
            self.next_level()


TWINS = {"crates": Crates, "ice": Ice, "lamps": Lamps, "order": Order, "flood": Flood}


def digest(twin: Twin, actions) -> int:
    """Return the checksum of everything that one stream shows."""
    mark = 0
    twin.perform_action(ActionInput(id=GameAction.RESET), raw=True)
    for number, x, y in actions:
        data = {"x": x, "y": y} if number == 6 else {}
        result = twin.perform_action(ActionInput(id=GameAction.from_id(number), data=data), raw=True)
        for frame in result.frame:
            mark = zlib.crc32(frame.tobytes(), mark)
        mark = zlib.crc32(bytes([len(result.frame), STATES[result.state.name], twin._score]), mark)
    return mark


def main(path: str) -> None:
    job = json.loads(Path(path).read_text())
    found = []
    start = time.perf_counter()
    for seed in job["seeds"]:
        twin = TWINS[job["game"]](job["levels"])
        rows = [level["rows"] for level in job["levels"]]
        actions = stream(seed, rows, job["actions"], job["solutions"])
        found.append(digest(twin, islice(actions, job["length"])))
    print(json.dumps({"digests": found, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main(sys.argv[1])
