import sys
from pathlib import Path

import jax
import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(SCRIPTS))  # scripts import one another by name


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Compile in half the time; what is compiled here runs only a little."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
