"""How a policy's network looks at a grid, and how large it is."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, finite, one_of

NETWORK_KINDS = ("relational", "cells", "residual_cnn")


@dataclass(frozen=True)
class NetworkConfig(CheckedConfig):
    kind: str = "relational"  # sees only which colors are equal; the others see the colors themselves
    hidden_size: int = 16  # C, channels of a cell
    num_layers: int = 2  # layers of the trunk, the input layer included
    equality_map: bool = True  # cells, residual_cnn: tell each cell whether it is right already
    submit_bias: float = -3.0  # first logit of submit against paint: an early submit ends an episode that teaches
    resize_bias: float = -2.0  # first logit of resize against paint
    other_bias: float = -4.0  # first logit of each other operation against paint
    same_cell_bias: float = 3.0  # cells, residual_cnn: first logit of "the second corner is the first"

    def validate(self) -> list[str]:
        numbers = ("submit_bias", "resize_bias", "other_bias", "same_cell_bias")
        return [
            *one_of("kind", self.kind, NETWORK_KINDS),
            *[problem for name in ("hidden_size", "num_layers") for problem in at_least(name, getattr(self, name), 1)],
            *[problem for name in numbers for problem in finite(name, getattr(self, name))],
        ]
