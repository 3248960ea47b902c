"""``jaxarc replay`` as a user runs it: on a file of traces, on the cache, on a run."""

import base64
import io
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib

import pytest
from PIL import Image
from run_command import run_command
from untrained_run import write_untrained_run

from jaxarc.cli import replay_sources
from jaxarc.render import ARC_COLORS, SAFE_COLORS

FLIP = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[1, 2]], "output": [[2, 1]]}]}
SUBMIT = [34, 0, 0, 0, 0]


@pytest.fixture(autouse=True, scope="module")
def small_canvas():
    """Play on few cells, which compiles faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_sources, "_SIDE", 4)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in ("one", "two"):
        (folder / f"{name}.json").write_text(json.dumps(FLIP))
    return folder


@pytest.fixture
def replay(tmp_path):
    def call(*arguments, name="replay.html"):
        out = tmp_path / name
        words = ["replay", *map(str, arguments), "--output", str(out)]
        result = run_command(*words, columns=400)
        is_text = name.endswith((".html", ".svg"))
        return result, (out.read_text() if is_text else out.read_bytes()) if result.exit_code == 0 else ""

    return call


def line(task_id="one", actions=((2, 0, 0, 0, 0), (1, 0, 1, 0, 1), SUBMIT), **more):
    return json.dumps({"task_id": task_id, "pair_index": 0, "actions": actions, **more})


def index_of(html):
    index = json.loads(re.search(r'id="index">(.*?)</script>', html)[1])
    return [dict(zip(index["columns"], row, strict=True)) for row in index["episodes"]], index


def facts_of(html, episode):
    packed = re.search(r'id="packed">([^<]*)<', html)[1].split("\n")
    return json.loads(zlib.decompress(base64.b64decode(packed[episode["packed"]])).partition(b"\n")[0])


def test_a_file_of_traces_becomes_a_page_with_the_rewards_of_the_environment(replay, data, tmp_path):
    file = tmp_path / "traces.jsonl"
    point = line("two", [[2, 0, 0], [34, 0, 0]], action_format="point", expert="human")
    train = line("two", [SUBMIT], split="train")
    file.write_text("\n".join([line(dataset=str(data)), point, train]))
    result, html = replay(file, "--dataset", data)
    assert result.exit_code == 0, result.output
    assert "3 episodes, 1 solved" in result.output
    (first, train, point), index = index_of(html)
    assert index["title"] == "traces.jsonl"
    assert [task["id"] for task in index["tasks"]] == ["one", "two"]
    assert (first["pair"], first["solved"], first["steps"], first["similarity"]) == ("test 0", 1, 3, 1)
    assert (train["pair"], train["solved"]) == ("train 0", 0)
    assert point["player"].startswith("human 1, point")
    facts = facts_of(html, first)
    assert facts["similarities"] == [0, 0.5, 1, 1]
    assert facts["rewards"] == pytest.approx([0.49, 0.49, 9.99])


def test_what_was_recorded_without_a_submit_is_shown_without_one(replay, data, tmp_path):
    file = tmp_path / "played.jsonl"
    done = line(actions=((2, 0, 0, 0, 0), (1, 0, 1, 0, 1)))
    undone = line("two", actions=[], split="train")
    file.write_text(f"{done}\n{undone}")
    result, html = replay(file, "--dataset", data)
    assert result.exit_code == 0, result.output
    assert "2 episodes, 0 solved" in result.output
    episodes, _ = index_of(html)
    assert [(one["steps"], one["solved"], one["similarity"]) for one in episodes] == [(2, 0, 1), (0, 0, 0)]


def test_traces_say_themselves_what_they_are_of_and_some_may_be_chosen(replay, data, tmp_path):
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join(line(task_id, dataset=str(data)) for task_id in ("one", "two", "two")))
    result, html = replay(file, "--task", "two", "--most", 1)
    assert result.exit_code == 0, result.output
    assert "1 of 2 episodes, 1 solved" in result.output
    assert "--most 2" in result.output
    episodes, index = index_of(html)
    assert len(episodes) == 1
    assert [task["id"] for task in index["tasks"]] == ["two"]
    wrong, _ = replay(file, "--task", "three")
    assert wrong.exit_code == 2
    assert "three" in wrong.output


def test_an_episode_becomes_a_picture(replay, data, tmp_path):
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join([line(), line("two")]))
    result, gif = replay(file, "--dataset", data, name="episode.gif")
    assert result.exit_code == 0, result.output
    with Image.open(io.BytesIO(gif)) as moving:
        assert moving.n_frames == 4, "one episode, if nothing else is said: the start and three actions"
    _, drawing = replay(file, "--dataset", data, "--most", 2, "--colors", "safe", name="episodes.svg")
    texts = [text.text for text in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("task two")] == [
        "task two, step 0 of 3: start",
        "task two, step 1 of 3: fill red",
        "task two, step 2 of 3: fill blue",
        "task two, step 3 of 3: submit, solved",
    ]
    assert SAFE_COLORS[2] in drawing
    assert ARC_COLORS[2] not in drawing
    result, _ = replay(file, "--dataset", data, name="episode.jpg")
    assert result.exit_code == 2
    assert ".html, .gif, .svg, .png" in result.output


def test_recorded_traces_of_an_expert_are_found(replay, data, tmp_path):
    cache = tmp_path / "traces"
    words = ["traces", "record", data, "--expert", "trace_experts:CellExpert", "--processes", 0, "--cache", cache]
    assert run_command(*words).exit_code == 0
    result, html = replay("trace_experts:CellExpert", "--dataset", data, "--cache", cache)
    assert result.exit_code == 0, result.output
    assert "4 episodes, 4 solved" in result.output
    assert {episode["player"] for episode in index_of(html)[0]} == {"cells 1, bbox, 30x30"}


def test_an_unknown_source_is_named_with_what_to_do(replay, data, tmp_path):
    result, _ = replay("nobody", "--dataset", data)
    assert result.exit_code == 2
    assert "no file or folder 'nobody'" in result.output
    result, _ = replay("painter", "--dataset", data, "--cache", tmp_path)
    assert result.exit_code == 1
    assert f"jaxarc traces record {data} --expert painter --format bbox" in result.output


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no trace"),
        (line(pair_index=7), "1 train and 1 test pairs, counted from 0, got test/7"),
        (line(actions=[[2, 0, 0, 9, 0]]), "row 9 is not on the canvas"),
    ],
    ids=["empty", "no such pair", "outside"],
)
def test_a_wrong_trace_is_named(replay, data, tmp_path, text, complaint):
    file = tmp_path / "traces.jsonl"
    file.write_text(text)
    result, _ = replay(file, "--dataset", data)
    assert result.exit_code == 1
    assert re.search(complaint, result.stderr)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, data):
    """A checkpoint of an agent that has learned nothing."""
    measured = tmp_path_factory.mktemp("measured")
    other = {"train": [{"input": [[3]], "output": [[4]]}], "test": [{"input": [[3, 4]], "output": [[4, 3]]}]}
    for name in ("one", "two"):
        (measured / f"{name}.json").write_text(json.dumps(other))
    folder = tmp_path_factory.mktemp("run")
    write_untrained_run(folder, data, measured)
    return folder


def test_the_agent_of_a_run_plays_the_pairs_that_it_was_measured_on(replay, run_folder):
    result, html = replay(run_folder, "--learned", "--task", "two")
    assert result.exit_code == 0, result.output
    episodes, index = index_of(html)
    assert [one["pair"] for one in episodes] == ["train 0, learned", "test 0, learned", "train 0", "test 0"]
    assert {one["player"] for one in episodes} == {"ppo, seed 4"}
    task = json.loads(zlib.decompress(base64.b64decode(re.search(r'id="packed">([^\n<]*)', html)[1])))
    assert task["demonstrations"] == [[["1"], ["2"]]], "the demonstrations of the task, not of the measured pair"
    assert index["title"] == f"Agent {run_folder.name}"


def test_what_does_not_fit_a_run_is_refused(replay, run_folder, data):
    for words in (("--dataset", data), ("--task", "three")):
        result, _ = replay(run_folder, *words)
        assert result.exit_code == 2
        assert words[0] in result.output
