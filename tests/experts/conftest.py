import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Compile in half the time; what is compiled here runs only a little."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
