"""How many actions a state remembers."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least


@dataclass(frozen=True)
class HistoryConfig(CheckedConfig):
    history_enabled: bool = True
    max_history_length: int = 1000  # records; an episode shorter than this keeps only its own length

    def validate(self) -> list[str]:
        return at_least("max_history_length", self.max_history_length, 1)
