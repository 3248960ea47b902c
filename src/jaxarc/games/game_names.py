"""The games of this package and of one's own, by name.

A config, such as that of a run, names a game that is known here, and runs no code. A file of Python is run only where a
user names it: on the command line, or by a call of :func:`load_game`, :func:`make` or the bridge.
"""

import difflib
import importlib
import re
from typing import Final, Literal

from jaxarc.errors import Caught
from jaxarc.files import user_path
from jaxarc.games.engine import DEFAULT_MAX_STEPS, GameEnvironment, GameParams
from jaxarc.games.game import GameError, GridGame
from jaxarc.lazy import line_of, load_code

NAMES: Final = ("bridges", "crates", "fire", "flood", "fog", "gravity", "ice", "keys", "lamps", "mirrors", "order",
                "paint", "path", "patrol", "pipes", "plates", "portals", "shifts", "torus", "twins")  # fmt: skip
PREFIX: Final = "games/"  # may stand before a name
_FILE: Final = re.compile(r"(.+\.py)(?::(.*))?", re.IGNORECASE)
_registered: dict[str, GridGame] = {}


def make(
    name: str, observation: Literal["cells", "frame"] = "cells", max_steps: int = DEFAULT_MAX_STEPS
) -> tuple[GameEnvironment, GameParams]:
    """Return the environment of a game and the params of its own levels.

    Raises:
        GameError: there is no such game or observation; see :func:`load_game`.
    """
    env = GameEnvironment(load_game(name), observation)
    return env, env.make_params(max_steps)


def all_names() -> tuple[str, ...]:
    """Return the names of all games: those of this package, then those that were registered."""
    return (*NAMES, *_registered)


def register_game(game: GridGame, *, replace: bool = False) -> None:
    """Make a game of one's own known by its name, to everything of this process that takes a game's name.

    Args:
        game: its name is not one of ``NAMES``.
        replace: whether another game that was registered under this name may be replaced.

    Raises:
        GameError: it is no game, or its name is taken.
    """
    if not isinstance(game, GridGame):
        raise GameError(f"a game is a jaxarc.games.GridGame, got {game!r:.60}")
    if game.name in NAMES:
        raise GameError(f"the name {game.name!r} is that of a game of this package; choose another")
    if _registered.get(game.name, game) is not game and not replace:
        raise GameError(f"the name {game.name!r} is taken; choose another, or pass replace=True")
    _registered[game.name] = game


def game(name: str) -> GridGame:
    """Return a game that is known by name, one of :func:`all_names`; no file is read.

    Raises:
        GameError: there is no such game.
    """
    short = str(name).removeprefix(PREFIX)
    if short in NAMES:
        return importlib.import_module(f"jaxarc.games.library.{short}").GAME
    if short not in _registered:
        near = difflib.get_close_matches(short, all_names(), 1, 0.75)
        known = f"did you mean {near[0]!r}" if near else f"there are {', '.join(all_names())}"
        raise GameError(
            f"there is no game {name!r:.80}; {known}; name one of your own file.py:NAME on the command line (--game of "
            "a run), or call jaxarc.games.register_game"
        )
    return _registered[short]


def load_game(name: str) -> GridGame:
    """Return a game by name, or by ``file.py:NAME``, which runs the file and registers its game.

    Modules that the file imports are looked for in its folder, too. NAME is that of the game or of its variable; a file
    with one game needs none.

    Raises:
        GameError: there is no such game or file, the file fails, or its game has the name of one of this package.
    """
    if not names_file(name):
        return game(name)
    path, wanted = _FILE.fullmatch(str(name)).groups()  # pyright: ignore[reportOptionalMemberAccess]  # it matched
    file = user_path(path)
    if not file.is_file() and path.startswith(PREFIX):
        file = user_path(path.removeprefix(PREFIX))
    if not file.is_file():
        raise GameError(f"there is no file {path!r}; give file.py:NAME of a game, or one of {', '.join(all_names())}")
    found: dict[str, GridGame] = {}
    with Caught() as caught:
        found = {key: value for key, value in vars(load_code(str(file))).items() if isinstance(value, GridGame)}
    if caught.error is not None:
        line = line_of(caught.error, file.resolve())
        where = f"{file}" if line is None else f"{file}, line {line}"
        raise GameError(f"{where} fails: {type(caught.error).__name__}: {caught.error}") from caught.error
    fitting = [one for key, one in found.items() if wanted in (None, key, one.name)]
    if not fitting or any(one is not fitting[0] for one in fitting):
        known = ", ".join(f"{path}:{key}" for key in found) or "none; a game is a jaxarc.games.GridGame of the module"
        raise GameError(f"{file} has {'several games' if fitting else f'no game {wanted or str()!r}'}; it has {known}")
    register_game(fitting[0], replace=True)
    return fitting[0]


def names_file(name: str) -> bool:
    """Whether a name is that of a file of Python with a game: ``file.py:NAME`` or ``file.py``."""
    return _FILE.fullmatch(str(name)) is not None


def full_name(name: str) -> str:
    """Return a name with its file's absolute path, for use in another working directory."""
    return re.sub(_FILE, lambda found: f"{user_path(found[1]).resolve()}:{load_game(name).name}", str(name))
