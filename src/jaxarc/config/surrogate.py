"""The choices of a surrogate run: the expert, the models, their training, and the devices."""

from dataclasses import dataclass
from typing import Final, Literal

from jaxarc.config.agent_training import Decay, Precision, not_above_learning_rate
from jaxarc.config.build import CheckedConfig, limited


@dataclass(frozen=True)
class SurrogateConfig(CheckedConfig):
    """The expert that a surrogate learns from, and how often a run reports."""

    problem: Literal["parent_sets", "graphs", "lookahead", "rules"] = "lookahead"  # two of models; two of ARC
    seed: int = limited(0, low=0, high=2**31 - 2)  # seed of weights and examples; held-out examples use seed + 1
    steps_per_report: int = limited(50, low=1)  # after which metrics are reported, as means over these steps
    reports_per_evaluation: int = limited(2, low=1)  # reports between two evaluations on the held-out examples
    max_seconds: float | None = limited(None, low=0)  # stop earlier, counted without compilation and evaluations
    buffer_size: int = limited(4, low=1)  # batches that are made ahead of time
    compilation_cache: bool = True  # use the programs that earlier commands compiled; false compiles anew


@dataclass(frozen=True)
class SurrogateNetworkConfig(CheckedConfig):
    """The size of the network of parent_sets and graphs; lookahead has none."""

    latent_size: int = limited(64, low=1)  # C, channels of a pair of variables
    num_layers: int = limited(3, low=1)
    num_heads: int = limited(4, low=1)  # heads of each attention; divides latent_size
    remat_every: int = limited(0, low=0)  # layers between two activations that are kept for the gradient; 0 keeps all

    def validate(self) -> list[str]:
        problems = []
        if self.latent_size % self.num_heads:
            problems.append(f"num_heads must divide latent_size, got {self.num_heads} and {self.latent_size}")
        if self.remat_every and self.num_layers % self.remat_every:
            problems.append(f"remat_every must divide num_layers, got {self.remat_every} and {self.num_layers}")
        return problems


@dataclass(frozen=True)
class SurrogateTrainingConfig(CheckedConfig):
    """The optimizer of a surrogate, its schedule and its precision."""

    num_steps: int = limited(1000, low=1)  # over which the learning rate decays
    learning_rate: float = limited(2e-3, low=0.0, high=1.0)  # highest, of AdamW
    final_learning_rate: float = limited(2e-5, low=0.0)  # rate at the end, except with "constant"
    decay: Decay = "cosine"
    warmup_steps: int = limited(50, low=0)  # steps in which the learning rate rises linearly from 0
    weight_decay: float = limited(1e-4, low=0.0, high=1.0)
    max_grad_norm: float = limited(1.0, low=1e-6, high=1e6)
    accumulation_steps: int = limited(1, low=1)  # parts of a batch, one after the other: saves memory; CPUs run faster
    precision: Precision = "float32"  # precision of products; parameters stay float32
    train_step: Literal["adaptive", "compiled", "plain"] = "adaptive"  # compile and fall back; or fail; do not compile
    weight_by_accuracy: bool = False  # weight each example by its expert's probability of what is right

    def validate(self) -> list[str]:
        problems = not_above_learning_rate(self.final_learning_rate, self.learning_rate)
        if self.warmup_steps >= self.num_steps and self.warmup_steps:
            problems.append(f"warmup_steps must be below num_steps, got {self.warmup_steps} and {self.num_steps}")
        return problems


MAX_VARIABLES: Final = 50  # of a structural model
MAX_LISTED_VARIABLES: Final = 5  # of which all graphs are listed: 29 281 of five variables, 3.8 million of six


@dataclass(frozen=True)
class StructuralModelConfig(CheckedConfig):
    """Structural models: each variable is a sum of its parents' effects, and noise."""

    num_variables: int = limited(5, low=2, high=MAX_VARIABLES)  # d; surrogate=parent_sets takes up to 5
    max_parents: int = limited(2, low=1, high=49)  # parents of a variable at most
    edges_per_variable: float = limited(1.5, low=0.1)  # expected, before max_parents; parent_sets: graphs alike likely
    mechanism: Literal["linear", "nonlinear"] = "linear"  # a parent's effect: a weight, or a random smooth function
    num_samples: int = limited(20, low=1)  # N, of each model
    weight_scale: float = limited(1.0, low=1e-3, high=1e3)  # standard deviation of a weight, or of an effect
    noise_scale: float = limited(1.0, low=1e-3, high=1e3)  # standard deviation of noise, and of an intervened variable
    intervention_share: float = limited(0.0, low=0.0, high=1.0)  # chance that a sample has an intervention

    def validate(self) -> list[str]:
        if self.max_parents < self.num_variables:
            return []
        return [f"max_parents must be below num_variables, got {self.max_parents} and {self.num_variables}"]


@dataclass(frozen=True)
class ParentSetsConfig(CheckedConfig):
    """The numbers of structural models in a batch and held out."""

    models_per_batch: int = limited(20, low=1)  # structural models in a batch, each with an example for every variable
    eval_models: int = limited(400, low=1)  # held out from training


@dataclass(frozen=True)
class GraphsConfig(CheckedConfig):
    """The numbers of structural models in a batch and held out, and the share without interventions."""

    models_per_batch: int = limited(32, low=1)  # structural models in a batch
    observational_share: float = limited(0.5, low=0.0, high=1.0)  # share of models in which no variable is set
    eval_models: int = limited(400, low=1)  # held out from training


@dataclass(frozen=True)
class LookaheadConfig(CheckedConfig):
    """The examples of the lookahead expert: how many candidates, how sharp its opinion, and which states."""

    num_candidates: int = limited(256, low=1)  # k, drawn in each state
    temperature: float = limited(0.01, low=1e-4, high=10.0)  # softmax of similarities; a cell of 10x10 is 0.01
    num_examples: int = limited(256, low=1)  # B, of a batch
    episode_steps: int = limited(8, low=1)  # consecutive states that are taken from an episode; divides num_examples
    random_share: float = limited(0.25, low=0.0, high=1.0)  # chance that the next action is any of the candidates
    num_eval: int = limited(4096, low=1)  # examples on held-out pairs

    def validate(self) -> list[str]:
        return _not_divided(self, "episode_steps", ("num_examples", "num_eval"))


@dataclass(frozen=True)
class RulesConfig(CheckedConfig):
    """The tasks whose answers are predicted: the rules to learn from, and those to measure."""

    learned: str = "rules/train"  # of `jaxarc tasks generate rules train --held-out 1000`
    measured: tuple[str, ...] = ("rules/train-arguments", "rules/train-compositions", "rules/train-words")
    side: int = limited(10, low=1, high=30)  # of the canvas; larger tasks are left out
    puzzles_per_batch: int = limited(32, low=1)  # B
    hidden_size: int = limited(48, low=2)  # units of the predictor's layers

    def validate(self) -> list[str]:
        return [] if self.measured else ["measured must name a set at least, such as rules/train-words"]


@dataclass(frozen=True)
class SurrogateMeshConfig(CheckedConfig):
    """The devices that a surrogate learns on, and what is split over them."""

    data_devices: int = limited(1, low=1)  # devices that each batch is split over
    model_devices: int = limited(1, low=1)  # devices that each matrix is split over
    stages: int = limited(1, low=1)  # devices that the layers are split over, one behind the other
    parts: int = limited(4, low=1)  # parts of a batch, one after the other; take several times as many as stages

    @property
    def num_devices(self) -> int:
        """All of them together."""
        return self.data_devices * self.model_devices * self.stages

    def validate(self) -> list[str]:
        if self.model_devices == 1 or self.stages == 1:
            return []
        return [
            f"weights are split either over model_devices or over stages, got {self.model_devices} and "
            f"{self.stages}; leave one of them at 1"
        ]


def _not_divided(config: CheckedConfig, divisor: str, names: tuple[str, ...]) -> list[str]:
    """Say which of the fields ``names`` are no multiple of the field ``divisor``."""
    each = getattr(config, divisor)
    sizes = {name: getattr(config, name) for name in names}
    return [f"{divisor} must divide {name}, got {each} and {size}" for name, size in sizes.items() if size % each]
