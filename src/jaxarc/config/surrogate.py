"""How a surrogate of an expert looks at its data, how large it is, and how it is trained."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range, one_of
from jaxarc.config.schedule import DECAYS

READINGS = ("colors", "samples")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class SurrogateNetworkConfig(CheckedConfig):
    reading: str = "colors"  # data are a grid of colors, or "samples" of variables, of which the moments count
    latent_size: int = 64  # C, channels of a cell
    num_layers: int = 3
    num_heads: int = 4  # of each attention; divides latent_size
    remat_every: int = 0  # layers between two activations that are kept for the gradient; 0 keeps all of all layers

    def validate(self) -> list[str]:
        problems = [
            *one_of("reading", self.reading, READINGS),
            *at_least("latent_size", self.latent_size, 1),
            *at_least("num_layers", self.num_layers, 1),
            *at_least("num_heads", self.num_heads, 1),
            *at_least("remat_every", self.remat_every, 0),
        ]
        if not problems and self.latent_size % self.num_heads:
            problems.append(f"num_heads must divide latent_size, got {self.num_heads} and {self.latent_size}")
        if not problems and self.remat_every and self.num_layers % self.remat_every:
            problems.append(f"remat_every must divide num_layers, got {self.remat_every} and {self.num_layers}")
        return problems


@dataclass(frozen=True)
class SurrogateTrainingConfig(CheckedConfig):
    num_steps: int = 1000  # over which the learning rate decays
    learning_rate: float = 2e-3  # highest, of AdamW
    final_learning_rate: float = 2e-5  # reached at the end, except by "constant"
    decay: str = "cosine"
    warmup_steps: int = 50  # in which the learning rate first rises from 0 in a straight line
    weight_decay: float = 1e-4
    max_grad_norm: float = 1.0
    accumulation_steps: int = 1  # parts that a batch is worked through in, one after the other, to save memory
    precision: str = "float32"  # of the model's computation; parameters, their gradients and sums stay float32
    weight_by_accuracy: bool = True  # an example counts as much as its expert was right

    def validate(self) -> list[str]:
        problems = [
            *at_least("num_steps", self.num_steps, 1),
            *in_range("learning_rate", self.learning_rate, 0.0, 1.0),
            *in_range("final_learning_rate", self.final_learning_rate, 0.0, self.learning_rate),
            *one_of("decay", self.decay, DECAYS),
            *at_least("warmup_steps", self.warmup_steps, 0),
            *in_range("weight_decay", self.weight_decay, 0.0, 1.0),
            *in_range("max_grad_norm", self.max_grad_norm, 1e-6, 1e6),
            *at_least("accumulation_steps", self.accumulation_steps, 1),
            *one_of("precision", self.precision, PRECISIONS),
        ]
        if not problems and self.warmup_steps >= self.num_steps and self.warmup_steps:
            problems.append(f"warmup_steps must be below num_steps, got {self.warmup_steps} and {self.num_steps}")
        return problems


@dataclass(frozen=True)
class StructuralModelConfig(CheckedConfig):
    """Linear structural models, all graphs alike likely: each variable is a weighted sum of its parents, and noise."""

    num_variables: int = 5  # d
    max_parents: int = 2  # of a variable
    num_samples: int = 20  # N, of each model
    weight_scale: float = 1.0  # standard deviation of a weight
    noise_scale: float = 1.0  # standard deviation of the noise, and of a variable that is set from outside
    intervention_share: float = 0.0  # chance that a sample has one variable set from outside

    def validate(self) -> list[str]:
        problems = [
            *in_range("num_variables", self.num_variables, 2, 5),  # all graphs are listed: 29 281 of five variables
            *in_range("max_parents", self.max_parents, 1, 4),
            *at_least("num_samples", self.num_samples, 1),
            *in_range("weight_scale", self.weight_scale, 1e-3, 1e3),
            *in_range("noise_scale", self.noise_scale, 1e-3, 1e3),
            *in_range("intervention_share", self.intervention_share, 0.0, 1.0),
        ]
        if not problems and self.max_parents >= self.num_variables:
            problems.append(f"max_parents must be below num_variables, got {self.max_parents} and {self.num_variables}")
        return problems
