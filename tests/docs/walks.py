"""How many rooms one thought passes: the files and functions of five walks, as walks.txt has them.

    python tests/docs/walks.py                 all five, as they stand in walks.txt
    python tests/docs/walks.py step reset      some of them

A walk is one call under a profile hook. Functions are those of the package that ran, but for lambdas.
"""

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import jax

import jaxarc
from jaxarc.cli.main import main as command
from jaxarc.search import solve

IS_FUNCTION = 1  # the flag of a code object, which the body of a class or a module lacks


def walked(call: Callable[[], object]) -> tuple[list[str], int]:
    """Return the files that ran, and the number of functions."""
    root = str(Path(jaxarc.__file__).parent) + os.sep
    ran: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_ours = code.co_filename.startswith(root) and not code.co_name.startswith("<")
        if event == "call" and is_ours and code.co_flags & IS_FUNCTION:
            ran.add((code.co_filename.removeprefix(root), code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted({file for file, _ in ran}), len(ran)


def told(name: str, files: list[str], functions: int) -> str:
    """Write a walk as walks.txt has it, a line for each folder."""
    lines = [f"{name}: {len(files)} files, {functions} functions"]
    for folder, inside in itertools.groupby(files, os.path.dirname):
        lines.append(f"  {folder + '/' if folder else '':12} {' '.join(Path(file).stem for file in inside)}")
    return "\n".join(lines)


def step() -> Callable[[], object]:
    """A step of a batch that resets itself, while it is traced and lowered."""
    env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox", invalid_action_policy="noop")
    env = jaxarc.wrappers.AutoReset(env)
    keys = jax.random.split(jax.random.key(0), 4)
    states, _ = jax.vmap(env.reset, (0, None))(keys, params)
    actions = jax.vmap(env.action_space(params).sample)(keys)
    jax.clear_caches()
    take = lambda states, actions: jax.vmap(env.step, (0, 0, None))(states, actions, params)
    return lambda: jax.jit(take).lower(states, actions)


def reset() -> Callable[[], object]:
    """A reset of a batch, in the same way."""
    env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox")
    keys = jax.random.split(jax.random.key(0), 4)
    jax.clear_caches()
    return lambda: jax.jit(lambda keys: jax.vmap(env.reset, (0, None))(keys, params)).lower(keys)


def search() -> Callable[[], object]:
    """The search of one task of ARC."""
    task = jaxarc.load_tasks("arc-agi-1/training")["d4a91cb9"]
    look = lambda: solve(task.train, task.test[0][0])
    look()
    return look


def train() -> Callable[[], object]:
    """A short training, from the command to its end."""
    return _short_training(Path(tempfile.mkdtemp()))


def replay() -> Callable[[], object]:
    """The page of what that training learned."""
    folder = Path(tempfile.mkdtemp())
    learn = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import walks, pathlib; "
    code = f"{learn}walks._short_training(pathlib.Path({str(folder)!r}))()"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return lambda: _run("replay", str(next(folder.iterdir())), "--output", str(folder / "page.html"))


def _short_training(folder: Path) -> Callable[[], object]:
    steps = "training.total_steps=8192"
    return lambda: _run("train", "experiment=small_grids", steps, f"logging.run_root={folder}")


def _run(*arguments: str) -> None:
    sys.argv = ["jaxarc", *arguments]
    with contextlib.suppress(SystemExit):
        command()


WALKS = {one.__name__: one for one in (step, reset, search, train, replay)}

if __name__ == "__main__":
    names = sys.argv[1:] or list(WALKS)
    if len(names) > 1:  # each in a process of its own, so that none finds what another one has done
        sys.exit(max(subprocess.run([sys.executable, __file__, name]).returncode for name in names))
    walk = WALKS[names[0]]()
    terminal = os.dup(1)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    found = walked(walk)
    sys.stdout.flush()
    os.dup2(terminal, 1)
    print(told(names[0], *found))
