"""How large the canvas is that every task is padded to."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, in_range
from jaxarc.constants import MAX_GRID_SIZE


@dataclass(frozen=True)
class DatasetConfig(CheckedConfig):
    max_grid_height: int = MAX_GRID_SIZE  # H, rows of the canvas
    max_grid_width: int = MAX_GRID_SIZE  # W, columns of the canvas

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the canvas, ``(H, W)``."""
        return self.max_grid_height, self.max_grid_width

    def validate(self) -> list[str]:
        return [
            *in_range("max_grid_height", self.max_grid_height, 1, MAX_GRID_SIZE),
            *in_range("max_grid_width", self.max_grid_width, 1, MAX_GRID_SIZE),
        ]
