"""From ``topic.field=value`` on the command line, or from a file, to a checked experiment."""

import dataclasses
import json
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import GrammarParseError, OmegaConfBaseException
from yaml import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent, YAMLError, parse

from jaxarc.agents.own_parts import NETWORKS, REWARDS, names_code
from jaxarc.config import ConfigValidationError, build
from jaxarc.config.build import CheckedConfig, check_known
from jaxarc.config.choices import EXPERIMENT, RULES, SURROGATE, check_choice, compose
from jaxarc.files import CHECKSUM
from jaxarc.games import load_game
from jaxarc.games.game_names import names_file
from jaxarc.runs.kind import GROUPS, row_of
from jaxarc.runs.run_state import by_topic

Topics: TypeAlias = dict[str, type[CheckedConfig]]

_OWN_PARTS: Final = {  # field -> whether a value names code, and what runs it and returns the name that a config has
    "game.name": (names_file, lambda name: load_game(name).name),
    "network.kind": (names_code, NETWORKS.load),
    "agent.reward": (names_code, REWARDS.load),
    "reward": (names_code, REWARDS.load),
}
_ABOUT_A_RUN: Final = ("versions", "git_revision", CHECKSUM)  # what config.json tells besides the config
_MAX_FILE_BYTES: Final = 2**20  # a complete config has 5 kB
_MAX_DEPTH: Final = 10  # a complete config has 4
_OVERRIDE: Final = re.compile(r"(\w+)(\.\w+)*=", re.ASCII)


def topics_in(presets: str) -> Topics:
    """Return the topics of the experiments of some presets with their classes, those of the rules first."""
    config = GROUPS[presets].config
    hints = typing.get_type_hints(config)
    return {**RULES, **{one.name: hints[one.name] for one in dataclasses.fields(config) if one.name != "environment"}}


def read_experiment(overrides: Sequence[str], file: Path | None = None) -> Any:
    """Compose a preset with overrides, or change a complete file by them, and check the result.

    Args:
        overrides: ``topic.field=value`` sets a field, ``topic=name`` takes a choice of ``configs/choices.yaml``, and
            ``experiment=name`` or ``surrogate=name`` a preset; without one it is that of ``jaxarc train``.
        file: what ``jaxarc train --show`` printed, or a run folder's ``config.json``; then overrides set fields only.

    Returns:
        An :class:`Experiment`, or a :class:`SurrogateExperiment`: by ``surrogate=name``, or by a file of one.

    Raises:
        ConfigValidationError: an unknown topic, choice or field, a wrong type, a broken rule, or an override that
            cannot be read.
        OSError: the file cannot be read.
    """
    mapping = None if file is None else _read_file(file)
    named = [override.partition("=")[0] for override in overrides] if mapping is None else mapping
    presets = row_of(named).presets
    choices, fields = _split([as_field(override) for override in overrides], presets)
    if mapping is None:
        mapping = compose(presets, choices.pop(presets, GROUPS[presets].preset), choices)
    elif choices:
        topic, name = choices.popitem()
        raise ConfigValidationError(
            f"jaxarc train: '{topic}={name}' does not go with --config, which has made every choice; write "
            "topic.field=value"
        )
    with one_kind_of_error():
        config = OmegaConf.create(mapping)
        for override in fields:
            OmegaConf.update(config, override.key_or_group, override.value(), merge=False, force_add=True)
        mapping = OmegaConf.to_container(config, resolve=True)
    assert isinstance(mapping, dict)
    return experiment_of(mapping, presets)


def with_own_parts(override: str) -> str:
    """Run the file or module of a game, network or reward of one's own; a config has its name, and runs no code.

    Of ``network.kind=file.py:NAME`` the name of the class is left.
    """
    field, _, value = override.partition("=")
    names = value.strip("'\"").split(",")
    names_own, load = _OWN_PARTS.get(field.lstrip("+"), (names_code, str))
    if field.lstrip("+") not in _OWN_PARTS or not any(map(names_own, names)):
        return override
    return f"{field}={','.join(load(name) if names_own(name) else name for name in names)}"


def as_field(override: str) -> str:
    """Return ``agent.reward=NAME`` for ``reward=NAME`` of a reward of one's own, which is no choice of rules."""
    topic, _, value = override.partition("=")
    return f"agent.reward={value}" if topic == "reward" and REWARDS.is_registered(value) else override


def experiment_of(mapping: Mapping[Any, Any], presets: str = EXPERIMENT) -> Any:
    """Make an experiment of a kind from the fields of each topic."""
    known = list(topics_in(presets))
    for name in mapping:
        check_known("jaxarc train", str(name), known)
    # The rules of an environment are topics of the command line, and one field of an experiment:
    # {"reward": r, "agent": a} becomes {"environment": {"reward": r}, "agent": a}.
    rules = {name: mapping[name] for name in mapping if name in RULES}
    others = {name: mapping[name] for name in mapping if name not in RULES}
    return build(GROUPS[presets].config, {"environment": rules, **others})


def topics_of(experiment: CheckedConfig) -> dict[str, dict[str, Any]]:
    """Return every field of an experiment by topic, in the shape that the command line overrides."""
    return by_topic(experiment.as_dict())


def _split(overrides: Sequence[str], presets: str) -> tuple[dict[str, str], list[Override]]:
    """Return the choices that overrides make, by topic, and the overrides that set a field."""
    topics = topics_in(presets)
    choices: dict[str, str] = {}
    fields: list[Override] = []
    for text in overrides:
        override = parse_override(text)
        topic, dot, _ = str(override.key_or_group).partition(".")
        if presets == SURROGATE and override.key_or_group == "agent.reward":
            raise ConfigValidationError(f"jaxarc train: a surrogate learns from an expert; leave {text!r} out")
        if topic not in {*topics, presets} and topic in topics_in(SURROGATE):  # which imports surrogates
            raise ConfigValidationError(
                f"jaxarc train: {text!r} is a choice of surrogates; say which one is trained, such as "
                f"{SURROGATE}={GROUPS[SURROGATE].preset}"
            )
        homes = [home for home, kind in topics.items() if topic in {field.name for field in dataclasses.fields(kind)}]
        if not dot and homes and topic not in {*topics, presets}:
            wanted = " or ".join(f"{home}.{text}" for home in homes)
            raise ConfigValidationError(f"jaxarc train: {topic!r} is a field, not a topic; write {wanted}")
        check_known("jaxarc train", topic, list(topics if dot else {**topics, presets: None}))
        if not dot:
            choices[topic] = text.partition("=")[2]
            check_choice("jaxarc train", topic, choices[topic])
        elif override.is_sweep_override():
            raise ConfigValidationError(
                f"jaxarc train: {text!r} has several values; add --multirun for a run of each, or write [1,2] for a "
                "list"
            )
        else:
            fields.append(override)
    return choices, fields


def parse_override(text: str) -> Override:
    """Read an override; a value that Hydra's grammar has no word for is a text, as if it were quoted.

    ``task.train_dataset=~/tasks`` and ``task.train_dataset=mini:max_side=10`` need no quotation marks within others.
    """
    plain = text.lstrip("+")  # Hydra's sign of a field that no file names
    name, _, value = plain.partition("=")
    # 'it\'s' is how Hydra writes it's; a backslash counts as one unless a quotation mark follows.
    quoted = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), value)
    for written in (plain, f"{name}='{quoted}'") if _OVERRIDE.match(plain) else ():
        with suppress(HydraException):
            return OverridesParser.create().parse_override(written)
    raise ConfigValidationError(f"jaxarc train: {text!r} is not an override; write topic.field=value")


@contextmanager
def one_kind_of_error() -> Iterator[None]:
    """Raise what Hydra and OmegaConf cannot read as a :class:`ConfigValidationError`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        is_broken = isinstance(error, GrammarParseError)
        words = (
            r"a value has ${ without a reference; write \${ for the letters"
            if is_broken
            else " ".join(str(error).split())
        )
        raise ConfigValidationError(f"jaxarc train: {words}") from error


def _read_file(file: Path) -> dict[str, Any]:
    """Read topics from YAML or JSON, in the shape of ``--show`` or in that of a run folder."""
    try:
        _require_plain(file)
        if file.suffix.lower() == ".json":
            json.loads(file.read_bytes())  # half a file may still be YAML
        config = OmegaConf.to_container(OmegaConf.load(file))
    except (YAMLError, ValueError) as error:
        kind = "JSON" if file.suffix.lower() == ".json" else "YAML"
        raise ConfigValidationError(
            f"jaxarc train: {file} is not {kind}: {error}; bring the file back, or name another config"
        ) from error
    if not isinstance(config, dict) or not config:
        raise ConfigValidationError(f"jaxarc train: {file} is no config; give what --show prints, or a config.json")
    mapping = {str(name): value for name, value in config.items() if name not in _ABOUT_A_RUN}
    rules = mapping.get("environment")
    return by_topic(mapping) if isinstance(rules, dict) and rules.keys() >= RULES.keys() else mapping


def _require_plain(file: Path) -> None:
    """Refuse a file that could exhaust the memory when it is read: a config may come from anybody."""
    if file.stat().st_size > _MAX_FILE_BYTES:
        raise ConfigValidationError(f"jaxarc train: {file} has over {_MAX_FILE_BYTES:,} bytes, which no config needs")
    depth = 0
    for event in parse(file.read_bytes()):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        refers = isinstance(event, AliasEvent) or (isinstance(event, ScalarEvent) and "${" in event.value)
        if refers or depth > _MAX_DEPTH:
            what = "refers to another value (* or ${)" if refers else f"is nested over {_MAX_DEPTH} deep"
            raise ConfigValidationError(
                f"jaxarc train: {file}, line {event.start_mark.line + 1} {what}; write each value out, as --show does"
            )
