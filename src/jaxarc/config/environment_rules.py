"""The rules of an environment: eight groups of fields, and the config that holds them all."""

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from jaxarc import constants as c
from jaxarc.config.build import CheckedConfig, build, check_known, limited
from jaxarc.constants import MAX_GRID_SIZE, MAX_TRACKED_PAIRS, NUM_OPERATIONS

SelectionFormat: TypeAlias = Literal["point", "bbox", "mask"]
TooLarge: TypeAlias = Literal["refuse", "skip"]
SELECTION_FORMATS: Final[tuple[str, ...]] = get_args(SelectionFormat)
TOO_LARGE: Final[tuple[str, ...]] = get_args(TooLarge)

_MAX_INT32: Final = 2**31 - 1
_NUM_SYMMETRIES: Final = {"none": 1, "flips": 4, "all": 8}  # of the square's eight, those that a reset draws from
_DEMO_SWITCHES: Final = (c.NEXT_DEMO_PAIR, c.PREVIOUS_DEMO_PAIR, c.FIRST_UNSOLVED_DEMO_PAIR)
_TEST_SWITCHES: Final = (c.NEXT_TEST_PAIR, c.PREVIOUS_TEST_PAIR, c.FIRST_UNSOLVED_TEST_PAIR)


@dataclass(frozen=True)
class EnvironmentConfig(CheckedConfig):
    """The limits of an episode, and the executor of its operations."""

    max_episode_steps: int = limited(100, low=1, high=_MAX_INT32)  # an episode that reaches it is truncated
    max_submissions: int = limited(1, low=1, high=_MAX_INT32)  # the last one ends the episode
    executor: Literal["auto", "native", "xla"] = "auto"  # auto: native, the C++ library, where it runs; equal bits


@dataclass(frozen=True)
class DatasetConfig(CheckedConfig):
    """The size of the canvas that every task is padded to, and the treatment of tasks that do not fit."""

    max_grid_height: int = limited(MAX_GRID_SIZE, low=1, high=MAX_GRID_SIZE)  # H, rows of the canvas
    max_grid_width: int = limited(MAX_GRID_SIZE, low=1, high=MAX_GRID_SIZE)  # W, columns of the canvas
    too_large: TooLarge = "refuse"  # a task that does not fit the canvas: an error; left out


@dataclass(frozen=True)
class ActionConfig(CheckedConfig):
    """The form of an action, the allowed operations, and the treatment of an invalid action."""

    selection_format: SelectionFormat = "mask"
    allowed_operations: tuple[int, ...] | None = None  # ids; None allows every operation that the episode allows
    invalid_action_policy: Literal["raise", "noop", "clip"] = "raise"  # noop: no change; clip: coordinates into range
    mask_in_info: bool = False  # adds info["action_mask"], bool: which of the flat actions can do something

    def validate(self) -> list[str]:
        problems = []
        if self.mask_in_info and self.selection_format == "mask":
            problems.append(
                "mask_in_info=True has an entry for each flat action, so selection_format must be 'point' or 'bbox', "
                "got 'mask'"
            )
        allowed = self.allowed_operations
        if allowed is None:
            return problems
        wrong = [operation for operation in allowed if not 0 <= operation < NUM_OPERATIONS]
        if wrong:
            problems.append(f"allowed_operations must be ids in 0..{NUM_OPERATIONS - 1}, got {wrong}")
        if not allowed:
            problems.append("allowed_operations must name at least one operation, got none")
        if len(set(allowed)) != len(allowed):
            problems.append(f"allowed_operations must not repeat an id, got {allowed}")
        return problems


@dataclass(frozen=True)
class RewardConfig(CheckedConfig):
    """The reward of a step, as a sum of terms."""

    similarity_weight: float = 1.0  # times (gamma * new similarity - old similarity); training only
    gamma: float = limited(1.0, low=0.0, high=1.0)  # discount of new similarity; the agent's own is best
    step_penalty: float = -0.01  # added on every step
    success_bonus: float = 10.0  # added by the submit that solves
    unsolved_submission_penalty: float = -1.0  # added by a submit that does not solve
    invalid_action_penalty: float = -0.1  # added by an invalid or illegal action
    score_on_submit: bool = False  # test mode: whether a submit adds its success term


@dataclass(frozen=True)
class EpisodeConfig(CheckedConfig):
    """The pair that an episode plays, the grid it starts from, and whether it may switch to another pair."""

    mode: Literal["train", "test", "trials"] = "train"  # demonstration pairs; test pairs, targets hidden; one by one
    num_trials: int = limited(3, low=1)  # trials mode: demonstrations before the test pair; see jaxarc.wrappers.Trials
    task_order: Literal["weighted", "in_turn"] = "weighted"  # draw a task by weight; in_turn: auto-reset takes the next
    demo_selection: Literal["random", "first"] = "random"  # how a training episode picks its pair
    test_selection: Literal["random", "first"] = "first"  # how a test episode picks its pair
    allow_demo_switching: bool = False  # operations 35, 36 and 40, in train mode
    allow_test_switching: bool = False  # operations 37, 38 and 41, in test mode
    start_grid: Literal["input", "empty", "random", "partial"] = "input"  # zeros; any colors; the input partly solved
    start_height: int = limited(3, low=1, high=MAX_GRID_SIZE)  # rows of an empty or random start grid
    start_width: int = limited(3, low=1, high=MAX_GRID_SIZE)  # columns of an empty or random start grid
    partial_probability: float = limited(0.5, low=0.0, high=1.0)  # start_grid=partial: share of partly solved starts

    def validate(self) -> list[str]:
        problems = []
        if self.mode != "train" and self.start_grid == "partial":
            problems.append("start_grid='partial' shows cells of the hidden target, so it needs mode='train'")
        if self.mode == "trials" and (self.allow_demo_switching or self.allow_test_switching):
            problems.append(
                "mode='trials' chooses the pairs itself; leave allow_demo_switching and allow_test_switching off"
            )
        return problems

    @property
    def switches_pairs(self) -> bool:
        """Whether an episode may switch from one pair to another."""
        if self.mode == "trials":
            return False
        return self.allow_demo_switching if self.mode == "train" else self.allow_test_switching


@dataclass(frozen=True)
class HistoryConfig(CheckedConfig):
    """The length of a state's record of actions."""

    history_enabled: bool = True
    max_history_length: int = limited(1000, low=1)  # records; a shorter episode keeps only its own length


@dataclass(frozen=True)
class ObservationConfig(CheckedConfig):
    """The entries of an observation besides the working grid, the format of its grids, and its layout."""

    layout: Literal["dict", "stacked", "flat"] = "dict"  # one array: [H, W, C], or one vector; see guide.md
    grid_format: Literal["planes", "one_hot", "tokens"] = "planes"  # int8 [H, W], padding -1; [H, W, 11]; int32 [H * W]
    reveal_target: bool = False  # adds "target_grid"; refused in test mode
    include_input: bool = False  # adds "input_grid", of the current pair
    include_clipboard: bool = False  # adds "clipboard"
    include_selection: bool = False  # adds "selection", bool [H, W]: the cells that the last operation used
    include_demonstrations: bool = False  # adds "demonstrations"; in training and trials without the played pair
    max_demonstrations: int | None = limited(None, low=1, high=MAX_TRACKED_PAIRS)  # slots; None: most of any task
    include_operations: bool = False  # adds "operations", bool [42]: legal, and able to do something
    include_step_count: bool = False  # adds "step_count"
    include_submission_count: bool = False  # adds "submission_count"


@dataclass(frozen=True)
class AugmentationConfig(CheckedConfig):
    """Random changes of a task at each reset: symmetries, colors, order of the demonstrations."""

    symmetries: Literal["none", "flips", "all"] = "none"  # flips: identity, up-down, left-right, both; all: all eight
    recolor: Literal["none", "keep_black", "all"] = "none"  # permute the colors at random; keep_black: not 0
    shuffle_demos: bool = False  # a random order of the demonstrations

    @property
    def num_symmetries(self) -> int:
        """How many symmetries a reset draws from: 1, 4 or 8."""
        return _NUM_SYMMETRIES[self.symmetries]

    @property
    def is_active(self) -> bool:
        """Whether a reset changes tasks at all."""
        return self.symmetries != "none" or self.recolor != "none" or self.shuffle_demos


@dataclass(frozen=True)
class JaxArcConfig(CheckedConfig):
    """Everything that fixes an environment; hashable, so that equal configs share one compilation."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    action: ActionConfig = field(default_factory=ActionConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    episode: EpisodeConfig = field(default_factory=EpisodeConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    observation: ObservationConfig = field(default_factory=ObservationConfig)
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)

    @property
    def history_capacity(self) -> int:
        """Records kept in a state: the shorter of history and episode."""
        return min(self.history.max_history_length, self.environment.max_episode_steps)

    @property
    def legal_operations(self) -> tuple[int, ...]:
        """Operation ids that are legal, in ascending order."""
        return legal_operations(self.action, self.episode)

    @property
    def scores_submissions(self) -> bool:
        """Whether a submit adds its success term to the reward: always in training, on request in test mode."""
        return self.episode.mode == "train" or self.reward.score_on_submit

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the canvas, ``(H, W)``."""
        return self.dataset.max_grid_height, self.dataset.max_grid_width

    @classmethod
    def from_hydra(cls, mapping: Mapping[str, Any]) -> Self:
        """Make a config from a nested mapping such as an OmegaConf ``DictConfig``."""
        return build(cls, mapping)

    def with_fields(self, **changes: Any) -> Self:
        """Return a copy with fields changed by their own name, in any group.

        ``config.with_fields(selection_format="bbox", max_episode_steps=50)`` changes ``action`` and ``environment``.

        Raises:
            ConfigValidationError: no group has such a field, or a rule is broken.
        """
        groups = {group.name: getattr(self, group.name) for group in dataclasses.fields(self)}
        homes = {leaf.name: name for name, group in groups.items() for leaf in dataclasses.fields(group)}
        grouped: dict[str, dict[str, Any]] = {}  # group -> its changed fields
        whole: dict[str, Any] = {}  # group -> the config that takes its place
        for name, value in changes.items():
            if name in groups:
                whole[name] = value
            else:
                check_known(type(self).__name__, name, sorted([*groups, *homes]))
                grouped.setdefault(homes[name], {})[name] = value
        for name, fields in grouped.items():
            group = whole.get(name, groups[name])
            if isinstance(group, CheckedConfig):  # the constructor refuses any other value
                whole[name] = group.replace(**fields)
        return dataclasses.replace(self, **whole)

    def validate(self) -> list[str]:
        problems: list[str] = []
        height, width = self.grid_shape
        episode = self.episode
        if episode.mode != "train" and self.observation.reveal_target:
            problems.append(
                f"observation.reveal_target=True would show the hidden target; {episode.mode} mode needs False"
            )
        if episode.start_grid in ("empty", "random") and (episode.start_height > height or episode.start_width > width):
            problems.append(
                f"episode.start_height x start_width must fit the canvas {height}x{width}, "
                f"got {episode.start_height}x{episode.start_width}"
            )
        if self.augmentation.symmetries == "all" and height != width:
            problems.append(
                f"augmentation.symmetries='all' turns rows into columns and needs a square canvas, got "
                f"{height}x{width}; use 'flips', or equal dataset.max_grid_height and dataset.max_grid_width"
            )
        if not self.legal_operations:
            problems.append(
                f"action.allowed_operations={self.action.allowed_operations} leaves no legal operation: in "
                f"{episode.mode} mode with pair switching {'on' if episode.switches_pairs else 'off'} the possible "
                f"ones are {sorted(_possible_operations(episode))}"
            )
        return problems


def _possible_operations(episode: EpisodeConfig) -> frozenset[int]:
    """Operation ids that the mode and the switching rules allow."""
    operations = {*range(c.NUM_GRID_OPERATIONS), c.RESET_PAIR}
    if episode.switches_pairs:
        operations.update(_DEMO_SWITCHES if episode.mode == "train" else _TEST_SWITCHES)
    return frozenset(operations)


@functools.cache
def legal_operations(action: ActionConfig, episode: EpisodeConfig) -> tuple[int, ...]:
    """Operation ids that are legal, in ascending order: possible in the episode, and allowed by the action config."""
    possible = _possible_operations(episode)
    allowed = action.allowed_operations
    return tuple(sorted(possible if allowed is None else possible & set(allowed)))
