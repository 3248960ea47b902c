"""How many examples of parent sets a surrogate sees at once, and on how many it is measured."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least


@dataclass(frozen=True)
class ParentSetsConfig(CheckedConfig):
    models_per_batch: int = 20  # structural models in a batch, each with an example for every variable
    measured_models: int = 400  # that are never learned from

    def validate(self) -> list[str]:
        return [
            *at_least("models_per_batch", self.models_per_batch, 1),
            *at_least("measured_models", self.measured_models, 1),
        ]
