"""Faults that people reported in published tasks: as metadata, the tasks stay as they were published."""

import dataclasses
from typing import Final

_AGI_1: Final = "https://github.com/fchollet/ARC-AGI"
_AGI_2: Final = "https://github.com/arcprize/ARC-AGI-2"
_FIRST: Final = "arc-agi-1/evaluation@kaggle2019"
_EVALUATION: Final = ("arc-agi-1/evaluation@aa922be", "arc-agi-1/evaluation@kaggle2024", _FIRST)
_TRAINING_2: Final = ("arc-agi-2/training@f3283f7", "arc-agi-2/training@kaggle2025")
_EVALUATION_2: Final = ("arc-agi-2/evaluation@f3283f7", "arc-agi-2/evaluation@kaggle2025")
# ARC-AGI-2's training set took over most tasks of ARC-AGI-1, with their faults; only the pairs are in another order.
_BOTH: Final = (*_EVALUATION, *_TRAINING_2)


@dataclasses.dataclass(frozen=True)
class Erratum:
    """One report about one task; pairs are counted from 1, as the reports do, in the order of ARC-AGI-1 or 2."""

    task_id: str
    report: str  # what is said to be wrong
    source: str  # where it was said
    present_in: tuple[str, ...]  # names of datasets with a version, in which the task is still as reported


# What a correction changed was seen by comparing kaggle2019 with aa922be: the cells that differ are the reported ones.
ERRATA: Final = (
    Erratum(
        "05a7bcf2", "output 1: two red cells too many at the right-most red shape", f"{_AGI_1}/issues/123", (_FIRST,)
    ),
    Erratum("20818e16", "output 3 has one row too many", f"{_AGI_1}/issues/63", (_FIRST,)),
    Erratum("3ee1011a", "input 1: the green bar is 4 long and should be 3", f"{_AGI_1}/issues/123", _BOTH),
    Erratum(
        "4852f2fa", "output 1: one cell of the second copy is in the wrong place", f"{_AGI_1}/issues/123", (_FIRST,)
    ),
    Erratum("58e15b12", "a cell of the test output has the wrong color", f"{_AGI_1}/pull/87", (_FIRST,)),
    Erratum(
        "85fa5666", "output 2: the diagonal at the lower left lacks its two orange cells", f"{_AGI_1}/issues/123", _BOTH
    ),
    Erratum("9def23fe", "output 1: two red cells at the upper left should be black", f"{_AGI_1}/issues/123", (_FIRST,)),
    Erratum("b0f4d537", "output 1: the middle line stands one column too far left", f"{_AGI_1}/issues/63", (_FIRST,)),
    Erratum("c35c1b4c", "output 3: a red cell is missing", f"{_AGI_1}/issues/123", (_FIRST,)),
    Erratum("d2acf2cb", "demonstration 2: input and output are swapped", f"{_AGI_1}/issues/123", _BOTH),
    Erratum(
        "e6de6e8f",
        "outputs 3 and 4: the red path is wrong; later versions left out the third pair and kept the fourth",
        f"{_AGI_1}/issues/123",
        _BOTH,
    ),
    Erratum("e7b06bea", "output 3: two gray cells are missing", f"{_AGI_1}/pull/85", (_FIRST,)),
    Erratum(
        "b230c067",
        "two demonstrations leave the rule open; a third was added later",
        f"{_AGI_1}/issues/97",
        ("arc-agi-1/training@kaggle2019",),
    ),
    Erratum("0d87d2a6", "several answers are plausible", f"{_AGI_2}/pull/42", _BOTH),
    Erratum(
        "31f7f899", "a bar is 4 high above and 3 below, which leaves the rule open", f"{_AGI_2}/issues/3", _EVALUATION_2
    ),
    Erratum("a6f40cea", "demonstration 3 allows several outputs", f"{_AGI_2}/issues/63", _EVALUATION_2),
)


def known_issues(dataset_name: str) -> dict[str, Erratum]:
    """Return what was reported about the tasks of a dataset and is still to be seen in that version, by task id.

    A report is somebody's reading of a task; the publishers did not confirm each one.

    Args:
        dataset_name: with or without a version; without one, any version of the dataset counts.
    """
    return {
        erratum.task_id: erratum
        for erratum in ERRATA
        if any(dataset_name in (name, name.partition("@")[0]) for name in erratum.present_in)
    }
