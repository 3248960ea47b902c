import dataclasses
import re
from dataclasses import dataclass

import pytest
from run_command import run_command

from jaxarc.cli.settings import topics_in
from jaxarc.cli.train_help import comments_of
from jaxarc.config import CheckedConfig
from jaxarc.config.choices import EXPERIMENT, SURROGATE, choices_of

TOPICS = topics_in(EXPERIMENT) | topics_in(SURROGATE)


@dataclass(frozen=True)
class Example(CheckedConfig):
    first: int = 1  # steps, of one kind
    second: str = "# not this: one"
    third: float = 0.5  # with "quotes" and # signs

    def validate(self) -> list[str]:
        return []  # first: of no field


def printed(*arguments):
    """What a command prints on 100 columns."""
    return run_command("train", *arguments, columns=100).stdout


@pytest.fixture(scope="module")
def text():
    return printed("--fields")


def test_the_comment_beside_a_field_is_what_it_means():
    assert comments_of(Example) == {"first": "steps, of one kind", "third": 'with "quotes" and # signs'}


def test_every_group_is_there_with_its_choices_and_every_field_with_its_value(text):
    for group in TOPICS:
        line = next(line for line in text.splitlines() if line.startswith(f"{group} "))
        if group not in (EXPERIMENT, SURROGATE):
            assert all(choice in line for choice in choices_of(group)[:3])
    for kind in TOPICS.values():
        for field in dataclasses.fields(kind):
            assert re.search(rf"^  {field.name} +\S", text, re.MULTILINE), field.name


def test_the_help_is_short_and_has_presets_topics_and_common_fields():
    text = printed("--help")
    assert len(text.splitlines()) < 160
    for name in (*choices_of(EXPERIMENT), *choices_of(SURROGATE), *TOPICS):
        assert re.search(rf"^  {name} +\w", text, re.MULTILINE), name
    assert re.search(r"^  schedule.learning_rate +0.004 ", text, re.MULTILINE)
