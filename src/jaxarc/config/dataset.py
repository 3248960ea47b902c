"""How large the canvas is that every task is padded to, and what becomes of tasks that do not fit."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, in_range, one_of
from jaxarc.constants import MAX_GRID_SIZE

TOO_LARGE = ("refuse", "report", "skip")


@dataclass(frozen=True)
class DatasetConfig(CheckedConfig):
    max_grid_height: int = MAX_GRID_SIZE  # H, rows of the canvas
    max_grid_width: int = MAX_GRID_SIZE  # W, columns of the canvas
    too_large: str = "refuse"  # tasks that do not fit the canvas: an error; left out with a warning; left out

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the canvas, ``(H, W)``."""
        return self.max_grid_height, self.max_grid_width

    def validate(self) -> list[str]:
        return [
            *in_range("max_grid_height", self.max_grid_height, 1, MAX_GRID_SIZE),
            *in_range("max_grid_width", self.max_grid_width, 1, MAX_GRID_SIZE),
            *one_of("too_large", self.too_large, TOO_LARGE),
        ]
