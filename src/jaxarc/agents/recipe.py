"""Everything that the compiled part of learning depends on."""

from dataclasses import dataclass

from jaxarc.config import AgentConfig, NetworkConfig, ScheduleConfig


@dataclass(frozen=True)
class Recipe:
    """Equal recipes share one compiled program."""

    agent: AgentConfig
    network: NetworkConfig
    schedule: ScheduleConfig
    num_updates: int  # of the whole run: the schedules stretch over them
