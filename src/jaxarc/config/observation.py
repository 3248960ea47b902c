"""What an agent is shown beside the working grid, and in which form."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, one_of

GRID_FORMATS = ("planes", "one_hot", "tokens")


@dataclass(frozen=True)
class ObservationConfig(CheckedConfig):
    grid_format: str = "planes"  # int8 [H, W], -1 as padding; one_hot: int8 [H, W, 11]; tokens: int32 [H * W] in 0..10
    reveal_target: bool = False  # adds "target_grid"; refused in test mode
    include_input: bool = False  # adds "input_grid", of the current pair
    include_clipboard: bool = False  # adds "clipboard"
    include_selection: bool = False  # adds "selection", bool [H, W]: the cells that the last operation used
    include_demonstrations: bool = False  # adds "demonstrations"; in training the pair that is played is left out
    include_operations: bool = False  # adds "operations", bool [42]: legal, and able to do something
    include_step_count: bool = False  # adds "step_count"
    include_submission_count: bool = False  # adds "submission_count"

    def validate(self) -> list[str]:
        return one_of("grid_format", self.grid_format, GRID_FORMATS)
