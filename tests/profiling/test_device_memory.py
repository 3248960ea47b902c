"""Memory of devices and of compiled programs."""

import gc
import gzip
from unittest.mock import create_autospec

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.stages import Compiled

from jaxarc.profiling import compiled_memory, device_memory, memory_report, save_memory_profile
from jaxarc.profiling.memory_use import DeviceMemory

MEGABYTE = 2**20


class FakeDevice:
    """A device whose backend keeps an account, as accelerators do."""

    def __init__(self, stats):
        self.stats = stats

    def memory_stats(self):
        return self.stats

    def __str__(self):
        return "fake:0"


def test_live_arrays_stand_in_where_the_backend_keeps_no_account():
    gc.collect()  # what earlier tests left must not go in between
    before = device_memory()
    assert [record.device for record in before] == [str(device) for device in jax.local_devices()]
    x = jax.block_until_ready(jnp.zeros((4, MEGABYTE), jnp.int8))
    after = device_memory()[0]
    assert after.bytes_in_use - before[0].bytes_in_use == 4 * MEGABYTE
    assert (after.peak_bytes, after.limit_bytes) == (None, None)
    x.delete()
    assert device_memory()[0].bytes_in_use == before[0].bytes_in_use


def test_the_account_of_the_backend_is_used_where_there_is_one(monkeypatch):
    stats = [{"bytes_in_use": 3, "peak_bytes_in_use": 5, "bytes_limit": 7, "num_allocs": 1}, {"bytes_in_use": 3}]
    monkeypatch.setattr(jax, "local_devices", lambda: [FakeDevice(one) for one in stats])
    assert device_memory() == [DeviceMemory("fake:0", 3, 5, 7), DeviceMemory("fake:0", 3, None, None)]


def test_a_compiled_program_tells_its_arguments_outputs_and_scratch_memory():
    program = jax.jit(lambda x: (jnp.sort(x @ x), x[0]), donate_argnums=()).lower(jnp.ones((64, 64))).compile()
    memory = compiled_memory(program)
    assert memory.argument_bytes == 64 * 64 * 4
    assert memory.output_bytes >= 64 * 64 * 4 + 64 * 4  # a tuple adds its table of pointers
    assert memory.temp_bytes >= 0
    donating = jax.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones((64, 64))).compile()
    assert compiled_memory(donating).alias_bytes == 64 * 64 * 4


PARAMS = {"w": jnp.ones((64, 256)), "v": jnp.ones((256, 4)), "steps": jnp.int32(0)}
X = jnp.ones((1024, 64))


def error(params):
    return jnp.mean(jnp.tanh(X @ params["w"]) @ params["v"])


def report_of(loss, given=error):
    optimizer = optax.adam(1e-3)
    weights = {name: PARAMS[name] for name in ("w", "v")}
    opt_state = optimizer.init(weights)

    @jax.jit
    def step(weights, opt_state):
        updates, opt_state = optimizer.update(jax.grad(given)(weights), opt_state, weights)
        return optax.apply_updates(weights, updates), opt_state

    return memory_report(step.lower(weights, opt_state).compile(), PARAMS, opt_state, loss)


@pytest.mark.usefixtures("standard_promotion")
def test_the_memory_of_a_step_is_reported_by_what_it_is_for():
    report = report_of(error)
    weights = 4 * (64 * 256 + 256 * 4)
    assert report.parameters == report.gradients == weights  # the count of steps is no parameter
    assert report.optimizer == 2 * weights + 4  # Adam's two means and its count
    hidden = 4 * 1024 * 256
    assert report.activations == 2 * hidden  # tanh(x @ w), and the slope of tanh; x is held by the caller
    assert report.others == 0  # X is a constant of the program
    assert report.total == weights + report.optimizer + weights + report.activations + report.temporaries
    without = report_of(None)
    assert without.activations is None
    assert without.temporaries == max(0, report.temporaries + report.activations) > hidden


@pytest.mark.usefixtures("standard_promotion")
def test_checkpointed_activations_are_not_kept():
    checkpointed = jax.checkpoint(error)
    assert report_of(checkpointed, checkpointed).activations == 0


def test_what_a_backend_does_not_say_is_left_out_of_a_report():
    program = create_autospec(Compiled, instance=True)
    program.memory_analysis.return_value = None
    report = memory_report(program, PARAMS, ())
    assert (report.temporaries, report.others, report.total) == (None, None, None)


def test_a_memory_profile_is_written_whole(tmp_path):
    path = save_memory_profile(tmp_path / "new" / "memory.prof")
    assert len(gzip.decompress(path.read_bytes())) > 0
    assert [file.name for file in path.parent.iterdir()] == ["memory.prof"]
