"""Every error class of the package derives from JaxarcError, whatever builtin kind it is."""

import ast
from pathlib import Path

import pytest

from jaxarc.cli.console import warn
from jaxarc.cli.main import main
from jaxarc.config import ConfigValidationError, JaxArcConfig
from jaxarc.datasets import load_tasks
from jaxarc.datasets.catalogue import UnknownDatasetError
from jaxarc.errors import JaxarcError, JaxarcWarning, visible
from jaxarc.tasks import TaskFormatError

SOURCE = Path(__file__).parents[1] / "src" / "jaxarc"


def error_classes():
    """Return the bases of every public class of the package that derives from an error."""
    found = {}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            is_class = isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            if is_class and any(ast.unparse(base).endswith("Error") for base in node.bases):
                found[node.name] = [ast.unparse(base).split(".")[-1] for base in node.bases]
    return found


def test_every_error_derives_from_the_base_class():
    classes = error_classes()
    derived = {"JaxarcError"}
    for _ in classes:
        derived |= {name for name, bases in classes.items() if derived & set(bases)}
    assert len(derived) > 30
    assert set(classes) <= derived


def test_an_error_keeps_its_builtin_kind_and_its_message_without_quotation_marks():
    error = UnknownDatasetError("no dataset 'x'; known: a")
    assert isinstance(error, JaxarcError)
    assert isinstance(error, KeyError)
    assert str(error) == "no dataset 'x'; known: a"


def test_a_wrong_name_ends_a_command_with_another_code_than_wrong_data():
    with pytest.raises(JaxarcError) as caught:
        JaxArcConfig().with_fields(max_episode_steps=0)
    assert isinstance(caught.value, ConfigValidationError)
    assert caught.value.exit_code == 2
    assert UnknownDatasetError.exit_code == 2
    assert TaskFormatError.exit_code == 1


NAME = "a\x1b[31m\n\r\x9b\u202eb\udcff\t.json"  # colors, line breaks, text from right to left, a byte that is no UTF-8
SHOWN = r"a\x1b[31m\n\r\x9b\u202eb\udcff\t.json"


def test_names_are_quoted_so_that_a_terminal_obeys_nothing():
    assert (
        visible(NAME)
        == str(TaskFormatError(NAME))
        == str(UnknownDatasetError(NAME))
        == str(JaxarcWarning(NAME))
        == SHOWN
    )
    assert visible("josé's 图 a  b") == "josé's 图 a  b"


def test_files_and_tasks_with_such_names_are_shown_so(tmp_path, capsys):
    name = NAME.replace("\udcff", "")
    folder = tmp_path / "x\x1b[31m\ny"
    folder.mkdir()
    (folder / name).write_text('{"train": 1}')
    (folder / "some.json").write_text('{"\\u001b[31mid\\n": {"train": 1}}')
    with pytest.raises(TaskFormatError) as caught:
        load_tasks(str(folder))
    assert str(caught.value).isprintable()
    for arguments in (["tasks", "verify", str(folder)], ["tasks", "stats", str(folder / name)]):
        with pytest.raises(SystemExit):
            main(arguments)
        printed = capsys.readouterr()
        assert r"\x1b[31m" in printed.out + printed.err
        assert "\x1b" not in printed.out + printed.err


def test_a_warning_of_the_command_line_is_visible(capsys):
    warn(f"{NAME} is damaged")
    assert SHOWN in capsys.readouterr().err
