"""The files of ``configs/``, as plain YAML: the choices of a topic, and what a preset says of its environment."""

import difflib
import functools
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from jaxarc.config.agent_training import AnswerConfig, TaskConfig
from jaxarc.config.build import CheckedConfig, ConfigValidationError, build, check_known
from jaxarc.config.environment_rules import JaxArcConfig

EXPERIMENT: Final = "experiment"  # the group of the presets of agents
SURROGATE: Final = "surrogate"  # and that of surrogates
_GAMES: Final = "games_"  # begins the names of presets of agents that learn a game
RULES: Final[dict[str, type[CheckedConfig]]] = typing.get_type_hints(JaxArcConfig)  # the topics of an environment
_NAMES: Final = {"agent": "ppo", "answer": "shown"}  # topic -> its choice that changes nothing; elsewhere "default"
Fields: TypeAlias = dict[str, Any]  # of a topic, by name


@dataclass(frozen=True)
class Preset:
    """What a preset of agents says of the environment: the rules, the tasks, and whether answers are hidden."""

    rules: JaxArcConfig
    task: TaskConfig
    answer: AnswerConfig


def config_folder() -> Path:
    """Return the folder of the YAML files: inside the installed package, or at the top of a checkout.

    Raises:
        FileNotFoundError: neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    folders = (package / "configs", package.parents[1] / "configs")
    for folder in folders:
        if (folder / "choices.yaml").is_file():
            return folder
    raise FileNotFoundError(
        f"no configs folder at {folders[0]} (installed package) or {folders[1]} (checkout); install jaxarc again"
    )


def choices_of(group: str) -> list[str]:
    """Return the presets of a group, or the choices of a topic, first the one that changes no default."""
    if presets := sorted(path.stem for path in (config_folder() / group).glob("*.yaml")):
        return presets
    return [_NAMES.get(group, "default"), *sorted(_choices().get(group, {}))]


def editing_presets() -> list[str]:
    """Return the presets of agents that edit grids, by which an environment can be made."""
    return [name for name in choices_of(EXPERIMENT) if not name.startswith(_GAMES)]


def check_choice(owner: str, group: str, name: str) -> None:
    """Raise a :class:`ConfigValidationError` of ``owner`` when a group has no such choice."""
    known = choices_of(group)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? Known" if near else "known"
        raise ConfigValidationError(f"{owner}: no {group} {name!r}; {hint}: {', '.join(known)}")


def read_choice(topic: str, name: str) -> CheckedConfig:
    """Read one topic of an environment as a choice of ``configs/`` makes it, such as ``reward=editing``."""
    check_known("jaxarc.make", topic, list(RULES))
    check_choice("jaxarc.make", topic, name)
    return build(RULES[topic], _choices().get(topic, {}).get(name))


def read_preset(name: str) -> Preset:
    """Read what a preset of ``configs/experiment/`` says of its environment."""
    check_choice("jaxarc.make", EXPERIMENT, name)
    topics = compose(EXPERIMENT, name)
    rules = build(JaxArcConfig, {topic: topics.get(topic, {}) for topic in RULES}, rules_for_editing())
    return Preset(rules, build(TaskConfig, topics.get("task")), build(AnswerConfig, topics.get("answer")))


def rules_for_editing() -> JaxArcConfig:
    """Return the default rules of a run: the actions and observations that the agent's policy needs."""
    return JaxArcConfig().with_fields(selection_format="bbox", reveal_target=True, include_step_count=True)


def compose(group: str, preset: str, chosen: Mapping[str, str] | None = None) -> dict[str, Fields]:
    """Return the fields that a preset changes, by topic, with the choices in ``chosen`` in place of its own."""
    choices, fields = _preset(group, preset)
    choices |= chosen or {}
    of_choice = {topic: _choices().get(topic, {}).get(name, {}) for topic, name in choices.items()}
    return {topic: {**of_choice.get(topic, {}), **fields.get(topic, {})} for topic in {**choices, **fields}}


def _preset(group: str, name: str) -> tuple[dict[str, str], dict[str, Fields]]:
    """Return the choices of a preset and the fields that it sets, those of the preset that it starts from first.

    ``ladder_l4`` starts from ``ladder_l3``, overrides ``/task: all_sizes``, and sets ``agent.num_minibatches``.
    """
    body = yaml.safe_load((config_folder() / group / f"{name}.yaml").read_text(encoding="utf-8"))
    choices: dict[str, str] = {}
    fields: dict[str, Fields] = {}
    for entry in body.pop("defaults", []):
        if isinstance(entry, dict):
            choices |= {topic.removeprefix("override /"): choice for topic, choice in entry.items()}
        elif entry != "_self_":
            choices, fields = _preset(group, entry)
    return choices, {topic: {**fields.get(topic, {}), **body.get(topic, {})} for topic in {**fields, **body}}


@functools.cache
def _choices() -> dict[str, dict[str, Fields]]:
    """Read the fields that each choice changes, by topic and choice."""
    return yaml.safe_load((config_folder() / "choices.yaml").read_text(encoding="utf-8"))
