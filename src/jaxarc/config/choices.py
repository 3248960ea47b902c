"""The files of ``configs/``, as plain YAML: the choices of a topic, and what a preset says of its environment."""

import difflib
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from jaxarc.config.build import CheckedConfig, ConfigValidationError, build, check_known
from jaxarc.config.environment import JaxArcConfig
from jaxarc.config.training import AnswerConfig, TaskConfig

EXPERIMENT: Final = "experiment"  # the group of the presets of agents
SURROGATE: Final = "surrogate"  # and that of surrogates
RULES: Final[dict[str, type[CheckedConfig]]] = typing.get_type_hints(JaxArcConfig)  # the topics of an environment
_DEFAULTS: Final = {"agent": "ppo", "answer": "shown"}  # topic -> its choice without a file; elsewhere "default"


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
        if (folder / "train.yaml").is_file():
            return folder
    raise FileNotFoundError(
        f"no configs folder at {folders[0]} (installed package) or {folders[1]} (checkout); install jaxarc again"
    )


def choices_of(group: str) -> list[str]:
    """Return the choices of a group: for a topic first the one that changes no default, then the names of its files."""
    files = sorted(path.stem for path in (config_folder() / group).glob("*.yaml"))
    is_topic = group not in (EXPERIMENT, SURROGATE)
    return [_DEFAULTS.get(group, "default"), *files] if is_topic else files


def check_choice(owner: str, group: str, name: str) -> None:
    """Raise a :class:`ConfigValidationError` of ``owner`` when a group has no such choice."""
    known = choices_of(group)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigValidationError(f"{owner}: no {group} {name!r}; known: {', '.join(known)}.{hint}")


def read_choice(topic: str, name: str) -> CheckedConfig:
    """Read one topic of an environment as a choice of ``configs/`` makes it, such as ``reward=editing``.

    Raises:
        ConfigValidationError: there is no such topic, or it has no such choice; names those it has.
    """
    check_known("jaxarc.make", topic, list(RULES))
    check_choice("jaxarc.make", topic, name)
    return build(RULES[topic], _read(topic, name))


def read_preset(name: str) -> Preset:
    """Read what a preset of ``configs/experiment/`` says of its environment, as ``jaxarc train`` composes it.

    Raises:
        ConfigValidationError: there is no such preset.
    """
    check_choice("jaxarc.make", EXPERIMENT, name)
    choices, fields = _compose(name)

    def topic(group: str) -> dict[str, Any]:
        return {**_read(group, choices.get(group)), **fields.get(group, {})}

    rules = build(JaxArcConfig, {group: topic(group) for group in RULES}, rules_for_editing())
    return Preset(rules, build(TaskConfig, topic("task")), build(AnswerConfig, topic("answer")))


def rules_for_editing() -> JaxArcConfig:
    """Return the default rules of a run: the actions and observations that the agent's policy needs."""
    return JaxArcConfig().with_fields(selection_format="bbox", reveal_target=True, include_step_count=True)


def _compose(preset: str) -> tuple[dict[str, str | None], dict[str, dict[str, Any]]]:
    """Return the choice of each group and the fields that a preset sets, those of the preset that it starts from first.

    ``ladder_l4`` starts from ``ladder_l3``, overrides ``/task: all_sizes``, and sets ``agent.num_minibatches``.
    """
    body = _read(EXPERIMENT, preset)
    choices: dict[str, str | None] = {}
    fields: dict[str, dict[str, Any]] = {}
    for entry in body.pop("defaults", []):
        if isinstance(entry, dict):
            choices |= {group.removeprefix("override /"): choice for group, choice in entry.items()}
        elif entry != "_self_":
            choices, fields = _compose(entry)
    return choices, {topic: {**fields.get(topic, {}), **body.get(topic, {})} for topic in {**fields, **body}}


def _read(group: str, name: str | None) -> dict[str, Any]:
    """Read a file; a choice without one sets nothing."""
    file = config_folder() / group / f"{name}.yaml"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
