"""Which expert a surrogate learns from, which models it has, and how long a run of it goes between reports."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range, one_of

PROBLEMS = ("parent_sets", "lookahead")
MODELS = ("candidates", "transition", "both")


@dataclass(frozen=True)
class SurrogateConfig(CheckedConfig):
    problem: str = "parent_sets"  # exact posterior of structural models; lookahead: the expert that edits ARC grids
    model: str = "candidates"  # the expert's opinion of candidates; transition: what an action does; both side by side
    seed: int = 0  # of the first weights and of all examples that are learned from
    steps_per_report: int = 50  # after which metrics are reported, as means over these steps
    reports_per_measurement: int = 2  # the held-out examples are measured after so many reports
    max_seconds: float | None = None  # stop earlier, counted without compilation and measuring
    buffer_size: int = 4  # batches that wait, made ahead of time
    compilation_cache: bool = False  # keep compiled programs in the user's cache folder for the next run

    def validate(self) -> list[str]:
        problems = [
            *one_of("problem", self.problem, PROBLEMS),
            *one_of("model", self.model, MODELS),
            *in_range("seed", self.seed, 0, 2**31 - 2),  # the next one is that of the held-out examples
            *at_least("steps_per_report", self.steps_per_report, 1),
            *at_least("reports_per_measurement", self.reports_per_measurement, 1),
            *at_least("buffer_size", self.buffer_size, 1),
        ]
        if self.max_seconds is not None:
            problems += at_least("max_seconds", self.max_seconds, 0)
        return problems
