"""The choices of a training run, of its tasks, network, learning, devices, checkpoints and logs; and of a search."""

import re
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from jaxarc.config.build import CheckedConfig, limited, spell
from jaxarc.config.environment_rules import AugmentationConfig
from jaxarc.constants import MAX_GRID_SIZE, MAX_TRACKED_PAIRS

Decay: TypeAlias = Literal["linear", "cosine", "constant"]
WhichCheckpoint: TypeAlias = Literal["best", "last"]
Precision: TypeAlias = Literal["float32", "tensorfloat32", "bfloat16", "float16"]

_MAX_WEIGHT: Final = 1e6  # of a term of the loss
_PROCESS_FIELDS: Final = ("coordinator_address", "num_processes", "process_id")
_ADDRESS: Final = re.compile(r"\S+:[0-9]{1,5}")


@dataclass(frozen=True)
class AgentConfig(CheckedConfig):
    """The algorithm of an agent, its batches and its loss."""

    algorithm: Literal["ppo", "reinforce"] = "ppo"  # REINFORCE has a learned baseline, no clip_range and one epoch
    num_envs: int = limited(256, low=1)  # B, environments that run side by side
    rollout_steps: int = limited(16, low=1)  # S, steps of each environment between two updates
    num_epochs: int = limited(1, low=1)  # passes over the samples of an update
    num_minibatches: int = limited(16, low=1)  # a minibatch holds whole trajectories; 256 samples fit a CPU's cache
    adam_b2: float = limited(0.99, low=0.0, high=1.0)
    max_grad_norm: float = limited(1.0, low=1e-6, high=1e6)
    gamma: float = limited(0.9, low=0.0, high=1.0)  # discount of the agent
    gae_lambda: float = limited(0.9, low=0.0, high=1.0)
    clip_range: float = limited(0.2, low=0.0, high=1.0)  # how far the probability ratio may move
    normalize_advantages: bool = True  # scale them to mean 0 and deviation 1
    value_weight: float = limited(0.25, low=0.0, high=_MAX_WEIGHT)  # times the squared error of the value
    reward: str = ""  # a reward of your own by reward=file.py:NAME, around the topic reward's; empty: none

    @property
    def samples_per_update(self) -> int:
        """Environment steps between two updates."""
        return self.num_envs * self.rollout_steps

    def validate(self) -> list[str]:
        problems = []
        if self.num_envs % self.num_minibatches:
            problems.append(
                f"num_minibatches must divide num_envs, because a minibatch holds whole trajectories; "
                f"got {self.num_minibatches} and {self.num_envs}"
            )
        if self.algorithm == "reinforce" and self.num_epochs > 1:
            problems.append(f"num_epochs must be 1 for algorithm 'reinforce', got {self.num_epochs}")
        return problems


@dataclass(frozen=True)
class NetworkConfig(CheckedConfig):
    """The kind and the size of a policy's network."""

    kind: str = "relational"  # relational sees which colors are equal, no more; cells, residual_cnn, or file.py:NAME
    hidden_size: int = limited(16, low=1)  # C, channels of a cell
    num_layers: int = limited(2, low=1)  # layers of the trunk, the input layer included
    precision: Literal["float32", "tensorfloat32", "bfloat16"] = "float32"  # products on accelerators; sums: float32
    equality_map: bool = True  # cells, residual_cnn: an input that says which cells equal the target already
    submit_bias: float = -3.0  # first logit of submit against paint: an early submit ends an episode that teaches
    resize_bias: float = -2.0  # first logit of resize against paint
    other_bias: float = -4.0  # first logit of each other operation against paint
    same_cell_bias: float = 3.0  # cells, residual_cnn: first logit of "the second corner is the first"


@dataclass(frozen=True)
class AnswerConfig(CheckedConfig):
    """The source of the answer that a policy edits towards, and the training of its predictor."""

    source: Literal["shown", "predicted", "searched"] = "shown"  # hidden: predicted by a network, or searched
    batch_size: int = limited(16, low=1)  # puzzles in a batch of the predictor
    batches_per_update: int = limited(4, low=1)  # batches of the predictor for each update of the policy
    learning_rate: float = limited(3e-3, low=0.0, high=1.0)  # rate of the predictor, falls to 0 along a cosine
    hidden_size: int = limited(48, low=2)  # hidden units of the predictor's layers
    search_seconds: float = limited(600.0, low=0.0)  # limit of one program search; a cut depends on the clock
    search_processes: int = limited(1, low=1)  # searches side by side; a script with more needs a guarded main

    @property
    def is_hidden(self) -> bool:
        """Whether the policy does not see the answer when it is measured."""
        return self.source != "shown"


@dataclass(frozen=True)
class CloningConfig(CheckedConfig):
    """The behavior cloning of an expert before reinforcement learning."""

    num_updates: int = limited(0, low=0)  # updates of imitation, as large as an agent's; 0: none
    learning_rate: float = limited(4e-3, low=0.0, high=1.0)  # rate of Adam at the start; falls linearly to 0
    traces: str = ""  # a file of `jaxarc traces export` whose actions are imitated, instead of the greedy painter's
    learner_share: float = limited(0.5, low=0.0, high=1.0)  # share of environments in which the learner acts

    def validate(self) -> list[str]:
        if self.traces and not self.num_updates:
            return [f"traces={self.traces!r} is imitated in num_updates updates, got 0; choose some, such as 200"]
        return []


@dataclass(frozen=True)
class ScheduleConfig(CheckedConfig):
    """Learning rate and entropy weight over the course of a run."""

    learning_rate: float = limited(4e-3, low=0.0, high=1.0)  # rate of Adam at the start
    final_learning_rate: float = limited(2e-4, low=0.0)  # rate at the end, not with "constant"; avoids a late collapse
    decay: Decay = "linear"
    warmup_share: float = limited(0.0, low=0.0, high=0.9)  # share of the run in which the rate rises linearly from 0
    entropy_weight: float = limited(0.01, low=0.0, high=_MAX_WEIGHT)  # weight at the start; higher explores more
    final_entropy_weight: float = limited(0.01, low=0.0, high=_MAX_WEIGHT)  # weight at the end; linear in between

    def validate(self) -> list[str]:
        return not_above_learning_rate(self.final_learning_rate, self.learning_rate)


@dataclass(frozen=True)
class TaskConfig(CheckedConfig):
    """The tasks that an agent learns from, and those that evaluate it."""

    train_dataset: str = "arc-agi-1/training"  # a name or a path; procedural/a+b draws new tasks of rules a and b
    evaluation_dataset: str = "arc-agi-1/evaluation"  # only evaluated, never learned from
    min_side: int = limited(1, low=1, high=MAX_GRID_SIZE)  # rows and columns of the smallest grids that rules make
    max_side: int = limited(5, low=1, high=MAX_GRID_SIZE)  # tasks with a longer side, in any pair, are left out
    canvases: tuple[int, ...] | Literal["auto"] = ()  # sides, such as [10,15,20,30]: each task on the smallest; or auto
    num_demonstrations: int = limited(3, low=1, high=MAX_TRACKED_PAIRS - 1)  # pairs of a rule besides the played one
    num_unseen: int = limited(512, low=1, high=2**20)  # evaluation tasks of each rule, for a procedural dataset

    def validate(self) -> list[str]:
        problems = []
        if self.min_side > self.max_side:
            problems.append(
                f"min_side must be in [1, {self.max_side}], where max_side is {self.max_side}; got {self.min_side}"
            )
        sides = () if self.canvases == "auto" else self.canvases
        if unordered := _unordered_sides(sides):
            problems += unordered
        elif sides and sides[-1] < self.max_side:
            problems.append(f"the last of canvases must hold max_side={self.max_side}, got {spell(list(sides))}")
        if self.canvases and self.train_dataset.startswith("procedural/"):
            problems.append(
                f"canvases are for tasks that stand in files, and train_dataset={self.train_dataset!r} makes new ones "
                "on one canvas; leave canvases out"
            )
        return problems

    def too_large_for(self, grid_shape: tuple[int, int]) -> list[str]:
        """Say in one sentence if tasks may be larger than a canvas."""
        height, width = grid_shape
        if self.max_side <= min(height, width):
            return []
        return [
            f"task.max_side must fit the canvas, dataset.max_grid_height x dataset.max_grid_width = {height}x{width}, "
            f"got {self.max_side}"
        ]


def _unordered_sides(sides: tuple[int, ...]) -> list[str]:
    if any(not 1 <= side <= MAX_GRID_SIZE for side in sides) or list(sides) != sorted(set(sides)):
        return [f"canvases must rise within 1 .. {MAX_GRID_SIZE}, got {spell(list(sides))}"]
    return []


@dataclass(frozen=True)
class GameConfig(CheckedConfig):
    """The game that an agent learns in place of editing; an episode plays one level."""

    name: str = ""  # a game of `jaxarc games list`; empty: the agent edits grids
    num_sets: int = limited(0, low=0, high=2**15)  # of random levels, learned beside the game's own; 0: none
    num_unseen: int = limited(32, low=1, high=2**15)  # sets of random levels that are only measured
    max_steps: int = limited(50, low=1)  # of an episode


@dataclass(frozen=True)
class TrainingConfig(CheckedConfig):
    """The length of a training run, and how often it reports and evaluates."""

    seed: int = limited(0, low=0, high=2**31 - 1)  # seed of the first agent; the others take the next numbers
    num_seeds: int = limited(1, low=1)  # K, agents that learn side by side, each from its own seed
    total_steps: int = limited(1_000_000, low=1)  # environment steps of each seed; the learning rate decays over them
    max_seconds: float | None = limited(None, low=0)  # stop earlier, counted without compilation
    stop_at_solve_rate: float | None = limited(None, low=0.01, high=1.0)  # stop once every seed solves it of both sets
    updates_per_report: int = limited(4, low=1)  # updates in one compiled call, which ends with a report
    reports_per_evaluation: int = limited(1, low=1)  # reports between two evaluations, on every pair of both sets
    compilation_cache: bool = True  # use the programs that earlier commands compiled; false compiles anew

    @property
    def seeds(self) -> range:
        """One for each agent."""
        return range(self.seed, self.seed + self.num_seeds)

    def validate(self) -> list[str]:
        high = 2**31 - self.num_seeds  # the last seed fits 31 bits
        return [] if self.seed <= high else [f"seed must be in [0, {high}], got {self.seed}"]


@dataclass(frozen=True)
class CurriculumConfig(CheckedConfig):
    """The weights by which training draws its tasks."""

    kind: Literal["uniform", "learnability", "replay"] = "uniform"  # base weights; half-solved first; by score and age
    uniform_share: float = limited(0.2, low=0.0, high=1.0)  # share of draws by base weights; not of kind uniform
    temperature: float = limited(1.0, low=0.01)  # weight ** (1 / temperature) of learnability or rank; low is greedy
    staleness_share: float = limited(0.1, low=0.0, high=1.0)  # replay: share of draws by the time since the last play
    decay: float = limited(0.9, low=0.0, high=0.9999)  # success rates are means over about 1 / (1 - decay) episodes
    prior_success: float = limited(0.5, low=0.01, high=0.99)  # success rate of a task that was never played


def _augmentation_of_votes() -> AugmentationConfig:
    return AugmentationConfig(symmetries="all", recolor="keep_black", shuffle_demos=True)


@dataclass(frozen=True)
class EvaluationConfig(CheckedConfig):
    """The evaluation of an agent: attempts, votes, canvases and batch size."""

    attempts: int = limited(2, low=1, high=1000)  # k, grids for each test input: 2 in the ARC Prize, 3 in 2019
    votes: int = limited(0, low=0)  # augmented episodes of each test input that vote for the attempts; 0: no vote
    augmentation: AugmentationConfig = field(default_factory=_augmentation_of_votes)  # of the episodes that vote
    canvases: tuple[int, ...] | Literal["auto"] = ()  # sides: each task on the smallest that holds its tests; or auto
    batch_size: int = limited(1024, low=1)  # episodes side by side on the device
    seed: int = limited(0, low=0, high=2**31 - 1)

    def validate(self) -> list[str]:
        problems = [] if self.canvases == "auto" else _unordered_sides(self.canvases)
        if 0 < self.votes < self.attempts:
            problems.append(f"votes must be 0, or at least attempts={self.attempts}, got {self.votes}")
        return problems


@dataclass(frozen=True)
class ParallelConfig(CheckedConfig):
    """The devices of a run, what is split over them, and the processes they belong to."""

    num_devices: int = limited(1, low=0)  # devices that share the work, 0: all; another number rounds differently
    over: Literal["seeds", "environments"] = "seeds"  # whole agents to each device, or environments of every agent
    multihost: bool = False  # one of several processes that share the work; SLURM fills what is null below
    coordinator_address: str | None = None  # host:port of process 0, to which all processes connect
    num_processes: int | None = limited(None, low=1)  # how many there are
    process_id: int | None = limited(None, low=0)  # 0 .. num_processes - 1, of this process; only 0 writes and prints
    connect_seconds: int = limited(300, low=1)  # time limit for all processes to connect
    heartbeat_seconds: int = limited(100, low=1)  # silence after which a process counts as lost, and the others end

    def validate(self) -> list[str]:
        return self._check_multihost() if self.multihost else self._check_single_process()

    def _check_single_process(self) -> list[str]:
        given = [name for name in _PROCESS_FIELDS if getattr(self, name) is not None]
        return [f"{' and '.join(given)} need multihost=true; choose parallel=multihost"] if given else []

    def _check_multihost(self) -> list[str]:
        problems = []
        address = self.coordinator_address
        count = self.num_processes
        if address is not None and not _ADDRESS.fullmatch(address):
            problems.append(f"coordinator_address must be host:port, such as node1:1234, got {address!r}")
        if count is not None and self.num_devices % count:
            problems.append(
                f"num_devices counts those of all processes, so it must be a multiple of num_processes, or 0 for "
                f"all there are; got {self.num_devices} and {count}"
            )
        if self.process_id is not None and count is not None and self.process_id >= count:
            problems.append(f"process_id must be 0 .. num_processes - 1, got {self.process_id} of {count} processes")
        return problems


@dataclass(frozen=True)
class CheckpointConfig(CheckedConfig):
    """The interval of checkpoints, and the ones that are kept."""

    min_seconds: float = limited(10.0, low=0.0)  # learning time between two checkpoints; 0 saves at each report
    keep_last: int = limited(2, low=1)  # the newest; one more than is needed, in case the newest is damaged
    keep_best: int = limited(1, low=0)  # the highest evaluation_solve_rate (surrogate: agreement), mean of seeds


@dataclass(frozen=True)
class LoggingConfig(CheckedConfig):
    """The folder of a run, and the services that get its reports."""

    run_root: str = "runs"  # the folder that holds the run folders
    run_name: str = "ppo"  # ends the run folder's name, after date and time
    tensorboard: bool = False  # also write the run folder's tensorboard/, one curve a seed; needs tensorboardX
    wandb: bool = False  # also send reports to Weights & Biases, as WANDB_MODE says; needs wandb
    wandb_project: str = "jaxarc"  # the project there
    writers: tuple[str, ...] = ()  # log writers of your own, each module:class

    def validate(self) -> list[str]:
        problems = []
        from jaxarc.files import file_name  # which the core does not load

        if file_name(self.run_name) != self.run_name:
            problems.append(
                "run_name must be a folder's name on every system, not empty, no path, not hidden; got "
                f"{self.run_name!r:.80}, write {file_name(self.run_name)!r}"
            )
        if not self.wandb_project:
            problems.append("wandb_project must not be empty")
        wrong = [name for name in self.writers if re.fullmatch(r"[\w.]+:\w+", name) is None]
        return problems + [f"writers must each be module:class, got {name!r}" for name in wrong]


MAX_COST: Final = 12  # of a state, whatever the budget
MAX_STATES: Final = 5_000_000  # of a naming of the colors


@dataclass(frozen=True)
class SearchConfig(CheckedConfig):
    """How far a search goes at one test input; one that reaches a limit answers with what it has."""

    max_cost: int = limited(6, low=0, high=MAX_COST)  # of a state: an image function costs 2, one of a list 1
    max_states: int = limited(400_000, low=1, high=MAX_STATES)  # different states of each naming of the colors
    megabytes: int = limited(1000, low=1)  # of memory for the states of all namings
    seconds: float = limited(30.0, low=0.0)  # after which no function is applied any more
    answers: int = limited(2, low=1, high=100)  # different answers at most
    sizes: int = limited(2, low=1, high=10)  # guesses of the answer's size


def not_above_learning_rate(final: float, highest: float) -> list[str]:
    """Say that a learning rate ends higher than it starts; empty when it does not."""
    if final <= highest:
        return []
    return [f"final_learning_rate must be in [0.0, {highest}], where learning_rate is {highest}; got {final}"]
