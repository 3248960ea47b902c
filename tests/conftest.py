"""How every test runs: on the CPU, without display or user files, with strict promotion and reproducible examples."""

import atexit
import gc
import os
import pathlib
import shutil
import tempfile
from importlib.metadata import version

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")

# Tests compile a lot that then runs only a little: without LLVM's optimizations and with XLA's older code emitters the
# same program compiles in a quarter of the time; in one piece, not in 32 side by side, a tenth faster on a worker that
# has no core to spare. Child processes inherit all of it; `compiling.AS_USERS` undoes it but for the pieces.
if "xla_cpu_parallel_codegen_split_count" not in os.environ.get("XLA_FLAGS", ""):
    flags = ["--xla_cpu_parallel_codegen_split_count=1"]
    if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
        os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        flags.append("--xla_cpu_use_fusion_emitters=false")
    else:  # the older emitters are gone, and XLA aborts; below level 1 the newer round a product before they add to it
        flags += ["--xla_backend_optimization_level=1", "--xla_llvm_disable_expensive_passes=true"]
    os.environ["XLA_FLAGS"] = " ".join([*flags, os.environ.get("XLA_FLAGS", "")])
# Tracing takes longer than compiling, and a tenth of it looks up the line that each operation comes from.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

# The user's own data sets and cache stay out of the tests, and the tests out of them; child processes inherit it.
if "JAXARC_TEST_FOLDER" not in os.environ:
    os.environ["JAXARC_TEST_FOLDER"] = tempfile.mkdtemp(prefix="jaxarc-tests-")
    atexit.register(shutil.rmtree, os.environ["JAXARC_TEST_FOLDER"], ignore_errors=True)
os.environ["JAXARC_DATA"] = os.path.join(os.environ["JAXARC_TEST_FOLDER"], "data")
os.environ["JAXARC_CACHE"] = os.path.join(os.environ["JAXARC_TEST_FOLDER"], "cache")
os.environ.setdefault("JAXARC_NO_CACHE", "1")  # commands compile anew, unless a test names a folder for programs

import jax
import pytest
from hypothesis import settings

# Another tenth is Python's search for circles among the many objects of a trace.
gc.set_threshold(200_000, 20, 50)

# Mixed dtypes and broadcasting across ranks are errors in every test, so the library leans on neither.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# A first example compiles, so no deadline; in CI the same examples every time.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


# Folders and files in the order in which they run: what fails fastest first, and what starts processes last, of that
# the longest files first, so that at the end no worker waits long for the other.
_ORDER = (
    "test_architecture.py",
    "test_prng.py",
    "tasks",
    "envs",
    "wrappers",
    "golden",
    "io",
    "agents",
)
_LAST = ("examples", "docs", "campaign", "cli", "benchmarks")


def pytest_addoption(parser):
    parser.addoption(
        "--nightly-part", metavar="K/N", help="of the nightly tests, the part K of 0 .. N - 1, and no others"
    )


def pytest_collection_modifyitems(config, items):
    """Mark what slow_tests.txt names, and sort files by folder; within a file the order stays."""
    root = pathlib.Path(__file__).parent
    lines = (root / "slow_tests.txt").read_text(encoding="utf-8").splitlines()
    named = dict(line.partition(" ")[::2] for line in lines if line and not line.startswith("#"))
    for item in items:
        file = item.path.relative_to(root)
        of_file = {f"{file.as_posix()}::{name}" for name in (item.originalname, item.name)}
        names = {*of_file, *map(pathlib.Path.as_posix, (file, *file.parents))}
        for name in names & named.keys():
            item.add_marker(pytest.mark.slow)
            if named[name] == "nightly":
                item.add_marker(pytest.mark.nightly)

    def rank(item):
        folder = item.path.relative_to(root).parts[0]
        if folder in _LAST:
            return len(_ORDER) + 1 + _LAST.index(folder)
        return _ORDER.index(folder) if folder in _ORDER else len(_ORDER)

    items.sort(key=rank)
    if part := config.getoption("--nightly-part"):
        index, count = map(int, part.split("/"))
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        chosen = nightly[index % count :: count]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.fixture(scope="module", autouse=True)
def _forget_compiled_programs():
    """Free what a file compiled: each program maps memory, and a process that maps too much of it is killed."""
    yield
    jax.clear_caches()
    gc.collect()


@pytest.fixture
def nans_allowed():
    """For tests of what becomes of NaN, or of donation, which JAX leaves out where it looks for NaN after each call."""
    with jax.debug_nans(False):
        yield


@pytest.fixture
def standard_promotion():
    """JAX's usual dtype promotion, for tests that run Adam (optax takes a float to an int power) or gymnax's games."""
    with jax.numpy_dtype_promotion("standard"):
        yield
