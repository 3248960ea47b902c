"""Checked configs: fields with bounds, and the way from a mapping to a config.

A config is a frozen dataclass that derives from :class:`CheckedConfig`. Each field says by itself what it may hold::

    mode: Literal["train", "test"] = "train"   # one of these words
    num_envs: int = limited(256, low=1)        # a number within bounds
    max_seconds: float | None = limited(None, low=0)   # None, or a number within bounds
    step_penalty: float = -0.01                # a float without bounds must be finite

``validate`` holds only rules that concern several fields; it runs after every field has passed on its own.
"""

import dataclasses
import difflib
import functools
import math
import reprlib
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self, TypeVar

from jaxarc.errors import UsageError

Config = TypeVar("Config", bound="CheckedConfig")

_BRIEF = reprlib.Repr()  # a message is one line, even if a file holds thousands of numbers for one
_BRIEF.maxlevel = 3
_BRIEF.maxstring = 200
_BRIEF.maxlong = 40
_BRIEF.maxother = 200
_BRIEF.maxlist = 50
_BRIEF.maxtuple = 50
_MAX_LETTERS: Final = 400


class ConfigValidationError(UsageError, ValueError):
    """A config field holds a value that its rule does not allow."""


class UnknownFieldError(ConfigValidationError, KeyError):
    """A mapping names a field that the config does not have."""

    field: str = ""  # the name, as it was given


@contextmanager
def refused(
    what: str, kinds: tuple[type[Exception], ...] = (ValueError,), besides: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Raise an error of some kinds as the one of a config that asks for too much; ``what`` begins its message."""
    try:
        yield
    except besides:
        raise
    except kinds as error:
        raise ConfigValidationError(f"{what}{error}") from error


def limited(default: Any, *, low: float | None = None, high: float | None = None) -> Any:
    """Declare a number field with bounds; a value that equals a bound is allowed."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high})


@dataclasses.dataclass(frozen=True)
class CheckedConfig:
    """A frozen, hashable config that refuses wrong values when it is made."""

    def __new__(cls, *args: Any, **values: Any) -> Self:
        """Refuse unknown fields before the constructor does, with the known ones and a near match."""
        for name in values:
            check_known(cls.__name__, name, [field.name for field in dataclasses.fields(cls)])
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):  # YAML and JSON know only lists; a config must be hashable
                object.__setattr__(self, field.name, tuple(value))
        # Rules among several fields are asked only when each field by itself is right, so they may compare numbers.
        problems = self._wrong_fields() or self.validate()
        if problems:
            raise ConfigValidationError(f"{type(self).__name__}: " + "; ".join(problems))

    def validate(self) -> list[str]:
        """List every broken rule among several fields, each as one sentence with field, value and rule."""
        return []

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, checked like a new one."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            check_known(type(self).__name__, name, known)
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of plain values, for JSON."""
        return dataclasses.asdict(self)

    def _wrong_fields(self) -> list[str]:
        """List the fields whose value breaks the rule that stands in the field: its type, choices or bounds."""
        problems = []
        hints = _hints(type(self))
        for field in dataclasses.fields(self):
            value, hint = getattr(self, field.name), hints[field.name]
            if _fits(value, hint):
                continue
            if typing.get_origin(hint) is typing.Literal:
                problems.append(f"{field.name} must be one of {typing.get_args(hint)}, got {spell(value)}")
            else:
                kind = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
                problems.append(f"{field.name} must be {kind}, got {spell(value)} of type {type(value).__name__}")
        if problems:
            return problems
        for field in dataclasses.fields(self):
            problems += _out_of_bounds(field, getattr(self, field.name))
        return problems


def build(kind: type[Config], overrides: Mapping[str, Any] | None = None, start: Config | None = None) -> Config:
    """Make a config of ``kind`` from a (nested) mapping; a field that the mapping does not name keeps its default.

    The default of a nested config is that of the field that holds it. An example: ``Experiment`` holds an
    ``environment`` whose actions are boxes; ``build(Experiment, {"environment": {"history": {...}}})`` keeps the boxes.

    Args:
        kind: the class of the config.
        overrides: field -> value, or field -> mapping where the field holds a config.
        start: the config whose values are the defaults; by default the defaults of ``kind``.

    Raises:
        ConfigValidationError: an unknown field (also a ``KeyError``), a wrong type, or a broken rule.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    if overrides is not None and not isinstance(overrides, Mapping):
        raise ConfigValidationError(f"{kind.__name__}: fields come as a mapping, got {spell(overrides)}; write one")
    for name, value in (overrides or {}).items():
        check_known(kind.__name__, str(name), list(fields))
        hint = _hints(kind)[name]
        # {"reward": {"step_penalty": 0}} changes one field of the nested config; its others stay as
        # they are in ``start``, or in the default.
        if isinstance(hint, type) and issubclass(hint, CheckedConfig) and isinstance(value, Mapping):
            nested = _default(fields[name]) if start is None else getattr(start, name)
            values[name] = build(hint, value, nested)
        else:
            values[name] = value
    return kind(**values) if start is None else dataclasses.replace(start, **values)


def check_known(owner: str, name: str, known: Sequence[str]) -> None:
    """Raise when ``name`` is not one of the fields ``known`` of ``owner``."""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? Known" if near else "known"
        error = UnknownFieldError(f"{owner}: no field {name!r:.100}; {hint} fields: {', '.join(known)}")
        error.field = name
        raise error


def spell(value: Any) -> str:
    """Write a value for a message, on one line and cut if it is long."""
    text = " ".join(_BRIEF.repr(value).split())  # arrays have several lines
    return text if len(text) <= _MAX_LETTERS else text[: _MAX_LETTERS - 3] + "..."


@functools.cache
def _hints(kind: type[CheckedConfig]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _default(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a field that holds a config."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is typing.Literal:
        return isinstance(value, str) and value in typing.get_args(hint)
    if origin is tuple:
        item = typing.get_args(hint)[0]
        return isinstance(value, tuple) and all(_fits(element, item) for element in value)
    if hint is float:  # an int counts as a float if it is not larger than every float
        return isinstance(value, float) or (type(value) is int and abs(value) <= sys.float_info.max)
    # True is an int for Python, and no number of a config.
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _out_of_bounds(field: dataclasses.Field[Any], value: Any) -> list[str]:
    """Check a number against the bounds of its field; the comparisons are written so that NaN fails them."""
    low = field.metadata.get("low")
    high = field.metadata.get("high")
    if value is None:
        return []
    if low is None and high is None:
        is_infinite = isinstance(value, float) and not math.isfinite(value)
        return [f"{field.name} must be a finite number, got {value}"] if is_infinite else []
    if high is None:
        return [] if value >= low else [f"{field.name} must be at least {low}, got {spell(value)}"]
    if low is None:
        return [] if value <= high else [f"{field.name} must be at most {high}, got {spell(value)}"]
    return [] if low <= value <= high else [f"{field.name} must be in [{low}, {high}], got {spell(value)}"]
