"""Every error class of the package derives from JaxarcError, whatever builtin kind it is."""

import ast
from pathlib import Path

import pytest

from jaxarc.config import ConfigValidationError, JaxArcConfig
from jaxarc.datasets.catalogue import UnknownDatasetError
from jaxarc.errors import JaxarcError
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
