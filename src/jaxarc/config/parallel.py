"""How many devices a run uses, what it splits over them, and which processes they belong to."""

import re
from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, one_of

SPLITS = ("seeds", "environments")
_PLACE = ("coordinator_address", "num_processes", "process_id")
_ADDRESS = re.compile(r"\S+:[0-9]{1,5}")


@dataclass(frozen=True)
class ParallelConfig(CheckedConfig):
    num_devices: int = 1  # that share the work, 0 for all there are; another number rounds otherwise
    over: str = "seeds"  # each device has agents of its own, or "environments": a part of those of every agent
    multihost: bool = False  # one of several processes that share the work; SLURM tells what is null below
    coordinator_address: str | None = None  # host:port of process 0, where all processes meet
    num_processes: int | None = None  # how many there are
    process_id: int | None = None  # which of them this is: 0 .. num_processes - 1, and 0 alone writes and prints
    connect_seconds: int = 300  # time limit for all processes to come
    heartbeat_seconds: int = 100  # silence after which a process counts as lost, and the others end

    def validate(self) -> list[str]:
        problems = [
            *at_least("num_devices", self.num_devices, 0),
            *one_of("over", self.over, SPLITS),
            *at_least("connect_seconds", self.connect_seconds, 1),
            *at_least("heartbeat_seconds", self.heartbeat_seconds, 1),
        ]
        return problems + (self._check_processes() if self.multihost else self._check_alone())

    def _check_alone(self) -> list[str]:
        given = [name for name in _PLACE if getattr(self, name) is not None]
        return [f"{' and '.join(given)} need multihost=true; choose parallel=multihost"] if given else []

    def _check_processes(self) -> list[str]:
        problems, count, address = [], self.num_processes, self.coordinator_address
        if address is not None and not _ADDRESS.fullmatch(address):
            problems.append(f"coordinator_address must be host:port, such as node1:1234, got {address!r}")
        if count is not None:
            problems += at_least("num_processes", count, 1)
            if self.num_devices % max(count, 1):
                problems.append(
                    f"num_devices counts those of all processes, so it must be a multiple of num_processes, or 0 for "
                    f"all there are; got {self.num_devices} and {count}"
                )
        if self.process_id is not None and not 0 <= self.process_id < (count or self.process_id + 1):
            problems.append(f"process_id must be 0 .. num_processes - 1, got {self.process_id} of {count} processes")
        return problems
