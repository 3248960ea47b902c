"""Objects of JSON that carry a checksum of themselves: a changed one is noticed, though it still is JSON."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

SEAL: Final = "sha256"  # the field, whose value is the first digits of the SHA-256 of all others
_DIGITS: Final = 16


class SealError(ValueError):
    """An object is not the one that was written."""


def sealed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with their checksum behind them, for JSON."""
    return {**fields, SEAL: _checksum(fields)}


def unsealed(content: Any) -> dict[str, Any]:
    """Return the fields of an object without its checksum; one that never had any is taken as it is.

    Raises:
        SealError: it is no object, or its checksum is that of other fields.
    """
    if not isinstance(content, Mapping):
        raise SealError("it is no JSON object")
    fields = {name: value for name, value in content.items() if name != SEAL}
    if SEAL in content and content[SEAL] != _checksum(fields):
        raise SealError(
            f"it is not as it was written, its {SEAL!r} is of other contents; bring the file back, or take {SEAL!r} "
            "out if it was changed on purpose"
        )
    return fields


def _checksum(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
