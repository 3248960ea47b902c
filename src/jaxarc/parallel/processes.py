"""Several processes, on one machine or on many, as one program: how they start, agree and end.

:func:`distributed_session` connects them. The functions below it are collective: all processes call them, in one order.
With a single process they return at once.
"""

import hashlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as OutOfTimeError
from contextlib import contextmanager
from typing import Any, Final

import jax
import numpy as np
from jax.experimental.multihost_utils import process_allgather, sync_global_devices

from jaxarc.config import ParallelConfig
from jaxarc.errors import JaxarcError

_GRACE: Final = 60  # seconds; JAX aborts at its own limit without a word of advice, so ours has to come first
_BROKEN: Final = ("Gloo", "NCCL", "coordination service", "CoordinationService", "Socket closed", "heartbeat")


class ProcessError(JaxarcError, RuntimeError):
    """The processes of a run do not find each other, do not match, or have lost each other."""


class ProcessMismatchError(ProcessError):
    """The processes of a run differ where they must agree. All of them raise it, so all can shut down in order."""


@contextmanager
def distributed_session(config: ParallelConfig, agreed: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    """Be one of the processes of a run inside this context, if ``parallel.multihost`` is set.

    A process that leaves with an error which the others do not have should end at once, with ``os._exit``: at its exit
    JAX waits for processes that may wait for this one. Use :func:`is_distributed` to decide.

    Args:
        config: how many processes there are, which one this is, and the address of the coordinator.
        agreed: errors that all processes raise at the same point, as a ProcessMismatchError is, so that all can shut
            down in order.

    Raises:
        ProcessError: not all connect in time, or one is lost later on.
    """
    if not config.multihost:
        yield
        return
    start_processes(config)
    try:
        yield
    except (ProcessMismatchError, *agreed):
        jax.distributed.shutdown()
        raise
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if any(word in str(error) for word in _BROKEN):
            raise ProcessError(
                f"process {jax.process_index()} of {jax.process_count()} lost another one, which ended or cannot be "
                f"reached any more: {str(error).splitlines()[0]}; see what the others said, and start all of them "
                "again, a training run with --resume"
            ) from error
        raise
    jax.distributed.shutdown()


def start_processes(config: ParallelConfig) -> None:
    """Join the other processes, so that ``jax.devices()`` are those of all; call it before anything else of JAX.

    Fields of the config that are None are read from the environment of SLURM, Open MPI or Kubernetes.

    Raises:
        ProcessError: not all processes connect in time, a field that is None is not in the environment, the port is
            taken, or JAX runs already.
    """
    # Otherwise JAX handles SIGTERM itself; training loops stop in an agreed step instead.
    jax.config.update("jax_enable_preemption_service", False)
    config = config.replace(coordinator_address=config.coordinator_address or _coordinator_of_step())
    limit = config.connect_seconds
    waiting = ThreadPoolExecutor(1, "jax.distributed")
    # JAX waits in a thread, since it would end the process at its own time limit. This one gives up earlier,
    # with a message that says what to check.
    meeting = waiting.submit(
        jax.distributed.initialize,
        config.coordinator_address,
        config.num_processes,
        config.process_id,
        initialization_timeout=limit + _GRACE,
        heartbeat_timeout_seconds=config.heartbeat_seconds,
        shutdown_timeout_seconds=max(config.heartbeat_seconds, _GRACE),  # process 0 draws when the others are done
    )
    waiting.shutdown(wait=False)
    try:
        meeting.result(timeout=limit)
    except OutOfTimeError:
        raise ProcessError(_say_late(config)) from None
    except (RuntimeError, ValueError, TypeError, LookupError, OSError) as error:
        raise ProcessError(_say_not_started(config, error)) from error
    _require_like_devices()


def _coordinator_of_step() -> str | None:
    """Return an address for process 0 of a step of SLURM, which is on its first node; None outside of one."""
    # As JAX does, which knows no names such as rack[1-2]n[3,5], of which the first is rack1n3, none that only SLURM
    # resolves, and has one port for all steps of a job.
    if (nodes := os.environ.get("SLURM_STEP_NODELIST")) is None:
        return None
    first = re.sub(r"\[(\w+).*?\]", r"\1", re.sub(r",(?![^[]*\]).*", "", nodes))
    step = 61 * int(os.environ["SLURM_STEP_ID"]) + int(os.environ["SLURM_JOB_ID"])
    port = os.environ.get("JAX_COORDINATOR_PORT", str(61440 + step % 4096))
    try:
        socket.getaddrinfo(first, port)
    except OSError as error:
        ask = ["scontrol", "--oneliner", "show", "node", first]
        try:
            answer = subprocess.run(ask, capture_output=True, text=True, timeout=_GRACE, check=True).stdout
            first = re.findall(r"NodeAddr=(\S+)", answer)[0]
            socket.getaddrinfo(first, port)
        except (OSError, subprocess.SubprocessError, LookupError):
            raise ProcessError(
                f"process 0 is on the node {first}, for which there is no address here ({error.strerror}); give "
                f"parallel.coordinator_address={first}:{port} with a name or address that all nodes know"
            ) from error
    return f"{first}:{port}"


def is_distributed() -> bool:
    """Whether this process is one of several that wait for each other, or still waits for them to connect."""
    return jax.distributed.is_initialized()


def is_primary() -> bool:
    """Whether this is process 0, the one that writes and prints; true where there is only one process."""
    return jax.process_index() == 0


def _require_like_devices() -> None:
    """Raise unless each process brings as many devices."""
    # Meshes split evenly over all devices, so a process with more of them would have no place for the rest.
    counts = [0] * jax.process_count()
    for device in jax.devices():
        counts[device.process_index] += 1
    if len(set(counts)) > 1:
        raise ProcessError(
            f"each process must bring as many devices, got {counts} of processes 0 .. {len(counts) - 1}; give each "
            "the same accelerators or CPU cores"
        )


def _say_late(config: ParallelConfig) -> str:
    who = "this process" if config.process_id is None else f"process {config.process_id}"
    count = "all" if config.num_processes is None else f"all {config.num_processes}"
    coordinator = "the coordinator that the cluster names"
    problem = f"not {count} processes came"
    if config.coordinator_address is not None:
        coordinator = f"the coordinator {config.coordinator_address}"
        if silence := _silence_of(config.coordinator_address):
            problem = f"nobody answers there ({silence})"
    return (
        f"{who} waited {config.connect_seconds} s at {coordinator}: {problem}; check that process 0 runs on that host, "
        "that its port is open to the others, that all name the same parallel.coordinator_address and "
        "parallel.num_processes, and each its own parallel.process_id; parallel.connect_seconds is the time limit"
    )


def _silence_of(address: str) -> str | None:
    """Say why nobody answers at an address; None where somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=2.0).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _say_not_started(config: ParallelConfig, error: BaseException) -> str:
    missing = [
        f"parallel.{name}"
        for name in ("coordinator_address", "num_processes", "process_id")
        if getattr(config, name) is None
    ]
    if missing and isinstance(error, ValueError):
        return (
            f"parallel.multihost needs {', '.join(missing)}: no SLURM, Open MPI or Kubernetes was found that could "
            f"tell ({error}); a script of SLURM starts each with srun"
        )
    return (
        f"this process cannot join the others at {config.coordinator_address}: {str(error).splitlines()[0]}; on "
        "process 0, choose a port that is free, and let nothing of JAX run before"
    )


_MOST_NAMED: Final = 5  # differences in one message


def allgather_text(text: str) -> list[str]:
    """Send a text to all processes, and return the texts of all of them, in the order of the processes."""
    if jax.process_count() == 1:
        return [text]
    # Texts differ in length, arrays must not: first the sizes travel, then the bytes, padded to one
    # length. Sizes 5 and 9 give rows of 16.
    data = np.frombuffer(text.encode(), np.uint8)
    sizes = process_allgather(np.int32(data.size))
    length = 1 << int(sizes.max()).bit_length()  # a power of two, because each length is compiled
    rows = process_allgather(np.pad(data, (0, length - data.size)))
    return [row[:size].tobytes().decode() for row, size in zip(rows, sizes, strict=True)]


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    return flag if jax.process_count() == 1 else bool(process_allgather(np.bool_(flag)).any())


def broadcast_flag(flag: bool) -> bool:
    """Return the flag of process 0, for decisions that depend on a clock."""
    return flag if jax.process_count() == 1 else bool(process_allgather(np.bool_(flag))[0])


def barrier(name: str) -> None:
    """Wait until all processes have called this function with the same name."""
    sync_global_devices(name)


def require_same(facts: Mapping[str, Any]) -> None:
    """Compare facts, values of JSON by name, between the processes.

    Raises:
        ProcessMismatchError: they differ; all processes raise it, and it names each fact with the value of two of them.
    """
    # All processes see all texts, compute the same differences, and so raise together.
    everyone = [json.loads(text) for text in allgather_text(json.dumps(dict(facts)))]
    mine = everyone[0]
    missing = "nothing"
    differ = [
        f"{name} is {mine.get(name, missing)!r} in process 0 and {other.get(name, missing)!r} in process {number}"
        for number, other in enumerate(everyone)
        for name in {**mine, **other}
        if mine.get(name, missing) != other.get(name, missing)
    ]
    if differ:
        more = f"; and {len(differ) - _MOST_NAMED} more" * (len(differ) > _MOST_NAMED)
        raise ProcessMismatchError(
            f"all processes of a run must be alike, but {'; '.join(differ[:_MOST_NAMED])}{more}. Start all of them "
            "with the same command, code and data"
        )


def digest(tree: Any) -> str:
    """Return a hash of all bytes of the arrays of a tree, all of which this process must hold."""
    checksum = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.asarray(leaf)
        checksum.update(f"{array.dtype}{array.shape}".encode())
        checksum.update(np.ascontiguousarray(array).tobytes())
    return checksum.hexdigest()[:16]
