"""Everything that a run of agents depends on, and what it reports."""

import math
from dataclasses import dataclass, field
from pathlib import Path

from jaxarc.agents.own_parts import NETWORKS, OwnPartError, rewarded
from jaxarc.agents.policy import missing_for_editing
from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.predictor import answer_shown_config, missing_for_answer_prediction
from jaxarc.config import (
    AgentConfig,
    AnswerConfig,
    CheckedConfig,
    CheckpointConfig,
    CloningConfig,
    CurriculumConfig,
    GameConfig,
    JaxArcConfig,
    LoggingConfig,
    NetworkConfig,
    ParallelConfig,
    ScheduleConfig,
    TaskConfig,
    TrainingConfig,
)
from jaxarc.config.choices import rules_for_editing
from jaxarc.experts import missing_for_painting
from jaxarc.games import GameError, game
from jaxarc.runs.folder import read_reports


@dataclass(frozen=True)
class Experiment(CheckedConfig):
    """Everything that a run depends on; equal experiments give equal results on equal machines."""

    environment: JaxArcConfig = field(default_factory=rules_for_editing)
    agent: AgentConfig = field(default_factory=AgentConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    answer: AnswerConfig = field(default_factory=AnswerConfig)
    cloning: CloningConfig = field(default_factory=CloningConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    game: GameConfig = field(default_factory=GameConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)

    @property
    def kind(self) -> str:
        """What the agents learn, by its name in ``jaxarc.runs.kind.KINDS``."""
        return "game" if self.game.name else "edit"

    @property
    def seeds(self) -> range:
        """One for each agent."""
        return self.training.seeds

    @property
    def num_updates(self) -> int:
        """Updates of the whole run, whole reports of them."""
        each = self.training.updates_per_report
        return each * math.ceil(self.training.total_steps / (self.agent.samples_per_update * each))

    @property
    def train_config(self) -> TrainConfig:
        """The choices that the compiled part of learning depends on."""
        return TrainConfig(self.agent, self.network, self.schedule, self.answer, self.cloning, self.num_updates)

    def uneven_over(self, num_devices: int) -> list[str]:
        """List what cannot be split evenly over so many devices, each as one sentence."""
        if self.parallel.over == "seeds":
            parts = [("training.num_seeds", self.training.num_seeds, num_devices, "")]
        else:
            minibatches = self.agent.num_minibatches
            share = f" times agent.num_minibatches = {minibatches}, as each device has its part of each minibatch"
            parts = [("agent.num_envs", self.agent.num_envs, num_devices * minibatches, share)]
            if self.answer.source == "predicted":
                parts.append(("answer.batch_size", self.answer.batch_size, num_devices, ""))
        return [
            f"{name} must be a multiple of parallel.num_devices{more}, where parallel.over={self.parallel.over!r}; "
            f"got {value} and {num_devices} device(s)"
            for name, value, divisor, more in parts
            if value % divisor
        ]

    def validate(self) -> list[str]:
        if unknown := self._check_own_parts():
            return unknown
        if self.kind == "game":
            return self._check_game()
        if self.answer.is_hidden:
            problems = missing_for_answer_prediction(self.environment) or missing_for_editing(
                answer_shown_config(self.environment)
            )
        else:
            problems = missing_for_editing(self.environment)
        if self.cloning.num_updates and not self.cloning.traces:
            problems += missing_for_painting(answer_shown_config(self.environment))
        if self.parallel.num_devices:
            problems += self.uneven_over(self.parallel.num_devices)
        if self.task.canvases:
            problems += self._check_canvases()
        return problems + self.task.too_large_for(self.environment.grid_shape)

    def _check_canvases(self) -> list[str]:
        """Say what does not go with several canvases."""
        problems = []
        if self.network.kind in ("cells", "residual_cnn"):
            problems.append(
                f"network.kind must be 'relational' or one of your own with task.canvases, got {self.network.kind!r}, "
                "which has weights for single cells"
            )
        if self.cloning.traces:
            problems.append("cloning.traces are replayed on one canvas, so task.canvases must be empty")
        if self.task.canvases != "auto" and self.task.canvases[-1] > min(self.environment.grid_shape):
            height, width = self.environment.grid_shape
            problems.append(
                f"task.canvases must fit the canvas of the rules, {height}x{width}, got {list(self.task.canvases)}"
            )
        return problems

    def _check_own_parts(self) -> list[str]:
        problems = []
        for find, name in ((NETWORKS.find, self.network.kind), (rewarded, self.agent.reward)):
            try:
                find(name)
            except OwnPartError as error:
                problems.append(str(error))
        return problems

    def _check_game(self) -> list[str]:
        """Say what does not go with a game."""
        try:
            makes_levels = game(self.game.name).generate is not None
        except GameError as error:
            return [f"game.name: {error}"]
        problems = self.uneven_over(self.parallel.num_devices) if self.parallel.num_devices else []
        if self.game.num_sets and not makes_levels:
            problems.append(f"game.num_sets must be 0, as {self.game.name} makes no random levels")
        if self.answer.is_hidden or self.cloning.num_updates:
            problems.append("a game has no answer and no expert, so answer.source must be 'shown', and cloning off")
        if self.agent.reward:
            problems.append(f"a game rewards by its own rule, so agent.reward must be empty, got {self.agent.reward!r}")
        if self.task.canvases:
            problems.append(f"a game has one canvas, so task.canvases must be empty, got {self.task.canvases!r}")
        if self.network.kind != "residual_cnn":
            problems.append(f"network.kind must be 'residual_cnn' for a game, got {self.network.kind!r}")
        return problems


@dataclass(frozen=True)
class Report:
    """The metrics of an agent at one moment; rates are 0 .. 1, and None stands for what was not measured."""

    update: int  # updates so far
    environment_steps: int  # so far, over all environments of this seed
    seconds: float  # since learning began, without compilation and saving
    seed: int = 0  # of the agent
    steps_per_second: float | None = None  # of this seed's environments, with learning
    episodes: int = 0  # training episodes that ended
    mean_return: float | None = None  # of those episodes, undiscounted
    mean_length: float | None = None  # their steps
    episode_solve_rate: float | None = None  # of those episodes: sampled edits, some starts partly solved
    train_solve_rate: float | None = None  # of the training pairs, each played once by the greedy policy
    evaluation_solve_rate: float | None = None  # of the unseen pairs, each played once by the greedy policy
    game_score: float | None = None  # official score of a game's own levels, 0 .. 100, by the greedy policy
    policy_loss: float | None = None
    value_loss: float | None = None
    entropy: float | None = None
    approx_kl: float | None = None
    clip_fraction: float | None = None
    gradient_norm: float | None = None  # before it is clipped
    answer_loss: float | None = None  # of the predictor of answers, in nats a cell
    tasks_played: int | None = None  # tasks on which an episode ended, since learning began
    effective_tasks: float | None = None  # equally likely tasks that would be as hard to guess as the next one drawn

    @property
    def samples(self) -> int:
        return self.environment_steps

    @property
    def score(self) -> float | None:
        # Of a game that makes no levels none is unseen.
        return self.train_solve_rate if self.evaluation_solve_rate is None else self.evaluation_solve_rate


def read_metrics(path: Path) -> list[Report]:
    """Read the reports of a metrics file, in order.

    Raises:
        ValueError: a line is not a report.
    """
    return read_reports(path, Report)
