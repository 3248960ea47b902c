"""Wrong inputs made of right ones: JSON is changed in its structure, to get past the parser; the rest in bytes."""

import json
import random
from collections.abc import Sequence
from typing import Any, Final

VALUES: Final = (
    *(None, True, False, 0, 1, -1, 2, 9, 10, 29, 30, 31, 34, 35, 42, 255, 256, 2**31, 2**63, 2**64, -(2**63) - 1),
    *(10**30, 10**400, 0.5, -0.0, 1.0, 1e308, 5e-324, float("nan"), float("inf")),
    *(
        "",
        "0",
        "x",
        "train",
        "\ud800",
        "\x1b[31m",
        "a\nb",
        "\u2028",
        "</script>",
        "../x",
        "/",
        "${oc.env:HOME}",
        "9" * 5000,
    ),
    *([], {}, [[]], [0], [[0]], [[0, 1], [2]], [[0] * 31], {"a": 1}, {"_target_": "os.system"}),
)
_TEXTS: Final = (
    b"\x00",
    b"\xff",
    b"NaN",
    b"[" * 1200,
    b'{"a":' * 1200,
    b'"',
    b"\n",
    b",",
    b"9" * 5000,
    b"\xef\xbb\xbf",
    b"\r",
)
_DEPTHS: Final = (3, 150, 400, 900, 980)  # the parser takes about 990


def mutate(content: bytes, random_: random.Random, words: Sequence[str] = (), max_size: int = 2**14) -> bytes:
    """Return a changed input of at most ``max_size`` bytes.

    Args:
        content: an input; JSON, lines of JSON, or anything else.
        random_: draws what is changed.
        words: texts that the reader knows, such as names of fields.
        max_size: bytes.
    """
    changed = mutate_json(content, random_, words)
    if changed is None or len(changed) > max_size:
        changed = _mutate_bytes(content, random_, words)
    return changed[:max_size]


def mutate_json(content: bytes, random_: random.Random, words: Sequence[str] = ()) -> bytes | None:
    """Change the structure of JSON, or of one line of it; None where there is none."""
    try:
        text = content.decode()
        if text.count("\n") > 1:
            lines = text.split("\n")
            place = random_.randrange(len(lines))
            lines[place] = _mutate_text(lines[place], random_, words)
            return "\n".join(lines).encode()
        return _mutate_text(text, random_, words).encode()
    except (ValueError, RecursionError):
        return None


def _mutate_text(text: str, random_: random.Random, words: Sequence[str]) -> str:
    holder = [json.loads(text)]  # so that the outermost value has a place too
    for _ in range(random_.choice((1, 1, 1, 2, 4))):
        _mutate_value(holder, random_, words)
    changed = json.dumps(holder[0])
    if random_.random() < 0.02:  # an object that has a key twice
        changed = changed.replace('{"', '{"' + random_.choice((*words, "train")) + '": 1, "', 1)
    return changed


def _mutate_value(holder: list[Any], random_: random.Random, words: Sequence[str]) -> None:
    places = _places(holder)
    owner, key = random_.choice(places)
    value = owner[key]
    match random_.randrange(10):
        case 0 | 1:
            owner[key] = _new_value(random_, words)
        case 2 if owner is not holder:
            del owner[key]
        case 3 if isinstance(owner, list) and owner is not holder:
            owner[key:key] = [value] * random_.choice((1, 1, 2, 30))
        case 4:  # a value of another place; never one that holds this place
            other, other_key = random_.choice(places)
            owner[key] = json.loads(json.dumps(other[other_key]))
        case 5 if isinstance(owner, dict) and words:
            owner[random_.choice(words)] = owner.pop(key)
        case 6 if isinstance(value, dict | list):
            _add(value, random_, words)
        case 7:
            owner[key] = _nested(value, random_)
        case _:
            owner[key] = _tweaked(value, random_, words)


def _places(holder: list[Any]) -> list[tuple[Any, Any]]:
    """List where values stand, as owner and key; of a large input the first thousand."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [holder]
    while waiting and len(found) < 1000:
        owner = waiting.pop()
        keys = owner.keys() if isinstance(owner, dict) else range(len(owner))
        for key in keys:
            found.append((owner, key))
            if isinstance(owner[key], dict | list):
                waiting.append(owner[key])
    return found


def _new_value(random_: random.Random, words: Sequence[str]) -> Any:
    if words and random_.random() < 0.3:
        return random_.choice(words)
    return json.loads(json.dumps(random_.choice(VALUES)))  # a copy


def _add(value: Any, random_: random.Random, words: Sequence[str]) -> None:
    if isinstance(value, list):
        value.insert(random_.randint(0, len(value)), _new_value(random_, words))
    else:
        value[random_.choice((*words, "", "x", "\x00"))] = _new_value(random_, words)


def _nested(value: Any, random_: random.Random) -> Any:
    for _ in range(random_.choice(_DEPTHS)):
        value = [value]
    return value


def _tweaked(value: Any, random_: random.Random, words: Sequence[str]) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + random_.choice((-1, 1, 10, -value, -2 * value, 2**16))
    if isinstance(value, float):
        return value * random_.choice((-1.0, 0.5, 1e200)) + random_.choice((0.0, 1.0))
    if isinstance(value, str):
        return _tweaked_text(value, random_, words)
    return list(value) if isinstance(value, dict) else {str(place): one for place, one in enumerate(value)}


def _tweaked_text(text: str, random_: random.Random, words: Sequence[str]) -> str:
    if text[:1] in ("{", "[") and random_.random() < 0.9:
        try:
            return _mutate_text(text, random_, words)
        except (ValueError, RecursionError):
            pass
    place = random_.randint(0, len(text))
    added = random_.choice((*words, "\n", "\x00", "é", " ", ":", ",", "=", "@", "-", "9"))
    return random_.choice(
        (text[:place] + added + text[place:], text[:place] + text[place + 1 :], text[:place], text * 2)
    )


def _mutate_bytes(content: bytes, random_: random.Random, words: Sequence[str]) -> bytes:
    changed = bytearray(content)
    for _ in range(random_.choice((1, 1, 2, 4))):
        start, end = sorted((random_.randint(0, len(changed)), random_.randint(0, len(changed))))
        match random_.randrange(7):
            case 0 | 1 if start < len(changed):
                changed[start] ^= 1 << random_.randrange(8)
            case 2:
                del changed[start:end]
            case 3:
                changed[start:start] = changed[start:end]
            case 4:
                changed[start:start] = random_.choice(_TEXTS)
            case 5 if words:
                changed[start:start] = random_.choice(words).encode("utf-8", "surrogatepass")
            case _:
                changed[start : start + 4] = random_.randbytes(random_.randint(0, 4))
    return bytes(changed)
