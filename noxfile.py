"""Run tests under other modes of JAX, on other Pythons and with other versions: ``nox --list`` shows the sessions.

``make modes`` runs all of them, ``make modes ARGS="-s x64 python-3.12"`` these two. The modes of JAX run in the
environment of ``make test``; each Python and each set of versions gets an environment of its own below ``.nox/``.
"""

import nox

nox.options.error_on_missing_interpreters = True

CORE = (
    "tests/golden",
    "tests/envs",
    "tests/wrappers",
    "tests/agents",
    "tests/experts",
    "tests/traces",
    "tests/surrogate",
    "tests/tasks",
    "tests/runs/test_training_loop.py",
    "tests/test_prng.py",
)
# Called operation by operation, a step takes half a second.
UNCOMPILED = (
    "tests/golden",
    "tests/envs/test_observations.py",
    "tests/wrappers/test_flat_actions.py",
    "tests/test_prng.py",
)
# Without errors of equinox in compiled functions: JAX's search for leaks itself fails at one within another.
UNCHECKED = (
    "tests/golden",
    "tests/envs/test_augmented_episodes.py",
    "tests/envs/test_action_masks.py",
    "tests/envs/test_observations.py",
    "tests/agents/test_updates.py",
    "tests/test_prng.py",
)
MODES = {
    "x64": ({"JAX_ENABLE_X64": "1"}, CORE),  # numbers are 64 bits wide unless the code says how wide
    "nans": ({"JAX_DEBUG_NANS": "1"}, CORE),  # NaN is an error
    "keys": ({"JAX_DEBUG_KEY_REUSE": "1"}, CORE),  # a key that is used twice is an error
    "leaks": ({"JAX_CHECK_TRACER_LEAKS": "1", "EQX_ON_ERROR": "off"}, UNCHECKED),
    "uncompiled": ({"JAX_DISABLE_JIT": "1"}, UNCOMPILED),
}


def _add_mode(name: str, variables: dict[str, str], tests: tuple[str, ...]) -> None:
    @nox.session(name=name, python=False)
    def mode(session: nox.Session) -> None:
        session.run("python", "-m", "pytest", *(session.posargs or tests), env=variables)


for _name, (_variables, _tests) in MODES.items():
    _add_mode(_name, _variables, _tests)


@nox.session(name="python", python=["3.11", "3.13"], venv_backend="uv")
def other_python(session: nox.Session) -> None:
    """Run all tests with the locked versions on another Python."""
    session.install("--constraint", "constraints.txt", "--editable", ".[dev,gymnax]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11", venv_backend="uv")
def oldest(session: nox.Session) -> None:
    """Run all tests with the oldest version that pyproject.toml allows of each dependency."""
    session.install("--resolution", "lowest-direct", "--editable", ".[dev,gymnax]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.13", venv_backend="uv")
def newest(session: nox.Session) -> None:
    """Run all tests with the newest version of each dependency; those of gymnax, which holds JAX back, are skipped."""
    session.install("--upgrade", "--editable", ".[dev]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.13", venv_backend="uv")
def gymnax(session: nox.Session) -> None:
    """Run the tests of gymnax with the newest version of it, and of what it allows."""
    session.install("--upgrade", "--editable", ".[dev,gymnax]")
    session.run("python", "-m", "pytest", *(session.posargs or ("tests/adapters", "tests/examples/test_examples.py")))


@nox.session(python="3.11")
def sb3(session: nox.Session) -> None:
    """Run the tests of stable-baselines3, which brings PyTorch: too large for the environment of every change."""
    session.install("--constraint", "constraints.txt", "--editable", ".[dev,sb3]", "sb3-contrib>=2.7")
    session.run("python", "-m", "pytest", *(session.posargs or ("tests/adapters/test_to_sb3.py",)))


@nox.session(python="3.12")
def games(session: nox.Session) -> None:
    """Compare the games with twins written with arcengine, and try the bridge; both need Python 3.12."""
    session.install("--constraint", "constraints.txt", "--editable", ".[dev,gymnasium,arc3]", "arcengine==0.9.3")
    session.run("python", "-m", "pytest", *(session.posargs or ("tests/games",)))
