import io
from pathlib import Path

import pytest
from rich.console import Console

from jaxarc.agents import Report
from jaxarc.cli.presenter import LiveReports
from jaxarc.cli.settings import read_experiment
from jaxarc.runs import RunFolder
from jaxarc.runs.kind import kind_of
from jaxarc.runs.presentation import mean_number, mean_share, range_share


def shown(num_seeds, *reports):
    output = io.StringIO()
    experiment = read_experiment(
        [
            *("experiment=small_grids", f"training.num_seeds={num_seeds}"),
            *("training.updates_per_report=4", "training.total_steps=1"),
        ]
    )
    kind = kind_of(experiment)
    presentation = kind.presentation(kind.load(experiment), RunFolder(Path()))
    progress = LiveReports(presentation, num_seeds, Console(file=output, width=200))
    for report in reports:
        progress.write(report)
    progress.close()
    return [line.rstrip() for line in output.getvalue().splitlines() if line.strip()]


def test_several_seeds_are_one_line_of_means_ranges_and_the_speed_of_all():
    reports = [
        Report(4, 64, 1.0, seed, 2000.0, mean_return=float(seed), evaluation_solve_rate=rate)
        for seed, rate in enumerate((0.25, 0.5, 1.0))
    ]
    assert shown(3, *reports)[1:] == ["update 4/4  6k steps/s  return 1.00  solved: evaluation 58 % (25-100)"]
    assert shown(3, *reports[:2]) == ["compiling ..."]


def test_a_first_report_says_that_learning_is_still_being_compiled():
    first = Report(0, 0, 0.0, seed=0, evaluation_solve_rate=0.0)
    assert shown(1, first)[1:] == ["update 0/4  solved: evaluation 0 %  compiling ..."]


@pytest.mark.parametrize(
    ("write", "values", "text"),
    [
        (mean_share, [0.5], "50.0 %"),
        (mean_share, [0.5, 0.7], "60.0 ± 14.1 %"),
        (mean_share, [None, None], "-"),
        (mean_share, [None, 0.5], "50.0 %"),
        (mean_number, [1.0, 2.0, 3.0], "2.000 ± 1.000"),
        (range_share, [0.5, 0.7], "60 % (50-70)"),
        (range_share, [], "-"),
    ],
)
def test_spread_is_reported_where_there_is_one(write, values, text):
    assert write(values) == text
