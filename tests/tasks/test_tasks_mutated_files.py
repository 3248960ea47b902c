"""A thousand damaged task files: each loads right or is refused by name, none crashes or hangs."""

import copy
import json
import random
import time

import numpy as np
import pytest

from jaxarc.datasets import load_tasks
from jaxarc.datasets.json_files import find_problems, read_json
from jaxarc.tasks import TaskFormatError

VALUES = [None, True, -1, 10, 3.0, 1e308, "5", "", [], {}, [[]], [1, [2]], {"a": 1}, 10**30, "\ud800", [[0] * 31]]
TEXTS = ["NaN", "Infinity", "-", "[", "]" * 3, '"\\u0000"', "9" * 6000, "1e9999", "//", "'", "\\", "\x00", "{" * 50]


@pytest.fixture(scope="module")
def originals():
    """Ten real tasks as JSON objects."""
    tasks = load_tasks("arc-agi-1/training:first 10")
    return [
        {
            split: [{"input": a.tolist(), "output": b.tolist()} for a, b in pairs]
            for split, pairs in (("train", task.train), ("test", task.test))
        }
        for task in tasks
    ]


def cut(rng, data):
    content = json.dumps(data).encode()
    return content[: rng.randrange(len(content))]


def flip_bytes(rng, data):
    content = bytearray(json.dumps(data).encode())
    for _ in range(rng.randint(1, 4)):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def not_utf8(rng, data):
    return rng.choice(
        [json.dumps(data).encode("utf-16"), b"\xff" + json.dumps(data).encode(), bytes(rng.randbytes(200))]
    )


def swap_bytes(rng, data):
    content = bytearray(json.dumps(data).encode())
    a, b = rng.randrange(len(content)), rng.randrange(len(content))
    content[a], content[b] = content[b], content[a]
    return bytes(content)


def insert_text(rng, data):
    text = json.dumps(data)
    place = rng.randrange(len(text))
    return (text[:place] + rng.choice(TEXTS) + text[place:]).encode()


def deep(rng, data):
    depth = rng.choice([100, 5_000, 200_000])
    text = json.dumps(data)
    return text.replace("0", "[" * depth + "0" + "]" * depth, 1).encode()


def huge(rng, data):
    data = copy.deepcopy(data)
    data["train"] *= rng.choice([1, 40])
    data["test"][0]["input"] = [[rng.randrange(10)] * rng.choice([30, 31, 2_000])] * rng.choice([1, 30, 100])
    return json.dumps(data).encode()


def duplicate(rng, data):
    text = json.dumps(data)
    key = rng.choice(['"train":', '"test":', '"input":', '"output":'])
    return text.replace(key, f"{key} [], {key}", 1).encode()


def wrong_type(rng, data):
    return json.dumps(_replaced(rng, copy.deepcopy(data), lambda old: copy.deepcopy(rng.choice(VALUES)))).encode()


def dropped(rng, data):
    return json.dumps(
        _replaced(rng, copy.deepcopy(data), lambda old: old[:-1] if isinstance(old, list) else {})
    ).encode()


def _replaced(rng, node, change):
    """Change one value somewhere in a JSON object."""
    here = node
    while True:
        key = rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        inner = here[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
            here[key] = change(inner)
            return node
        here = inner


MUTATIONS = [cut, flip_bytes, not_utf8, swap_bytes, insert_text, deep, huge, duplicate, wrong_type, dropped]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_damaged_file_loads_right_or_is_refused_by_name(tmp_path, originals, mutate):
    rng = random.Random(mutate.__name__)
    refused = 0
    for number in range(100):
        data = rng.choice(originals)
        file = tmp_path / f"task{number}.json"
        file.write_bytes(mutate(rng, data))
        start = time.process_time()
        tasks, complaint = read(file)
        problems = find_problems(file)
        assert time.process_time() - start < 30, "it hangs"
        if tasks is None:
            refused += 1
            assert complaint.startswith(str(file))
            assert "\n" not in complaint
            assert len(complaint) < len(str(file)) + 400
            assert complaint == problems[0].message
        else:
            check(tasks)
            assert problems == []
    assert refused >= 20


def read(file):
    try:
        return read_json(file), ""
    except TaskFormatError as error:
        return None, str(error)


def check(tasks):
    """Assert that every grid is one, without the code under test."""
    for task in tasks:
        assert len(task.train) >= 1
        assert len(task.test) >= 1
        for grid in (grid for pair in task.pairs for grid in pair):
            assert grid.dtype == np.int8
            assert grid.ndim == 2
            assert 1 <= min(grid.shape) <= max(grid.shape) <= 30
            assert 0 <= grid.min() <= grid.max() <= 9
