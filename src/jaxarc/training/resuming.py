"""Which choices of a run may change when it goes on: those that its results do not depend on."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jaxarc.config import ConfigValidationError
from jaxarc.config.build import spell

_FIXED: Final = ("parallel.over",)  # of the topics below: it says which environments make a minibatch
_MOST_TOLD: Final = 20  # differences
_FREE: Final = (
    *("logging.", "checkpoint.", "parallel.", "surrogate_mesh.", "training.max_seconds", "training.compilation_cache"),
    *("surrogate.max_seconds", "surrogate.compilation_cache", "surrogate.buffer_size"),
)


class IncompatibleRunError(ConfigValidationError):
    """A run cannot go on with choices that would change what it computes."""


class OtherVersionsWarning(UserWarning):
    """A run goes on with other library versions, which may round otherwise."""


def require_same_choices(saved: Mapping[str, Any], wished: Mapping[str, Any]) -> None:
    """Compare two experiments, as nested dictionaries, in all that the results depend on.

    Raises:
        IncompatibleRunError: they differ; the message lists each field with both values.
    """
    old, new = dict(fields_of(saved)), dict(fields_of(wished))
    names = [name for name in {**old, **new} if name in _FIXED or not name.startswith(_FREE)]
    missing = "no such field"
    differ = [
        f"{name} is {spell(old.get(name, missing))} in the run, but {spell(new.get(name, missing))} now"
        for name in names
        if old.get(name, missing) != new.get(name, missing)
    ]
    if differ:
        more = f"; and {len(differ) - _MOST_TOLD} more" if len(differ) > _MOST_TOLD else ""
        raise IncompatibleRunError(
            f"the run cannot be resumed with other choices: {'; '.join(differ[:_MOST_TOLD])}{more}. Leave them out, "
            f"or start a new run; {_say_what_may_change(new)}"
        )


def warn_of_other_versions(saved: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Name the libraries whose version is not that of the saved run."""
    differ = [
        f"{name} {saved.get(name)} -> {now.get(name)}" for name in {**saved, **now} if saved.get(name) != now.get(name)
    ]
    if differ:
        warnings.warn(
            f"the run goes on with other versions: {', '.join(differ)}; its numbers may differ from those of one that "
            "was not interrupted",
            OtherVersionsWarning,
            stacklevel=2,
        )


def _say_what_may_change(fields: Mapping[str, Any]) -> str:
    """Name what a run of this kind may change: those of the topics that it has."""
    free = [free + "*" * free.endswith(".") for free in _FREE if any(name.startswith(free) for name in fields)]
    fixed = [name for name in _FIXED if name in fields]
    return f"what may change: {', '.join(free)}{''.join(f'; but not {name}' for name in fixed)}"


def fields_of(experiment: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name each value as the command line does: the topics of the rules stand beside the others."""
    rules = experiment.get("environment", {})
    topics = {**rules, **{name: topic for name, topic in experiment.items() if name != "environment"}}
    for topic, fields in topics.items():
        for name, value in fields.items():
            yield f"{topic}.{name}", list(value) if isinstance(value, tuple) else value
