"""How every test runs: on the CPU, without display or user files, with strict promotion and reproducible examples."""

import atexit
import collections
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
from slow_list import list_anew, names_of, read_list

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
_LAST = ("cli/test_train_command.py", "campaign", "examples", "docs", "cli", "benchmarks")


def pytest_addoption(parser):
    parser.addoption(
        "--nightly-part", metavar="K/N", help="count the part K of 0 .. N - 1 of the nightly tests as not nightly"
    )
    parser.addoption(
        "--write-slow",
        metavar="SECONDS",
        type=float,
        help="write into slow_tests.txt which tests took so long; what is nightly and its exceptions stay",
    )


_seconds: collections.Counter[str] = collections.Counter()  # of each test that ran, from its folder on


def pytest_runtest_logreport(report):
    _seconds[report.nodeid.removeprefix("tests/")] += report.duration


def pytest_sessionfinish(session):
    limit = session.config.getoption("--write-slow")
    if limit is None or os.environ.get("PYTEST_XDIST_WORKER"):
        return
    path = pathlib.Path(__file__).parent / "slow_tests.txt"
    head, named = read_list(path)
    path.write_text("\n".join([*head, *list_anew(named, _seconds, limit), ""]))


def pytest_collection_modifyitems(config, items):
    """Mark what slow_tests.txt names, and sort files by folder; within a file the order stays."""
    root = pathlib.Path(__file__).parent
    _, named = read_list(root / "slow_tests.txt")
    nightly = []
    for item in items:
        file = item.path.relative_to(root)
        names = [name for name in names_of(f"{file.as_posix()}::{item.name}") if name in named]
        if names:
            item.add_marker(pytest.mark.slow)
        if names and named[names[-1]] == "nightly":  # the narrowest name decides
            nightly.append(item)
    if part := config.getoption("--nightly-part"):
        index, count = map(int, part.split("/"))
        del nightly[index % count :: count]
    for item in nightly:
        item.add_marker(pytest.mark.nightly)

    def rank(item):
        file = item.path.relative_to(root).as_posix()
        first, last = (
            next((place for place, start in enumerate(starts) if file.startswith(start)), len(starts))
            for starts in (_ORDER, _LAST)
        )
        return (first, 0) if last == len(_LAST) else (len(_ORDER) + 1, last)

    items.sort(key=rank)


@pytest.fixture(scope="module", autouse=True)
def _forget_compiled_programs():
    """Free what a file compiled: each program maps memory, and a process that maps too much of it is killed."""
    yield
    jax.clear_caches()
    gc.collect()
    gc.freeze()  # what is left stays to the end: the next collection, and Python's own, need not look at it again


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
