"""From ``topic.field=value`` on the command line to a checked experiment, by way of Hydra."""

import dataclasses
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from jaxarc.cli.config_folder import config_folder
from jaxarc.config import ConfigValidationError, JaxArcConfig, build
from jaxarc.config.build import CheckedConfig, check_known
from jaxarc.training.experiment import Experiment

_RULES: Final[dict[str, type[CheckedConfig]]] = typing.get_type_hints(JaxArcConfig)
_BESIDE_THE_RULES: Final[dict[str, type[CheckedConfig]]] = {
    name: kind for name, kind in typing.get_type_hints(Experiment).items() if name != "environment"
}
TOPICS: Final[dict[str, type[CheckedConfig]]] = {**_RULES, **_BESIDE_THE_RULES}
_OVERRIDE: Final = re.compile(r"[\w/]+(\.\w+)*(@[\w.]+)?=")


def read_experiment(overrides: Sequence[str]) -> Experiment:
    """Compose ``configs/train.yaml`` with the overrides and check the result.

    Args:
        overrides: ``topic.field=value`` sets a field, ``topic=name`` chooses ``configs/<topic>/<name>.yaml``.

    Raises:
        ConfigValidationError: an unknown topic or field, a wrong type, or a broken rule.
        hydra.errors.HydraException: an override cannot be read, or there is no such file.
    """
    with initialize_config_dir(str(config_folder()), version_base="1.3"):
        composed = compose("train", [_settable(override) for override in overrides])
    mapping = OmegaConf.to_container(composed, resolve=True)
    assert isinstance(mapping, dict)
    return experiment_of({str(name): value for name, value in mapping.items()})


def experiment_of(mapping: Mapping[str, Any]) -> Experiment:
    """Make an experiment from one mapping per topic.

    Raises:
        ConfigValidationError: an unknown topic or field, a wrong type, or a broken rule.
    """
    for name in mapping:
        check_known("jaxarc train", name, list(TOPICS))
    rules = {name: mapping[name] for name in mapping if name in _RULES}
    others = {name: mapping[name] for name in mapping if name not in _RULES}
    return build(Experiment, {"environment": rules, **others})


def topics_of(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Return every field of an experiment by topic, in the shape that the command line overrides."""
    fields = experiment.as_dict()
    return {**fields["environment"], **{name: fields[name] for name in _BESIDE_THE_RULES}}


def _settable(override: str) -> str:
    """Let an override name any field: the YAML files hold few of them, and our own check knows them all."""
    if not _OVERRIDE.match(override):
        if "=" in override or override.startswith(("~", "+")):
            return override  # Hydra's own notation, or an error that Hydra explains
        raise ConfigValidationError(f"jaxarc train: {override!r} is not an override; write topic.field=value")
    name = override.partition("=")[0]
    topic, dot, _ = name.partition(".")
    homes = [home for home, kind in TOPICS.items() if topic in {field.name for field in dataclasses.fields(kind)}]
    if topic not in TOPICS and not dot and homes:
        wanted = " or ".join(f"{home}.{override}" for home in homes)
        raise ConfigValidationError(f"jaxarc train: {topic!r} is a field, not a topic; write {wanted}")
    check_known("jaxarc train", topic.partition("@")[0], list(TOPICS))
    return f"++{override}" if dot else override
