"""From ``topic.field=value`` on the command line to a checked experiment, by way of Hydra."""

import dataclasses
import json
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent, YAMLError, parse

from jaxarc import __version__
from jaxarc.agents.experiment import Experiment
from jaxarc.config import ConfigValidationError, build
from jaxarc.config.build import CheckedConfig, UnknownFieldError, check_known
from jaxarc.config.choices import EXPERIMENT, RULES, SURROGATE, check_choice, choices_of, config_folder
from jaxarc.files import CHECKSUM
from jaxarc.surrogate.experiment import SurrogateExperiment

AnyExperiment: TypeAlias = Experiment | SurrogateExperiment


@dataclass(frozen=True)
class RunKind:
    """A kind of run: of which topics its config is made, and where it begins."""

    experiment: type[CheckedConfig]
    file: str  # of configs/, with a choice in every group
    presets: str  # the group of files that choose in all others

    @property
    def topics(self) -> dict[str, type[CheckedConfig]]:
        """Return the topics, those of the rules first."""
        kinds = typing.get_type_hints(self.experiment)
        return {**RULES, **{name: kind for name, kind in kinds.items() if name != "environment"}}

    def build(self, mapping: Mapping[str, Any]) -> Any:
        """Make an experiment from one mapping per topic.

        Raises:
            ConfigValidationError: an unknown topic or field, a wrong type, or a broken rule.
        """
        for name in mapping:
            check_known("jaxarc train", name, list(self.topics))
        # The rules of an environment are topics of the command line, and one field of an experiment:
        # {"reward": r, "agent": a} becomes {"environment": {"reward": r}, "agent": a}.
        rules = {name: mapping[name] for name in mapping if name in RULES}
        others = {name: mapping[name] for name in mapping if name not in RULES}
        return build(self.experiment, {"environment": rules, **others})


AGENT_RUN: Final = RunKind(Experiment, "train", EXPERIMENT)
SURROGATE_RUN: Final = RunKind(SurrogateExperiment, "train_surrogate", SURROGATE)
DEFAULT_SURROGATE: Final = "surrogate=lookahead"  # in examples, and for the values that help texts print
TOPICS: Final = AGENT_RUN.topics
_ABOUT_A_RUN: Final = ("versions", "git_revision")  # what a run folder's config.json tells besides the config
_MAX_FILE_BYTES: Final = 2**20  # a complete config has 5 kB
_MAX_DEPTH: Final = 10  # a complete config has 4
_OVERRIDE: Final = re.compile(r"[\w/]+(\.\w+)*(@[\w.]+)?=", re.ASCII)


def read_any_experiment(overrides: Sequence[str], file: Path | None = None) -> AnyExperiment:
    """Read an experiment of the run_kind that the overrides or the file speak of: ``surrogate=NAME`` is no agent's.

    Arguments and errors are those of :func:`read_experiment`.
    """
    mapping = None if file is None else _read_mapping(file)
    if mapping is None:
        is_surrogate = any(override.partition("=")[0] == SURROGATE_RUN.presets for override in overrides)
        if not is_surrogate:
            _refuse_surrogate_topics(overrides)
    else:
        is_surrogate = SURROGATE_RUN.presets in mapping
    run_kind = SURROGATE_RUN if is_surrogate else AGENT_RUN
    with _naming_the_writer(file):
        return _read(run_kind, overrides, mapping)


def _refuse_surrogate_topics(overrides: Sequence[str]) -> None:
    for override in overrides:
        topic = override.lstrip("+~").partition("=")[0].partition(".")[0]
        if topic in SURROGATE_RUN.topics and topic not in AGENT_RUN.topics:
            raise ConfigValidationError(
                f"jaxarc train: {override!r} is a choice of surrogates; say which one is trained, such as "
                + DEFAULT_SURROGATE
            )


def read_experiment(overrides: Sequence[str], file: Path | None = None) -> Experiment:
    """Compose ``configs/train.yaml`` with the overrides, or change a complete file by them, and check the result.

    Args:
        overrides: ``topic.field=value`` sets a field, ``topic=name`` chooses ``configs/<topic>/<name>.yaml``.
        file: what ``jaxarc train --show`` printed, or a run folder's ``config.json``; then overrides set fields only.

    Raises:
        ConfigValidationError: an unknown topic, choice or field, a wrong type, a broken rule, or an override that
            cannot be read.
        OSError: the file cannot be read.
    """
    with _naming_the_writer(file):
        return _read(AGENT_RUN, overrides, None if file is None else _read_mapping(file))


def experiment_of(mapping: Mapping[str, Any]) -> Experiment:
    """Make an experiment from one mapping per topic.

    Raises:
        ConfigValidationError: an unknown topic or field, a wrong type, or a broken rule.
    """
    return AGENT_RUN.build(mapping)


def topics_of(experiment: AnyExperiment) -> dict[str, dict[str, Any]]:
    """Return every field of an experiment by topic, in the shape that the command line overrides."""
    return _by_topic(experiment.as_dict())


def _read(run_kind: RunKind, overrides: Sequence[str], mapping: dict[str, Any] | None) -> Any:
    """Compose the file of a kind of run with the overrides, or change a complete mapping by them."""
    if mapping is not None:
        return run_kind.build(_changed(run_kind, mapping, overrides))
    with one_kind_of_error(), initialize_config_dir(str(config_folder()), version_base="1.3"):
        composed = compose(run_kind.file, [_settable(run_kind, override) for override in overrides])
    return run_kind.build(_plain(composed))


def _by_topic(saved: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {**saved["environment"], **{name: saved[name] for name in saved if name != "environment"}}


def _plain(config: Any) -> dict[str, Any]:
    mapping = OmegaConf.to_container(config, resolve=True)
    assert isinstance(mapping, dict)
    return {str(name): value for name, value in mapping.items()}


def _read_mapping(file: Path) -> dict[str, Any]:
    """Read topics from YAML or JSON, in the shape of ``--show`` or in that of a run folder."""
    try:
        _require_plain(file)
        config = OmegaConf.load(file)
    except (YAMLError, ValueError) as error:
        raise ConfigValidationError(f"jaxarc train: {file} is not YAML: {error}") from error
    _require_json(file)
    if not OmegaConf.is_dict(config) or not config:
        raise ConfigValidationError(f"jaxarc train: {file} is no config; give what --show prints, or a config.json")
    mapping = {name: value for name, value in _plain(config).items() if name not in (*_ABOUT_A_RUN, CHECKSUM)}
    rules = mapping.get("environment")
    return _by_topic(mapping) if isinstance(rules, dict) and rules.keys() >= RULES.keys() else mapping


@contextmanager
def _naming_the_writer(file: Path | None) -> Iterator[None]:
    """Say which version wrote the config of a run folder, if it names a field that this version does not have."""
    try:
        yield
    except UnknownFieldError as error:
        if file is None or file.suffix != ".json":
            raise
        written = json.loads(file.read_bytes())
        version = written.get("versions", {}).get("jaxarc", "0.1.0")  # that version named none
        revision = written.get("git_revision") or "unknown"
        raise UnknownFieldError(
            f"{error} {file} was written by jaxarc {version} (git revision {revision}), and this is {__version__}; "
            "remove the field, or use that version"
        ) from error


def _require_json(file: Path) -> None:
    """Refuse a ``.json`` file that is not JSON: half a file may still be YAML."""
    if file.suffix != ".json":
        return
    try:
        json.loads(file.read_bytes())
    except ValueError as error:
        raise ConfigValidationError(
            f"jaxarc train: {file} is not JSON ({error}); bring the file back, or name another config"
        ) from error


def _require_plain(file: Path) -> None:
    """Refuse a file that could exhaust the memory when it is read: a config may come from anybody.

    Raises:
        ConfigValidationError: the file is larger than any config, nested, or speaks of other values than its own.
    """
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


def _changed(run_kind: RunKind, mapping: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Set fields of a mapping that is complete already."""
    config = OmegaConf.create(mapping)
    for override in [parse_override(_settable(run_kind, override)) for override in overrides]:
        name = override.key_or_group
        if "." not in name or override.is_delete() or override.is_sweep_override():
            raise ConfigValidationError(
                f"jaxarc train: {str(override.input_line).lstrip('+')!r} does not go with --config, which has made "
                "every choice; write topic.field=value"
            )
        with one_kind_of_error():
            OmegaConf.update(config, name, override.value(), merge=False, force_add=True)
    return _plain(config)


@contextmanager
def one_kind_of_error() -> Iterator[None]:
    """Raise what Hydra and OmegaConf cannot read as a :class:`ConfigValidationError`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        words = str(error).partition("Config search path")[0].replace("override ++", "override ")  # see _settable
        raise ConfigValidationError(f"jaxarc train: {' '.join(words.split())}") from error


def parse_override(override: str) -> Override:
    """Read an override; a value that Hydra's grammar has no word for is a text, as if it were quoted.

    ``task.train_dataset=~/tasks`` and ``task.train_dataset=mini:max_side=10`` need no quotation marks within others.

    Raises:
        ConfigValidationError: it is no override.
    """
    # 'it\'s' is how Hydra writes it's; a backslash counts as one unless a quotation mark follows.
    name, equals, value = override.partition("=")
    quoted = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), value)
    for text in (override, f"{name}='{quoted}'") if equals else (override,):
        with suppress(HydraException):
            return OverridesParser.create().parse_override(text)
    written = override.removeprefix("++") or override
    raise ConfigValidationError(f"jaxarc train: {written!r} is not an override; write topic.field=value")


def _settable(run_kind: RunKind, override: str) -> str:
    """Let an override name any field: the YAML files hold few of them, and our own check knows them all."""
    if not _OVERRIDE.match(override):
        if override.startswith(("~", "+")) and override.strip("~+"):
            return str(parse_override(override).input_line)  # Hydra's own notation
        raise ConfigValidationError(f"jaxarc train: {override!r} is not an override; write topic.field=value")
    name, _, value = override.partition("=")
    topic, dot, _ = name.partition(".")
    group = topic.partition("@")[0]
    if not dot:
        _check_group(run_kind, group, value, override)
    # With ++ Hydra sets a field that no file names: schedule.learning_rate=1e-3 becomes ++schedule.learning_rate=1e-3.
    # The choice without a file, such as reward=default, becomes an empty one.
    known = dict.fromkeys(run_kind.topics if dot else [*run_kind.topics, run_kind.presets])
    check_known("jaxarc train", group, list(known))
    if dot:
        parsed = parse_override(f"++{override}")
        if parsed.is_sweep_override():
            raise ConfigValidationError(
                f"jaxarc train: {override!r} has several values; add --multirun for a run of each, or write [1,2] for "
                "a list"
            )
        return str(parsed.input_line)
    choices = choices_of(group)
    if group == run_kind.presets or group not in run_kind.topics or value != choices[0]:
        return override
    return f"{name}=[]" if len(choices) > 1 else f"++{group}={{}}"  # no file; Hydra knows no group without a folder


def _check_group(run_kind: RunKind, group: str, value: str, override: str) -> None:
    """Refuse a field without its topic, and a choice that a group does not have."""
    topics = run_kind.topics
    homes = [home for home, kind in topics.items() if group in {field.name for field in dataclasses.fields(kind)}]
    is_group = group in topics or group == run_kind.presets
    if not is_group and homes:
        wanted = " or ".join(f"{home}.{override}" for home in homes)
        raise ConfigValidationError(f"jaxarc train: {group!r} is a field, not a topic; write {wanted}")
    if is_group:
        check_choice("jaxarc train", group, value)
