"""How many devices a run uses."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least


@dataclass(frozen=True)
class ParallelConfig(CheckedConfig):
    num_devices: int = 1  # that training.num_seeds agents are spread over; another number rounds otherwise

    def validate(self) -> list[str]:
        return at_least("num_devices", self.num_devices, 1)
