"""The rows of ``jaxarc benchmark surrogate`` on decisions: the quick surrogate against the lookahead expert."""

import functools
from collections.abc import Callable, Mapping
from typing import Final

from jaxarc.benchmarks.decision_speed import NUM_CANDIDATES, DecisionSpeed
from jaxarc.benchmarks.row import Row
from jaxarc.benchmarks.shared_samples import SharedSamples
from jaxarc.benchmarks.workbench import Effort, Measure

_TIMES_AS_FAST: Final = 20.0


def decision_rows(make_speed: Callable[[], DecisionSpeed] = DecisionSpeed) -> list[Row]:
    """List the rows.

    Args:
        make_speed: makes what is measured, when the first row is.
    """
    speed = functools.cache(make_speed)

    def sample(effort: Effort) -> Mapping[str, float]:
        told = speed().per_second(effort.seconds)
        return told | {
            "ratio": told["surrogate"] / told["expert"],
            "steps-ratio": told["surrogate"] / told["steps"],
            "drawing-ratio": told["drawing-surrogate"] / told["drawing-expert"],
        }

    samples = SharedSamples(sample)
    measure: Callable[[str], Measure] = lambda name: functools.partial(samples.sample, name=name)
    unit = "decisions/s"
    return [
        Row("decisions-expert", f"lookahead expert, {NUM_CANDIDATES} drawn candidates, 10x10", unit, measure("expert")),
        Row("decisions-surrogate", "quick surrogate on the same ones", unit, measure("surrogate")),
        Row("decisions-ratio", "how many times as fast as the expert", "times", measure("ratio"), _TIMES_AS_FAST),
        Row("decisions-steps", "an expert that takes a step for each candidate", unit, measure("steps")),
        Row("decisions-steps-ratio", "surrogate over that expert", "times", measure("steps-ratio"), _TIMES_AS_FAST),
        Row("decisions-drawing-expert", "drawing candidates, then the expert", unit, measure("drawing-expert")),
        Row("decisions-drawing-surrogate", "drawing them, then the surrogate", unit, measure("drawing-surrogate")),
        Row("decisions-drawing-ratio", "ratio of the two: drawing bounds it", "times", measure("drawing-ratio")),
    ]
