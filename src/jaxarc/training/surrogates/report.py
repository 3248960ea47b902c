"""What a run of a surrogate reports while it goes on, one line of JSON each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SurrogateReport:
    """How a surrogate stands; None where a model is not trained, or was not measured since the last report."""

    update: int  # steps so far
    examples: int  # learned from so far
    seconds: float  # of learning, without compilation, measuring and saving
    seed: int = 0
    examples_per_second: float | None = None
    total_loss: float | None = None  # of the candidates' model: mean over the steps since the last report, in nats
    batch_top1_agreement: float | None = None  # of the examples learned from, weighted as the loss is
    gradient_norm: float | None = None  # before it is clipped
    transition_total_loss: float | None = None  # of the model of steps: nats a cell, and the reward's squared error
    transition_exact_grids: float | None = None  # share of next grids right in every cell, of those learned from
    transition_gradient_norm: float | None = None
    kl: float | None = None  # on held-out examples: KL(expert || surrogate), in nats
    top1_agreement: float | None = None  # on them: share whose first choice is one that the expert likes best
    top5_agreement: float | None = None
    regret: float | None = None  # on them: score of the expert's best minus score of the first choice
    calibration_error: float | None = None
    exact_grid_accuracy: float | None = None  # on held-out steps: share of next grids right in every cell
    cell_accuracy: float | None = None  # on them: share of cells
    kept_grid_accuracy: float | None = None  # on them: share that is right when nothing is expected to change
    reward_error: float | None = None  # on them: mean distance

    @property
    def samples(self) -> int:
        return self.examples

    @property
    def score(self) -> float | None:
        """The agreement, or without a model of candidates the accuracy, the higher the better."""
        return self.exact_grid_accuracy if self.kl is None else -self.kl
