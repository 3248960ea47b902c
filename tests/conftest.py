"""How every test runs: on the CPU, without display or user files, with strict promotion and reproducible examples."""

import atexit
import gc
import os
import pathlib
import shutil
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")

# Tests compile a lot that then runs only a little: without LLVM's optimizations and with XLA's older code emitters the
# same program compiles in a quarter of the time; in one piece, not in 32 side by side, a tenth faster on a worker that
# has no core to spare. Child processes inherit all three; `compiling.AS_USERS` undoes the first two.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
if "xla_cpu_use_fusion_emitters" not in os.environ.get("XLA_FLAGS", ""):
    flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}"

# The user's own data sets and cache stay out of the tests, and the tests out of them; child processes inherit it.
if "JAXARC_TEST_FOLDER" not in os.environ:
    os.environ["JAXARC_TEST_FOLDER"] = tempfile.mkdtemp(prefix="jaxarc-tests-")
    atexit.register(shutil.rmtree, os.environ["JAXARC_TEST_FOLDER"], ignore_errors=True)
os.environ["JAXARC_DATA"] = os.path.join(os.environ["JAXARC_TEST_FOLDER"], "data")
os.environ["JAXARC_CACHE"] = os.path.join(os.environ["JAXARC_TEST_FOLDER"], "cache")

import jax
import pytest
from hypothesis import settings

# Mixed dtypes and broadcasting across ranks are errors in every test, so the library leans on neither.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# A first example compiles, so no deadline; in CI the same examples every time.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


# Folders and files in the order in which they run: what fails fastest first, and what starts processes last.
_ORDER = (
    "test_architecture.py",
    "test_prng.py",
    "tasks",
    "datasets",
    "config",
    "envs",
    "wrappers",
    "golden",
    "io",
    "agents",
)
_LAST = ("examples", "campaign", "cli", "docs", "benchmarks")


# Files and folders that take longest beside what they add; `make test` leaves them to `make test-all`, which CI runs.
_SLOW = (
    "campaign",
    "examples",
    "benchmarks",
    "docs/test_docs_snippets.py",
    "parallel/test_processes.py",
    "parallel/test_invariance.py",
    "parallel/test_memory.py",
    "training/test_multihost_training.py",
    "training/test_seeds_on_devices.py",
    "training/test_environments_on_devices.py",
    "training/test_kill_and_resume.py",
    "training/test_surrogate_on_devices.py",
    "cli/test_resume_command.py",
    "cli/test_train_surrogate.py",
    "cli/test_train_command.py",
    "cli/test_rollout_command.py",
    "play/test_play_page.py",
    "play/test_watch_page.py",
    "render/test_replay_page.py",
    "envs/test_contract.py",
    "envs/test_fuzz_operations.py",
    "envs/test_fuzz_episodes.py",
    "envs/test_observations.py",
    "envs/test_generated_episodes.py",
    "envs/test_augmented_episodes.py",
    "tasks/procedural/test_procedural_generator.py",
    "tasks/procedural/test_rules_objects.py",
    "tasks/procedural/test_rules_geometry.py",
    "tasks/test_tasks_curriculum.py",
    "experts/test_lookahead.py",
    "experts/test_beam_search.py",
    "wrappers/test_trials.py",
    "testing/test_environment_check.py",
    "adapters/test_to_gymnax.py",
    "surrogate/test_surrogate_on_mesh.py",
    "surrogate/test_surrogate_models.py",
    "adapters/test_to_stoa.py",
    "evaluation/test_arc_rules.py",
    "render/test_solve_map.py",
)


def pytest_collection_modifyitems(items):
    """Mark slow files, and sort files by folder; within a file the order stays."""
    root = pathlib.Path(__file__).parent
    slow = [root / name for name in _SLOW]
    for item in items:
        if any(place == item.path or place in item.path.parents for place in slow):
            item.add_marker(pytest.mark.slow)

    def rank(item):
        folder = item.path.relative_to(root).parts[0]
        if folder in _LAST:
            return len(_ORDER) + 1
        return _ORDER.index(folder) if folder in _ORDER else len(_ORDER)

    items.sort(key=rank)


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
