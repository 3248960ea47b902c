"""The names of the checklist exist: functions and classes, settings of runs, statuses."""

import pkgutil
import re
from pathlib import Path

import pytest

from jaxarc.cli.settings import SURROGATE_RUN, TOPICS

PAGE = (Path(__file__).parents[2] / "docs" / "checklist.md").read_text(encoding="utf-8")
TOPIC_OF = {**SURROGATE_RUN.topics, **TOPICS}
DOTTED = re.compile(r"`((?:jaxarc|" + "|".join(TOPIC_OF) + r")(?:\.\w+)+)`")
STATUSES = {"done", "partly", "not done"}


def exists(name):
    """Whether a dotted name is that of an object of ours, or of a field of a topic."""
    first, *rest = name.split(".")
    if first in TOPIC_OF:
        return len(rest) == 1 and rest[0] in TOPIC_OF[first].__dataclass_fields__
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("name", sorted(set(DOTTED.findall(PAGE))))
def test_each_name_of_the_checklist_exists(name):
    assert exists(name)


@pytest.mark.parametrize(
    "name", ["jaxarc.nn.no_such", "jaxarc.nothing.at_all", "network.no_such", "network.precision.x"]
)
def test_a_name_that_is_not_there_is_found(name):
    assert not exists(name)


def test_each_habit_has_a_status():
    habits = PAGE.partition("## Habits")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in habits.splitlines() if line[:2] == "| "][
        1:
    ]
    statuses = [status for habit, status, _ in rows if not habit.startswith("**")]
    assert len(statuses) == 25
    assert set(statuses) == STATUSES
