"""How many devices a surrogate learns on, and what is split over them."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least


@dataclass(frozen=True)
class SurrogateMeshConfig(CheckedConfig):
    data_devices: int = 1  # that each batch is split over
    model_devices: int = 1  # that each matrix is split over
    stages: int = 1  # devices that the layers are split over, one behind the other
    parts: int = 4  # of a batch, which follow one another through the stages; several times as many as these

    @property
    def num_devices(self) -> int:
        """All of them together."""
        return self.data_devices * self.model_devices * self.stages

    def validate(self) -> list[str]:
        names = ("data_devices", "model_devices", "stages", "parts")
        problems = [problem for name in names for problem in at_least(name, getattr(self, name), 1)]
        if self.model_devices > 1 and self.stages > 1:
            problems.append(
                f"weights are split either over model_devices or over stages, got {self.model_devices} and "
                f"{self.stages}; leave one of them at 1"
            )
        return problems
