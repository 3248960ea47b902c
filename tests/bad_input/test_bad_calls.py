"""Public functions refuse wrong arguments in one clear line of their own, with the class, the name and the value."""

import inspect
import re
import traceback
import warnings
from pathlib import Path
from types import TracebackType
from typing import Final

import pytest

import jaxarc
from bad_input.calls import CALLS, NOTHING_TO_REFUSE
from bad_input.things import HAS_GYMNAX, NEEDS_MORE, public_names, things

TOLD_BY_LIBRARIES: Final = {"gymnasium_env.reset(seed=-1)"}  # Gymnasium's own check of its own argument
_SOURCE: Final = str(Path(jaxarc.__file__).parent)
_CHECKED_AT_RUN_TIME: Final = re.compile(
    r"^(?:\S+: )?((?:Invalid|Illegal) .*)$", re.MULTILINE
)  # our message inside the text that equinox wraps around it


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    return things(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize(("call", "refusal"), CALLS.items(), ids=CALLS)
def test_a_bad_call_is_refused_by_class_name_and_value(names, call, refusal):
    if "Gymnax" in call and not HAS_GYMNAX:
        pytest.skip("gymnax is not installed")
    with pytest.raises(Exception) as caught:  # noqa: PT011  # the class is checked below
        _call(call, names)
    error = caught.value
    kind, _, named = refusal.partition(": ")
    checked = _CHECKED_AT_RUN_TIME.search(str(error))
    message = checked[1] if checked else " ".join(str(error).split())
    assert type(error).__name__ == kind, message
    assert [word for word in named.split(" | ") if word not in message] == [], message
    assert message.isprintable()
    assert 20 <= len(message) <= 1500
    assert call in TOLD_BY_LIBRARIES or _raised_by_us(error, error.__traceback__), message


def test_every_public_function_has_a_bad_call_or_a_reason_for_none():
    words = set(re.findall(r"\w+", " ".join(CALLS)))
    functions = {name for name, value in public_names().items() if _takes_arguments(value)}
    assert functions - words - set(NOTHING_TO_REFUSE) == set()
    assert set(NOTHING_TO_REFUSE) - functions - NEEDS_MORE == set(), "no public function is called so"


def _call(call, names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, dict(names))


def _raised_by_us(error: BaseException, trace: TracebackType | None) -> bool:
    if type(error).__name__ == "EquinoxRuntimeError":  # raised by the checks that we put into compiled code
        return bool(_CHECKED_AT_RUN_TIME.search(str(error)))
    return traceback.extract_tb(trace)[-1].filename.startswith(_SOURCE)


def _takes_arguments(value):
    if inspect.isclass(value):
        is_protocol = getattr(value, "_is_protocol", False)
        is_plain = issubclass(value, BaseException | tuple) or inspect.isabstract(value) or is_protocol
        return not is_plain or bool(value.__dict__.get("__check_init__"))
    return inspect.isfunction(value) and bool(inspect.signature(value).parameters)
