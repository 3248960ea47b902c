"""Play the twins of arcengine, and keep what they showed: ``python tests/games/record_twins.py [PYTHON]``.

PYTHON is an interpreter (3.12 or later) with arcengine; by default it is the one that runs this. ``test_twins.py``
compares our engine with what is kept.
"""

import functools
import json
import subprocess
import sys
import tempfile
import zlib
from itertools import islice
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxarc.games
from jaxarc.games.engine import GameEnvironment, GameParams
from jaxarc.games.frames import play_frames
from jaxarc.games.level_solver import solve

sys.path.insert(0, str(Path(__file__).parent))
from streams import stream, told

KEPT = Path(__file__).parent / "twins.json"
TWINS = ("crates", "flood", "ice", "lamps", "order")
LENGTHS = {"short": (range(8), 400), "long": (range(100, 200), 1_000)}  # seeds of streams, actions of each
CHUNK = 100  # actions whose frames are in memory at once


def levels_of(game: jaxarc.games.GridGame) -> list[dict]:
    return [{"rows": level.rows, "budget": level.budget} for level in game.levels]


def solutions_of(name: str) -> list[list[tuple[int, int, int]]]:
    env, params = jaxarc.games.make(name)
    simple, width = env.game.simple_actions, env.game.shape[1]
    found = []
    for index, level in enumerate(env.game.levels):
        actions = solve(env, params.levels[0, index]).actions or ()
        found.append([told(action, simple, width, level.rows) for action in actions])
    return found


def our_digests(name: str, solutions: list, seeds: range, length: int) -> list[int]:
    """Return the checksum of each stream, as ``arcengine_twins.digest`` does."""
    env, params = jaxarc.games.make(name, max_steps=2**30)
    rows = [level.rows for level in env.game.levels]
    actions = sorted(env.game.actions)
    streams = [list(islice(stream(seed, rows, actions, solutions), length)) for seed in seeds]
    told = np.asarray(streams, np.int32).transpose(1, 2, 0)  # [S, 3, B]
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), len(seeds)), params)
    marks = [0] * len(seeds)
    for start in range(0, length, CHUNK):
        states, (frames, counts, facts) = _play(env, states, jnp.asarray(told[start : start + CHUNK]), params)
        frames, counts, facts = np.asarray(frames), np.asarray(counts), np.asarray(facts, np.uint8)
        for step, index in np.ndindex(counts.shape):
            mark = marks[index]
            for frame in frames[step, index][2 - counts[step, index] :]:
                mark = zlib.crc32(frame.tobytes(), mark)
            marks[index] = zlib.crc32(bytes([counts[step, index], *facts[step, index]]), mark)
    return marks


@functools.partial(jax.jit, static_argnums=0)
def _play(env: GameEnvironment, states, told, params: GameParams):
    def one(state, told):
        after, frames, count = play_frames(env, state, told, params)
        return after, (frames, count, jnp.stack([after.status, after.levels_completed]))

    return jax.lax.scan(lambda states, told: jax.vmap(one)(states, told.T), states, told)


def play_twin(python: str, name: str, solutions: list, seeds: range, length: int) -> dict:
    """Return the ``digests`` of the streams, and the ``seconds`` that they took."""
    game = jaxarc.games.game(name)
    job = {"game": name, "levels": levels_of(game), "actions": sorted(game.actions), "solutions": solutions}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps({**job, "seeds": list(seeds), "length": length}))
        command = [python, str(Path(__file__).parent / "arcengine_twins.py"), str(path)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(python: str = sys.executable, *names: str) -> None:
    for name in names or TWINS:
        solutions = solutions_of(name)
        marks = {kind: play_twin(python, name, solutions, *size)["digests"] for kind, size in LENGTHS.items()}
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        kept[name] = {"solutions": solutions, **marks}
        KEPT.write_text(json.dumps(kept, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
