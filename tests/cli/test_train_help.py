import contextlib
import dataclasses
import io
import re
from dataclasses import dataclass

import pytest

from jaxarc.cli.main import main
from jaxarc.cli.settings import EXPERIMENT, SURROGATE_RUN, TOPICS, choices_of
from jaxarc.cli.train_help import comments_of
from jaxarc.config import CheckedConfig


@dataclass(frozen=True)
class Example(CheckedConfig):
    first: int = 1  # steps, of one kind
    second: str = "# not this: one"
    third: float = 0.5  # with "quotes" and # signs

    def validate(self) -> list[str]:
        return []  # first: of no field


@pytest.fixture(scope="module")
def text():
    """The help as it is printed on 100 columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        output = io.StringIO()
        with contextlib.redirect_stdout(output), pytest.raises(SystemExit):
            main(["train", "--help"])
    return output.getvalue()


def test_the_comment_beside_a_field_is_what_it_means():
    assert comments_of(Example) == {"first": "steps, of one kind", "third": 'with "quotes" and # signs'}


def test_every_group_is_there_with_its_choices_and_every_field_with_its_value(text):
    for group in (EXPERIMENT, *TOPICS, *SURROGATE_RUN.topics):
        line = next(line for line in text.splitlines() if line.startswith(f"{group} "))
        if group not in (EXPERIMENT, SURROGATE_RUN.presets):
            assert all(choice in line for choice in choices_of(group)[:3])
    for name in (*choices_of(EXPERIMENT), *choices_of(SURROGATE_RUN.presets)):
        assert re.search(rf"^  {name} +\w", text, re.MULTILINE)
    for kind in (*TOPICS.values(), *SURROGATE_RUN.topics.values()):
        for field in dataclasses.fields(kind):
            assert re.search(rf"^  {field.name} +\S", text, re.MULTILINE), field.name


def test_values_are_those_of_a_run_without_overrides_as_the_command_line_takes_them(text):
    for line in ("max_episode_steps +100 ", "learning_rate +0.004 ", "reveal_target +true ", "max_seconds +null "):
        assert re.search(rf"^  {line}", text, re.MULTILINE), line


def test_no_line_is_wider_than_the_terminal(text):
    assert max(map(len, text.splitlines())) <= 100
