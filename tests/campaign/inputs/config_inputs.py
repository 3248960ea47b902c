"""The builder of configs as a target: mappings, files of YAML, overrides and sweeps of the command line."""

import dataclasses
from pathlib import Path
from typing import Final

from campaign.inputs.input_target import Maker, Target, json_bytes, parsed_json, require
from jaxarc.agents.experiment import Experiment
from jaxarc.cli.settings import experiment_of, read_experiment, topics_in, topics_of
from jaxarc.cli.train_command import expand
from jaxarc.config import ConfigValidationError, JaxArcConfig, build
from jaxarc.runs.run_state import require_same_choices
from jaxarc.surrogate.surrogate_experiment import SurrogateExperiment

_TOPICS: Final = topics_in("experiment")
_KINDS: Final = {
    kind.__name__: kind
    for kind in (*_TOPICS.values(), *topics_in("surrogate").values(), JaxArcConfig, Experiment, SurrogateExperiment)
}
_FIELDS: Final = tuple(dict.fromkeys(field.name for kind in _KINDS.values() for field in dataclasses.fields(kind)))
_AGENT, _SURROGATE = read_experiment([]), read_experiment(["surrogate=lookahead"])
_WORDS: Final = ("bbox", "mask", "point", "train", "test", "raise", "noop", "_target_", "os.system", "${", "}", "null")


def topic(folder: Path) -> Target:
    """One topic, from a mapping."""

    def read(content: bytes) -> None:
        data = parsed_json(content)
        name, values = data if isinstance(data, list) and len(data) == 2 else ("ActionConfig", data)
        kind = _KINDS[name] if isinstance(name, str) and name in _KINDS else JaxArcConfig
        config = build(kind, values if isinstance(values, dict) else {"selection_format": values})
        require(hash(config) == hash(dataclasses.replace(config)), "equal configs have other hashes")
        require(config == build(kind, dataclasses.asdict(config)), "a config is not what its fields say")

    runs = {"Experiment": _AGENT, "SurrogateExperiment": _SURROGATE}
    seeds = [
        json_bytes([name, dataclasses.asdict(runs[name] if name in runs else kind())]) for name, kind in _KINDS.items()
    ]
    return Target(read, (ConfigValidationError,), tuple(seeds), (*_FIELDS, *_WORDS, *_KINDS))


def renamed_fields(folder: Path) -> Target:
    """Fields by their own name, whichever topic they belong to."""
    start = JaxArcConfig()

    def read(content: bytes) -> None:
        data = parsed_json(content)
        changes = data if isinstance(data, dict) else {"dataset": data}
        changes.pop("self", None)  # no field: what Python itself refuses
        hash(start.with_fields(**changes))

    leaves = [dataclasses.asdict(getattr(start, topic.name)) for topic in dataclasses.fields(start)]
    fields = {name: value for leaf in leaves for name, value in leaf.items()}
    return Target(read, (ConfigValidationError,), (json_bytes(fields), b'{"mode": "test"}'), (*_FIELDS, *_WORDS))


def experiment(folder: Path) -> Target:
    """All topics of a run of an agent or of a surrogate, and whether another run may go on with them."""

    def read(content: bytes) -> None:
        data = parsed_json(content)
        mapping = data if isinstance(data, dict) else {"agent": data}
        made = experiment_of(mapping, "surrogate" if "surrogate" in mapping else "experiment")
        require_same_choices(_AGENT.as_dict(), made.as_dict())

    seeds = (
        json_bytes(topics_of(_AGENT)),
        json_bytes(topics_of(_SURROGATE)),
        b'{"action": {"selection_format": "bbox"}}',
    )
    return Target(read, (ConfigValidationError,), seeds, (*_FIELDS, *_WORDS, *_TOPICS))


def config_file(folder: Path) -> Target:
    """A file for ``jaxarc train --config``, with an override."""
    file = folder / "config.yaml"

    def read(content: bytes) -> None:
        file.write_bytes(content)
        read_experiment(["training.seed=3"], file)

    texts = (
        b"action:\n  selection_format: bbox\ntraining:\n  seed: 1\n  num_seeds: 2\n",
        b"action: {max_grid: &a 3}\nagent: {x: *a, <<: {y: 1}}\n",
        b"logging:\n  run_name: ${oc.env:HOME}\n  run_root: ${.run_name}\n",
        b"surrogate:\n  problem: lookahead\n",
        json_bytes(topics_of(_AGENT)),
    )
    words = ("${", "}", "${oc.env:PATH}", "&a", "*a", "!!python/object/apply:os.system", "<<: ", "- ", "_target_: ")
    return Target(read, (ConfigValidationError, OSError), texts, (*_TOPICS, *words), is_typed=True)


def composed_overrides(folder: Path) -> Target:
    """Overrides of the command line, on a preset."""

    def read(content: bytes) -> None:
        read_experiment(content.decode("utf-8", "surrogateescape").split("\n"))

    seeds = (
        b"experiment=ladder_l2_small\ntraining.seed=1",
        b"+hydra.run.dir=/tmp",
        b"hydra/launcher=joblib",
        b"~agent",
    )
    return Target(read, (ConfigValidationError, OSError), seeds, (*_TOPICS, *_WORDS, "@", "/", "+", "~"), is_typed=True)


def sweep(folder: Path) -> Target:
    """Overrides with several values."""

    def read(content: bytes) -> None:
        text = content.decode("utf-8", "surrogateescape")
        require(len(expand(text.split("\n"))) >= 1, "no combination")

    seeds = (
        b"training.seed=0,1,2\nagent.gamma=0.9,0.99",
        b"training.seed=range(0,9)",
        b"a=choice(1,2)",
        b"a=glob(*)",
        b"a=range(0)",
    )
    return Target(
        read,
        (ConfigValidationError,),
        seeds,
        (",", "range(", "choice(", "interval(", ")", "sort(", "shuffle("),
        is_typed=True,
    )


TARGETS: Final[tuple[Maker, ...]] = (topic, renamed_fields, experiment, config_file, composed_overrides, sweep)
