"""Everything that one training run depends on: the rules, the learning, the data and their order."""

import math
from dataclasses import dataclass, field

from jaxarc.agents.answers.predictor import answer_shown_config, missing_for_answer_prediction
from jaxarc.agents.learner import TrainConfig
from jaxarc.agents.policy import missing_for_editing
from jaxarc.config import (
    AgentConfig,
    AnswerConfig,
    CheckedConfig,
    CheckpointConfig,
    CloningConfig,
    CurriculumConfig,
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
    training: TrainingConfig = field(default_factory=TrainingConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)

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
        return problems + self.task.too_large_for(self.environment.grid_shape)
