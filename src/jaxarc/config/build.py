"""From a mapping to a config: an unknown field is an error that lists the known ones."""

import dataclasses
import difflib
import math
import reprlib
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self, TypeVar

Config = TypeVar("Config", bound="CheckedConfig")

_BRIEF = reprlib.Repr()  # a message is a line, whatever the value: a file may hold thousands of numbers for one
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxlong, _BRIEF.maxother = 3, 200, 40, 200
_BRIEF.maxlist = _BRIEF.maxtuple = 50
_MOST_LETTERS: Final = 400


class ConfigValidationError(ValueError):
    """A config field holds a value that its rule does not allow."""


class UnknownFieldError(ConfigValidationError, KeyError):
    """A mapping names a field that the config does not have."""

    def __str__(self) -> str:
        return ValueError.__str__(self)


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
            if isinstance(value, list):
                object.__setattr__(self, field.name, tuple(value))
        if problems := (self._wrong_types() or self.validate()):
            raise ConfigValidationError(f"{type(self).__name__}: " + "; ".join(problems))

    def validate(self) -> list[str]:
        """List every broken rule as one sentence that names the field, its value and the rule; empty when all hold."""
        return []

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, checked like a new one."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            check_known(type(self).__name__, name, known)
        return dataclasses.replace(self, **changes)

    def _wrong_types(self) -> list[str]:
        hints = typing.get_type_hints(type(self))
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return [
            f"{name} must be {_spell(hints[name])}, got {spell(value)} of type {type(value).__name__}"
            for name, value in values.items()
            if not _fits(value, hints[name])
        ]


def build(kind: type[Config], overrides: Mapping[str, Any] | None = None) -> Config:
    """Make a config of ``kind`` from a (nested) mapping; what is not named keeps its default.

    Raises:
        ConfigValidationError: an unknown field (also a ``KeyError``), a wrong type, or a broken rule.
    """
    hints = typing.get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    values: dict[str, Any] = {}
    if overrides is not None and not isinstance(overrides, Mapping):
        raise ConfigValidationError(f"{kind.__name__}: fields come as a mapping, got {spell(overrides)}; write one")
    for name, value in (overrides or {}).items():
        check_known(kind.__name__, str(name), known)
        hint = hints[name]
        nested = isinstance(hint, type) and issubclass(hint, CheckedConfig) and isinstance(value, Mapping)
        values[name] = build(hint, value) if nested else value
    return kind(**values)


def check_known(owner: str, name: str, known: Sequence[str]) -> None:
    """Raise when ``name`` is not one of the fields ``known`` of ``owner``."""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UnknownFieldError(f"{owner}: no field {name!r:.100}; known fields: {', '.join(known)}.{hint}")


def spell(value: Any) -> str:
    """Write a value for a message, cut where it is long."""
    text = _BRIEF.repr(value)
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 3] + "..."


def one_of(name: str, value: Any, allowed: Sequence[Any]) -> list[str]:
    return [] if value in allowed else [f"{name} must be one of {tuple(allowed)}, got {spell(value)}"]


def at_least(name: str, value: float, low: float) -> list[str]:
    return [] if value >= low else [f"{name} must be at least {low}, got {spell(value)}"]


def fits_int32(name: str, value: int) -> list[str]:
    return [] if value < 2**31 else [f"{name} must be below 2**31, got {spell(value)}"]


def in_range(name: str, value: float, low: float, high: float) -> list[str]:
    return [] if low <= value <= high else [f"{name} must be in [{low}, {high}], got {spell(value)}"]


def finite(name: str, value: float) -> list[str]:
    return [] if math.isfinite(value) else [f"{name} must be a finite number, got {value}"]


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is tuple:
        item = typing.get_args(hint)[0]
        return isinstance(value, tuple) and all(_fits(element, item) for element in value)
    if hint is float:  # no whole number that is larger than every float
        return isinstance(value, float) or (type(value) is int and abs(value) <= sys.float_info.max)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _spell(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
