"""Rules of games once more, on grids of bools and cell by cell, as somebody would write them who never saw a mask.

A board is a dictionary: each layer a bool array ``[H, W]``, each counter a number, and as ``click`` the clicked cell or
None; it is changed in place. A rule returns whether the level is won and whether it is lost.
"""

import numpy as np

STEPS = {1: (-1, 0), 2: (1, 0), 3: (0, -1), 4: (0, 1)}


def place(grid):
    ((row, column),) = np.argwhere(grid)
    return int(row), int(column)


def put(grid, cell):
    grid[:] = False
    grid[cell] = True


def has(board, cell, *names):
    """Whether a layer has a cell; outside the level every wall has."""
    row, column = cell
    height, width = board["inside"].shape
    if not (0 <= row < height and 0 <= column < width and board["inside"][row, column]):
        return "wall" in names
    return any(name in board and board[name][row, column] for name in names)


def ahead(cell, number):
    step = STEPS.get(number, (0, 0))
    return cell[0] + step[0], cell[1] + step[1]


def walk(board, number, *solid, name="player"):
    cell = place(board[name])
    to = ahead(cell, number)
    if to != cell and not has(board, to, "wall", *solid):
        put(board[name], to)
    return place(board[name])


def fire(board, number):
    cell = walk(board, number, "fire")
    board["clock"] += 1
    if board["clock"] == 2:
        board["clock"] = 0
        for burning in np.argwhere(board["fire"]):
            for way in STEPS:
                to = ahead(burning, way)
                if not has(board, to, "wall"):
                    board["fire"][to] = True
    won = has(board, cell, "exit")
    return won, has(board, cell, "fire") and not won


def fog(board, number):
    return has(board, walk(board, number), "exit"), False


def gravity(board, number):
    if number == 5:
        board["is_up"] = 1 - board["is_up"]
    cell = walk(board, number)
    way = 1 if board["is_up"] else 2
    touched = [cell]
    while not has(board, ahead(cell, way), "wall"):
        cell = ahead(cell, way)
        touched.append(cell)
    put(board["player"], cell)
    lost = any(has(board, one, "spike") for one in touched)
    return not lost and any(has(board, one, "goal") for one in touched), lost


def keys(board, number):
    cell = walk(board, number, *(f"{color}_door" for color in ("red", "blue") if not board[color]))
    for color in ("red", "blue"):
        if has(board, cell, f"{color}_key"):
            board[f"{color}_key"][cell] = False
            board[color] += 1
        if has(board, cell, f"{color}_door"):
            board[f"{color}_door"][cell] = False
            board[color] -= 1
    return has(board, cell, "goal"), False


def paint(board, number):
    cell = walk(board, number)
    if number == 5:
        board["pen"] = 1 - board["pen"]
    if board["pen"]:
        board["paint"][cell] = True
    return np.array_equal(board["paint"], board["mark"]), False


def path(board, number):
    before = place(board["player"])
    if walk(board, number, "trail") != before:
        board["trail"][before] = True
    return bool((board["trail"] | board["player"] | board["wall"] | ~board["inside"]).all()), False


def patrol(board, number):
    ways = {"up": 1, "down": 2, "left": 3, "right": 4}
    turned = {"up": "down", "down": "up", "left": "right", "right": "left"}
    start = place(board["player"])
    cell = walk(board, number)
    lost = False
    guards = [(name, tuple(map(int, at))) for name in ways for at in np.argwhere(board[name])]
    for name in ways:
        board[name][:] = False
    for name, at in guards:
        to = ahead(at, ways[name])
        if has(board, to, "wall"):
            board[turned[name]][at] = True
            lost |= at == cell
        else:
            board[name][to] = True
            lost |= to == cell or (to == start and at == cell)
    return has(board, cell, "goal") and not lost, lost


def plates(board, number):
    is_open = not (board["plate"] & ~board["crate"] & ~board["player"]).any()
    solid = [] if is_open else ["gate"]
    to = ahead(place(board["player"]), number)
    if number in STEPS and has(board, to, "crate"):
        behind = ahead(to, number)
        if not has(board, behind, "wall", "crate", *solid):
            board["crate"][to] = False
            board["crate"][behind] = True
    return has(board, walk(board, number, "crate", *solid), "goal"), False


def portals(board, number):
    before = place(board["player"])
    cell = walk(board, number)
    for color in ("blue", "orange", "purple"):
        if cell != before and has(board, cell, color):
            other = board[color].copy()
            other[cell] = False
            put(board["player"], place(other))
            break
    return has(board, place(board["player"]), "goal"), False


def torus(board, number):
    height, width = int(board["inside"].any(1).sum()), int(board["inside"].any(0).sum())
    row, column = ahead(place(board["player"]), number)
    to = row % height, column % width
    if not has(board, to, "wall"):
        put(board["player"], to)
    board["gem"][place(board["player"])] = False
    return not board["gem"].any(), False


def twins(board, number):
    cell = walk(board, number)
    other = walk(board, {3: 4, 4: 3}.get(number, number), name="twin")
    return has(board, cell, "home") and has(board, other, "twin_home"), False


def bridges(board, number):
    click, at = board["click"], place(board["player"])
    beside = click is not None and abs(click[0] - at[0]) + abs(click[1] - at[1]) == 1
    if beside and board["water"][click] and board["planks"]:
        board["planks"] -= 1
        board["water"][click] = False
        board["bridge"][click] = True
    cell = walk(board, number, "water")
    if has(board, cell, "pile"):
        board["pile"][cell] = False
        board["planks"] += 1
    return has(board, cell, "goal"), False


def mirrors(board, number):
    kinds = ("slash", "backslash")
    to = ahead(place(board["player"]), number)
    for kind in kinds:
        if number in STEPS and has(board, to, kind):
            behind = ahead(to, number)
            if not has(board, behind, "wall", "lamp", *kinds):
                board[kind][to] = False
                board[kind][behind] = True
            break
    cell = walk(board, number, "lamp", *kinds)
    for way in STEPS if number == 5 else ():
        to = ahead(cell, way)
        if has(board, to, *kinds):
            for kind in kinds:
                board[kind][to] = not board[kind][to]
    at, way, dark = place(board["lamp"]), 4, set(map(tuple, np.argwhere(board["target"]).tolist()))
    while not has(board, at := ahead(at, way), "wall", "lamp"):
        dark.discard(at)
        if has(board, at, "slash"):
            way = {4: 1, 1: 4, 3: 2, 2: 3}[way]
        elif has(board, at, "backslash"):
            way = {4: 2, 2: 4, 3: 1, 1: 3}[way]
    return not dark, False


def pipes(board, number):
    pipe, hubs = board["pipe"], [tuple(map(int, at)) for at in np.argwhere(board["hub"])]
    for row, column in hubs:
        click = board["click"]
        if click is not None and abs(row - click[0]) < 2 and abs(column - click[1]) < 2:
            block = pipe[row - 1 : row + 2, column - 1 : column + 2]
            block[:] = np.rot90(block, -1)
    board["wet"][:] = board["source"]
    todo = [place(board["source"])]
    while todo:
        for way in STEPS:
            to = ahead(todo[-1], way)
            if not has(board, to, "wall") and pipe[to] and not board["wet"][to]:
                board["wet"][to] = True
                todo.insert(0, to)
        todo.pop()
    return not (board["drain"] & ~board["wet"]).any(), False


def shifts(board, number):
    colors = ("red", "blue", "yellow")
    for arrow, way in {"up": 1, "down": 2, "left": 3, "right": 4}.items():
        if board["click"] is not None and board[arrow][board["click"]]:
            line = [ahead(board["click"], way)]
            while not has(board, ahead(line[-1], way), "wall") and board["field"][ahead(line[-1], way)]:
                line.append(ahead(line[-1], way))
            for color in colors:
                values = [board[color][cell] for cell in line]
                for cell, value in zip(line, [values[-1], *values[:-1]], strict=True):
                    board[color][cell] = value
    wrong = [
        color
        for color in colors
        for row, column in np.argwhere(board["field"])
        if board[color][row, column] != board[color][row, column - 6]
    ]
    return not wrong, False


RULES = {one.__name__: one for one in (
    bridges, fire, fog, gravity, keys, mirrors, paint, path, patrol, pipes, plates, portals, shifts, torus, twins
)}  # fmt: skip
