"""How functions are compiled: a failed call runs once, error modes leave other programs alone, the core loads alone."""

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from jaxarc.compilation import compiled
from jaxarc.utils.error_handling import JAXErrorHandler

CORE = (
    "compilation",
    "config",
    "constants",
    "device_arrays",
    "envs",
    "errors",
    "extras",
    "fusion",
    "host_arrays",
    "interface",
    "lazy",
    "notebooks",
    "primitives",
    "prng",
    "rows",
    "spaces",
    "tasks",
    "types",
    "utils",
)
HOST_SIDE = ("datasets", "registration", "wrappers", "files")


def test_a_call_that_fails_while_it_runs_is_not_run_again():
    traces = []

    @compiled(may_raise=lambda x: True)
    def positive(x):
        traces.append(x)
        return eqx.error_if(x, x <= 0, "x must be above 0")

    assert positive(jnp.int32(1)) == 1
    with pytest.raises(RuntimeError, match="x must be above 0"):
        positive(jnp.int32(0))
    assert len(traces) == 1


@pytest.mark.parametrize(
    "error",
    [
        jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory"),
        jax.errors.JaxRuntimeError("the device is gone"),
        ValueError("RESOURCE_EXHAUSTED: out of memory"),
    ],
    ids=repr,
)
def test_running_out_of_memory_is_raised_as_it_is(monkeypatch, error):
    calls = []

    def exhausted(*args):
        calls.append(args)
        raise error

    monkeypatch.setattr(jax, "jit", lambda function, **_: exhausted)
    monkeypatch.setattr(eqx, "filter_jit", lambda function: exhausted)
    with pytest.raises(type(error), match=str(error)):
        compiled()(lambda x: x)(jnp.int32(0))
    assert len(calls) == 1


def test_a_call_with_arrays_does_not_go_through_filter_jit(monkeypatch):
    def call_slowly(*args):
        raise AssertionError("eqx.filter_jit takes four times as long to call")

    monkeypatch.setattr(eqx, "filter_jit", lambda function: call_slowly)
    assert compiled()(lambda x: x + 1)(jnp.int32(1)) == 2


def test_an_error_mode_leaves_programs_of_the_user_compiled():
    traces = []

    @jax.jit
    def double(x):
        traces.append(x)
        return 2 * x

    double(jnp.int32(1))
    try:
        JAXErrorHandler.set_error_mode("nan")
        double(jnp.int32(2))
    finally:
        JAXErrorHandler.set_error_mode("default")
    assert len(traces) == 1


def test_an_error_mode_holds_from_the_next_call_on():
    @compiled(may_raise=lambda x: True)
    def positive(x):
        return eqx.error_if(x, x <= 0, "x must be above 0", on_error=mode())

    mode = lambda: "raise" if JAXErrorHandler.stops_on_error() else "off"
    with pytest.raises(RuntimeError):
        positive(jnp.int32(0))
    try:
        JAXErrorHandler.set_error_mode("off")
        assert positive(jnp.int32(0)) == 0
    finally:
        JAXErrorHandler.set_error_mode("default")
    with pytest.raises(RuntimeError):
        positive(jnp.int32(0))


def test_the_core_loads_only_the_core():
    show = "import sys, jaxarc.envs; print(*sorted(m for m in sys.modules if m.startswith('jaxarc.')))"
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout.split()
    rooms = {module.split(".")[1] for module in loaded}
    assert rooms <= set(CORE)
    assert not rooms & set(HOST_SIDE)
    assert [module for module in loaded if module.startswith("jaxarc.tasks.procedural")] == []
