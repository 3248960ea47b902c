"""What the folder, the checkpoints and the sinks of a run ask of its choices, whatever it trains."""

from collections.abc import Sequence
from typing import Any, Protocol

from jaxarc.config import CheckpointConfig, LoggingConfig


class RunChoices(Protocol):
    """All choices of a run: an experiment."""

    @property
    def checkpoint(self) -> CheckpointConfig: ...

    @property
    def logging(self) -> LoggingConfig: ...

    @property
    def seeds(self) -> Sequence[int]:
        """One for each that learns."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of plain values, for JSON."""
        ...
