"""How the tasks that are played differ from the ones in the data: symmetries, colors, order of demonstrations."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, one_of

SYMMETRIES = {"none": 1, "flips": 4, "all": 8}  # how many of the square's eight symmetries are drawn from
RECOLORINGS = ("none", "keep_black", "all")


@dataclass(frozen=True)
class AugmentationConfig(CheckedConfig):
    symmetries: str = "none"  # flips: as it is, up-down, left-right, both; all: rotations and diagonals too
    recolor: str = "none"  # a random permutation of the colors; keep_black leaves color 0 as it is
    shuffle_demos: bool = False  # a random order of the demonstrations

    @property
    def num_symmetries(self) -> int:
        """How many symmetries a reset draws from: 1, 4 or 8."""
        return SYMMETRIES[self.symmetries]

    @property
    def is_active(self) -> bool:
        """Whether anything is changed at all."""
        return self != AugmentationConfig()

    def validate(self) -> list[str]:
        return [
            *one_of("symmetries", self.symmetries, tuple(SYMMETRIES)),
            *one_of("recolor", self.recolor, RECOLORINGS),
        ]
