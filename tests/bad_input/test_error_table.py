"""Public functions refuse wrong arguments in one clear line of their own, and the page of errors says what they say."""

import inspect
import re

import pytest

from bad_input.calls import CALLS, NOTHING_TO_REFUSE
from bad_input.table import PAGE, page_of, refusals
from bad_input.things import public_names, things

TOLD_BY_LIBRARIES = {"gymnasium_env.reset(seed=-1)"}  # Gymnasium's own check of its own argument


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return refusals(things(folder), folder)


def test_every_bad_call_is_refused_by_us_in_one_readable_line(found):
    for refusal in (refusal for rows in found.values() for refusal in rows):
        assert refusal.is_ours or refusal.call in TOLD_BY_LIBRARIES, refusal
        assert refusal.message.isprintable(), refusal
        assert 20 <= len(refusal.message) <= 1500, refusal
        assert refusal.error not in {"AttributeError", "NameError", "AssertionError", "XlaRuntimeError"}, refusal


def test_the_page_of_errors_is_up_to_date(found):
    assert PAGE.read_text(encoding="utf-8") == page_of(found), "make it anew: python docs/make_errors.py"


def test_every_public_function_has_a_bad_call_or_a_reason_for_none():
    words = set(re.findall(r"\w+", " ".join(call for calls in CALLS.values() for call in calls)))
    functions = {name for name, value in public_names().items() if _takes_arguments(value)}
    assert functions - words - set(NOTHING_TO_REFUSE) == set()
    assert set(NOTHING_TO_REFUSE) - functions == set(), "no public function is called so"


def _takes_arguments(value):
    if inspect.isclass(value):
        is_plain = (
            issubclass(value, BaseException | tuple) or inspect.isabstract(value) or hasattr(value, "_is_protocol")
        )
        return not is_plain or bool(value.__dict__.get("__check_init__"))
    return inspect.isfunction(value) and bool(inspect.signature(value).parameters)
