"""The counter names what was compiled and why, and leaves JAX as it found it."""

import contextlib
import functools
import logging
import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from jaxarc.profiling import CompileCounter

GIVES_REASONS = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="JAX is asked for none before 0.10")
X3, X4 = jnp.ones(3), jnp.ones(4)


def make_double():
    @jax.jit
    def double(x):
        return x * jnp.asarray(2, x.dtype)

    return double


def make_scale(jit):
    def scale(x, factor):
        return x * factor

    return jit(scale)


def test_the_same_shapes_compile_nothing():
    double = make_double()
    double(X3)
    with CompileCounter() as counter:
        for _ in range(3):
            double(X3)
    counter.assert_none()
    assert (counter.total, counter.counts["double"]) == (0, 0)


@GIVES_REASONS
def test_a_first_call_counts_once():
    double = make_double()
    with CompileCounter() as counter:
        double(X3)
        double(X3)
    assert counter.counts == {"double": 1}
    (reason,) = counter.reasons["double"]
    assert "never seen function:\n    double" in reason


@GIVES_REASONS
def test_another_shape_names_the_function_and_both_shapes():
    double = make_double()
    double(X3)
    with CompileCounter() as counter:
        double(X4)
    assert counter.counts == {"double": 1}
    assert "at x, now f32[4] and before f32[3]" in counter.reasons["double"][0]
    message = r"(?s)nothing should be:\n  double, 1 x:\n    .*at x, now f32\[4\] and before f32\[3\]"
    with pytest.raises(AssertionError, match=message):
        counter.assert_none()


@GIVES_REASONS
@pytest.mark.parametrize("jit", [functools.partial(jax.jit, static_argnums=1), eqx.filter_jit], ids=["jax", "equinox"])
def test_another_static_argument_is_a_reason(jit):
    scale = make_scale(jit)
    scale(X3, 21.5)
    with CompileCounter() as counter:
        scale(X3, 21.5)
        scale(X3, 47.5)
    assert counter.counts == {"scale": 1}
    reason = counter.reasons["scale"][0]
    now, _, before = reason.partition(" and before ")
    assert "for scale defined at" in reason
    # JAX 0.12 names the function, and says of static arguments that it has no explanation.
    assert ("47.5" in now and "21.5" in before) or "explanation unavailable" in reason


@GIVES_REASONS
def test_a_reason_belongs_to_the_function_that_was_compiled():
    double = make_double()

    @jax.jit
    def outer(x):
        return double(x) + x

    outer(X3)
    with CompileCounter() as counter:
        outer(X4)
        jnp.zeros((2, 5)) + 1  # outside jit: operations are programs too
    assert set(counter.counts) >= {"outer", "add"}
    assert "double" not in counter.counts
    assert "at x, now f32[4]" in counter.reasons["outer"][0]
    assert "an operation outside jit" in counter.reasons["add"][0]


def test_assert_none_looks_only_at_the_names_it_is_given():
    double = make_double()
    with CompileCounter() as counter:
        double(X3)
    counter.assert_none("step", "reset")
    with pytest.raises(AssertionError, match="double, 1 x"):
        counter.assert_none("double")


def test_nothing_reaches_stderr_and_the_logging_is_as_before(capfd, caplog):
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("jax")]
    flags = lambda: (jax.config.jax_log_compiles, jax.config.jax_explain_cache_misses)
    state = lambda: (flags(), [(logger.filters, logger.handlers, logger.propagate) for logger in loggers])
    before = state()
    counter = CompileCounter()
    with contextlib.suppress(ZeroDivisionError), counter:
        make_double()(X3)
        1 / 0  # noqa: B018
    make_double()(X3)  # after the block nothing counts
    assert counter.total == 1
    assert state() == before
    assert capfd.readouterr().err == ""
    assert caplog.records == []


def test_other_threads_count_without_a_reason():
    double = make_double()
    with CompileCounter() as counter:
        thread = threading.Thread(target=double, args=(X3,))
        thread.start()
        thread.join()
    assert counter.counts == {"double": 1}
    assert "another thread" in counter.reasons["double"][0]


@pytest.mark.skipif(jax.__version_info__ >= (0, 10), reason="JAX is asked for a reason from 0.10 on")
def test_an_older_jax_gives_no_reason():
    double = make_double()
    with CompileCounter() as counter:
        double(X3)
    assert counter.counts == {"double": 1}
    assert jax.__version__ in counter.reasons["double"][0]
