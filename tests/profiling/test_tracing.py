"""Traces are written whatever happens in the block, and a busy profiler says so."""

import re
import socket

import jax
import jax.numpy as jnp
import pytest

from jaxarc.profiling import ProfilerBusyError, profile_server, trace


def traces(folder):
    return list(folder.rglob("*.xplane.pb"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def is_served(port):
    with socket.socket() as client:
        client.settimeout(5)
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_trace_is_written_into_a_new_folder(tmp_path):
    with trace(tmp_path / "a" / "b") as folder:
        jax.block_until_ready(jnp.ones(3) + 1)
    assert folder == tmp_path / "a" / "b"
    assert len(traces(folder)) == 1


def test_a_block_that_raises_leaves_its_trace_and_no_open_one(tmp_path):
    with pytest.raises(ZeroDivisionError), trace(tmp_path / "first"):
        1 / 0  # noqa: B018
    assert len(traces(tmp_path / "first")) == 1
    with trace(tmp_path / "second"):
        pass
    assert len(traces(tmp_path / "second")) == 1


def test_a_second_trace_at_a_time_is_refused_and_the_first_goes_on(tmp_path):
    with trace(tmp_path / "first"):
        message = rf"{re.escape(str(tmp_path / 'second'))}.*one trace per process.*end its block"
        with pytest.raises(ProfilerBusyError, match=message), trace(tmp_path / "second"):
            pass
    assert traces(tmp_path / "first")
    assert not traces(tmp_path / "second")


def test_python_calls_are_recorded_only_when_asked_for(tmp_path):
    def lines(folder):
        planes = jax.profiler.ProfileData.from_file(str(traces(folder)[0])).planes
        return [event.name for plane in planes for line in plane.lines for event in line.events]

    for name, python_calls in (("without", False), ("with", True)):
        with trace(tmp_path / name, python_calls=python_calls):
            free_port()
    assert not any("free_port" in name for name in lines(tmp_path / "without"))
    assert any("free_port" in name for name in lines(tmp_path / "with"))


def test_the_server_lives_as_long_as_its_block():
    port = free_port()
    with profile_server(port) as served:
        assert served == port
        assert is_served(port)
    assert not is_served(port)
    with pytest.raises(ZeroDivisionError), profile_server(port):
        1 / 0  # noqa: B018
    assert not is_served(port)


def test_a_second_server_and_a_port_in_use_are_refused():
    first, second = free_port(), free_port()
    with profile_server(first):
        with pytest.raises(ProfilerBusyError, match=rf"port {first} is in use; choose another"), profile_server(first):
            pass
        with pytest.raises(ProfilerBusyError, match=rf"{second}.*serves one port.*stop_server"), profile_server(second):
            pass
        assert is_served(first)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", second))
        taken.listen()
        with pytest.raises(ProfilerBusyError, match=f"port {second} is in use"), profile_server(second):
            pass
