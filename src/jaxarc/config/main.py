"""The config that holds all others, and the rules that tie them together."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from jaxarc.config.action import ActionConfig
from jaxarc.config.augmentation import AugmentationConfig
from jaxarc.config.build import CheckedConfig, build, check_known
from jaxarc.config.dataset import DatasetConfig
from jaxarc.config.environment import EnvironmentConfig
from jaxarc.config.episode import EpisodeConfig
from jaxarc.config.history import HistoryConfig
from jaxarc.config.legality import legal_operations, possible_operations, switches_pairs
from jaxarc.config.observation import ObservationConfig
from jaxarc.config.reward import RewardConfig


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
    def switches_pairs(self) -> bool:
        """Whether an episode may go from one pair to another."""
        return switches_pairs(self.episode)

    @property
    def scores_submissions(self) -> bool:
        """Whether the agent learns what all its submits were worth: always in training, if asked for in testing."""
        return self.episode.mode == "train" or self.reward.score_on_submit

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the canvas, ``(H, W)``."""
        return self.dataset.grid_shape

    @classmethod
    def from_hydra(cls, mapping: Mapping[str, Any]) -> Self:
        """Make a config from a nested mapping such as an OmegaConf ``DictConfig``."""
        return build(cls, mapping)

    def with_fields(self, **changes: Any) -> Self:
        """Return a copy with fields changed by their own name, whichever topic they belong to.

        ``config.with_fields(selection_format="bbox", max_episode_steps=50)`` changes ``action`` and ``environment``.

        Raises:
            ConfigValidationError: no topic has such a field, or a rule is broken.
        """
        topics = {topic.name: getattr(self, topic.name) for topic in dataclasses.fields(self)}
        homes = {leaf.name: name for name, topic in topics.items() for leaf in dataclasses.fields(topic)}
        grouped: dict[str, dict[str, Any]] = {}
        whole: dict[str, Any] = {}
        for name, value in changes.items():
            if name in topics:
                whole[name] = value
            else:
                check_known(type(self).__name__, name, sorted([*topics, *homes]))
                grouped.setdefault(homes[name], {})[name] = value
        for name, fields in grouped.items():
            topic = whole.get(name, topics[name])
            if isinstance(topic, CheckedConfig):  # what is none is refused below
                whole[name] = topic.replace(**fields)
        return dataclasses.replace(self, **whole)

    def validate(self) -> list[str]:
        problems: list[str] = []
        height, width = self.dataset.grid_shape
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
                f"{episode.mode} mode with pair switching {'on' if self.switches_pairs else 'off'} the possible ones "
                f"are {sorted(possible_operations(episode))}"
            )
        return problems
