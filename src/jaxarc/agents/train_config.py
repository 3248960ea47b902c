"""Everything that the compiled part of learning depends on."""

from dataclasses import dataclass

from jaxarc.config import AgentConfig, AnswerConfig, CloningConfig, NetworkConfig, ScheduleConfig


@dataclass(frozen=True)
class TrainConfig:
    """Equal configs share one compiled program."""

    agent: AgentConfig
    network: NetworkConfig
    schedule: ScheduleConfig
    answer: AnswerConfig
    cloning: CloningConfig
    num_updates: int  # of the whole run: the schedules stretch over them
