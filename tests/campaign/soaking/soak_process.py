"""One process of a soak: a training run or rollouts without end, under limits, that tells what it compiles and plays.

``soak.py`` starts it: ``python -m campaign.soaking.soak_process --work training ... -- train`` runs the command itself.
"""

import argparse
import dataclasses
import json
import mmap
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_COMPILED = "/jax/core/compile/backend_compile_duration"
_NUM_ENVS, _NUM_STEPS, _CHUNK_STEPS = 128, 302, 70  # the last chunk is shorter: a second program
_CALLS_PER_START = 4  # new episodes after so many calls that go on with the states before


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a process may use."""

    memory_mib: int  # of private writable memory (RLIMIT_DATA), reserved or touched
    cpu: int  # the only one it may run on
    files: int  # open file descriptors (RLIMIT_NOFILE)

    def apply(self) -> None:
        """Bind this process, and see that the bound on memory holds.

        Raises:
            RuntimeError: the kernel gives more memory than the limit allows.
        """
        os.sched_setaffinity(0, {self.cpu})
        size = self.memory_mib * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))
        try:
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        except OSError:
            return
        raise RuntimeError(f"the memory limit of {self.memory_mib} MiB does not bind here; RLIMIT_DATA needs Linux 4.7")


def main(arguments: Sequence[str] | None = None) -> None:
    """Apply the limits, then work until the time is over or the command ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=("training", "rollout"), required=True)
    parser.add_argument("--memory-mib", type=int, required=True)
    parser.add_argument("--cpu", type=int, required=True)
    parser.add_argument("--files", type=int, required=True)
    parser.add_argument("--compilations", type=Path, required=True, help="gets a line of JSON for each compilation")
    parser.add_argument("--progress", type=Path, help="rollout: gets a line of JSON for each chunk")
    parser.add_argument("--dataset", default="arc-agi-1/training", help="rollout: what is played")
    parser.add_argument("--max-side", type=int, default=30, help="rollout: of the canvas")
    parser.add_argument("--seconds", type=float, help="rollout: ends after the call in which they are over")
    parser.add_argument("command", nargs="*", help="training: arguments of jaxarc")
    asked = parser.parse_args(arguments)
    Limits(asked.memory_mib, asked.cpu, asked.files).apply()
    with _compilations_written(asked.compilations):
        if asked.work == "training":
            from jaxarc.cli.main import main as run_command

            run_command(asked.command)
        else:
            _roll_out(asked.dataset, asked.max_side, asked.seconds, asked.progress)


@contextmanager
def _compilations_written(path: Path) -> Iterator[None]:
    """Write each compilation down with JAX's reason for it."""
    import jax

    from jaxarc.profiling import CompileCounter
    from jaxarc.profiling.compile_log import plain_name

    path.touch()
    with CompileCounter() as counter:

        def write(event: str, duration_secs: float, **kwargs: str | int) -> None:
            if event == _COMPILED:
                name = plain_name(str(kwargs["fun_name"]))
                reason = counter.reasons[name][-1]  # it listens first
                _append(path, {"time": time.time(), "name": name, "seconds": duration_secs, "reason": reason})

        jax.monitoring.register_event_duration_secs_listener(write)
        try:
            yield
        finally:
            jax.monitoring.unregister_event_duration_listener(write)


def _roll_out(dataset: str, max_side: int, seconds: float, progress: Path) -> None:
    """Play call after call of ``jaxarc.parallel.rollout``, with chunks, callback, recorded steps and counted tasks."""
    import jax

    import jaxarc
    from jaxarc.parallel import RandomPolicy, rollout
    from jaxarc.wrappers import AutoReset, EpisodeStatistics

    rules = jaxarc.JaxArcConfig().with_fields(max_grid_height=max_side, max_grid_width=max_side)
    inner, params = jaxarc.make(dataset, rules, max_episode_steps=100, invalid_action_policy="noop")
    env = EpisodeStatistics(AutoReset(inner))
    policy = RandomPolicy(env.action_space(params))
    states, steps, calls, end = None, 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        on_chunk = _chunk_writer(progress, steps, calls)
        states = None if calls % _CALLS_PER_START == 0 else states
        result = rollout(
            env,
            params,
            policy,
            jax.random.key(calls),
            _NUM_ENVS,
            _NUM_STEPS,
            states=states,
            chunk_steps=_CHUNK_STEPS,
            on_chunk=on_chunk,
            record=True,
            count_tasks=True,
        )
        assert result.task_counts is not None
        assert result.task_counts.episodes.sum() == result.totals.episodes
        states, steps, calls = result.carry.states, steps + result.totals.steps, calls + 1


def _chunk_writer(path: Path, steps_before: int, calls: int) -> Callable[[int, Any], None]:
    def write(_: int, totals: Any) -> None:
        _append(path, {"steps": steps_before + totals.steps, "call": calls, "episodes": totals.episodes})

    return write


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
