"""Episodes whose results are kept: fixed tasks, actions spelled out, and what the environment returned, as hashes.

Nothing is drawn at random when an episode is played again, so the hashes say something about the rules alone.
"""

import hashlib
import itertools
import json
from pathlib import Path

import jax
import numpy as np

import jaxarc
from jaxarc.constants import FILL, NUM_OPERATIONS, PREVIOUS_DEMO_PAIR, PREVIOUS_TEST_PAIR, SUBMIT
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction, MaskAction, PointAction
from jaxarc.tasks import RawTask
from jaxarc.testing import create_test_config

FOLDER = Path(__file__).parent
CANVAS = (3, 4)
MAX_STEPS = 48
CASES = [f"{format_}_{mode}" for format_, mode in itertools.product(("point", "bbox", "mask"), ("train", "test"))]
RESULTS = ("observation", "reward", "done", "info")

_A, _B = np.array([[1, 2, 3], [4, 0, 4]]), np.array([[5, 5], [0, 6], [5, 7]])
_C, _D = np.array([[8, 0, 0, 9]]), np.array([[1, 1, 2, 1], [1, 2, 2, 1], [3, 3, 3, 3]])
TASKS = TaskSet(
    "golden",
    (
        RawTask("golden/shapes", ((_A, _A[:, ::-1]), (_B, _B.T), (_C, _C)), ((_D, _D[::-1]), (_B, _B))),
        RawTask("golden/colors", ((_D, _D % 3), (_A, _A + 1)), ((_C, _C + 0), (_A, _B))),
    ),
)


def make_case(case):
    """Return the environment and params of a case."""
    selection_format, mode = case.split("_")
    config = create_test_config(
        MAX_STEPS, selection_format, CANVAS, mode=mode, max_submissions=2, gamma=0.75,
        allow_demo_switching=True, allow_test_switching=True, score_on_submit=True, invalid_action_policy="noop",
        invalid_action_penalty=-0.5, include_step_count=True,
    )  # fmt: skip
    return jaxarc.make(TASKS, config)


def write_actions(case):
    """Write down an action list for each task, with every operation id.

    The first solves a pair, goes on and terminates; the second submits once and is truncated. Both go past their end.
    """
    rng, selection_format = np.random.default_rng(CASES.index(case)), case.split("_")[0]
    others = [operation for operation in range(NUM_OPERATIONS) if operation != SUBMIT]
    solving = [PREVIOUS_DEMO_PAIR, PREVIOUS_TEST_PAIR, SUBMIT]  # the last pair's input is its output
    first = [*solving, *rng.permutation(others), SUBMIT, FILL + 3]
    start, more = rng.permutation(others), rng.permutation(others)
    second = [*start[:20], SUBMIT, *start[20:], *more[: MAX_STEPS + 1 - NUM_OPERATIONS]]
    return [
        [[int(operation), *_write_selection(rng, selection_format)] for operation in order] for order in (first, second)
    ]


def play(case, actions, info_keys, compiler_options=None):
    """Play action lists and return the hashes of each task's episode, the reset first."""
    env, params = make_case(case)
    step = env.step if compiler_options is None else jax.jit(env.step, compiler_options=compiler_options)
    return [_play_episode(env, step, params, task, episode, info_keys) for task, episode in enumerate(actions)]


def record(case):
    """Play a case that was never played."""
    env, params = make_case(case)
    state, _ = env.reset(jax.random.key(0), params, 0, 0)
    keys, actions = sorted(env.info(state, params)), write_actions(case)
    return {"info_keys": keys, "actions": actions, "hashes": play(case, actions, keys)}


def load(case):
    return json.loads((FOLDER / f"{case}.json").read_text(encoding="utf-8"))


def _write_selection(rng, selection_format):
    height, width = CANVAS
    if selection_format == "mask":  # rows of zeros and ones
        return ["/".join("".join("01"[cell] for cell in row) for row in rng.integers(0, 2, CANVAS))]
    corners = 1 if selection_format == "point" else 2
    return [int(rng.integers(0, limit)) for _ in range(corners) for limit in (height, width)]


def read_action(written):
    operation, *selection = written
    if isinstance(selection[0], str):
        return MaskAction(operation, np.array([[cell == "1" for cell in row] for row in selection[0].split("/")]))
    return (PointAction if len(selection) == 2 else BboxAction)(operation, *selection)


def _play_episode(env, step, params, task, actions, info_keys):
    state, observation = env.reset(jax.random.key(task), params, task, 0)
    hashes = [hash_of(observation)]
    for written in actions:
        state, observation, reward, done, info = step(state, read_action(written), params)
        report = {name: info[name] for name in info_keys}  # a key that is new in info changes no behavior
        parts = dict(zip(RESULTS, (observation, reward, done, report), strict=True))
        hashes.append(" ".join(hash_of(parts[name]) for name in RESULTS))
    return hashes


def hash_of(tree):
    """First 12 digits of the SHA-256 of all leaves with their names; floats to 5 places, which all machines share."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        value = np.asarray(leaf)
        if np.issubdtype(value.dtype, np.floating):
            text = " ".join(f"{x + 0.0:.5f}" for x in np.round(value.astype(np.float64), 5).ravel())
        else:
            text = " ".join(str(int(x)) for x in value.ravel())
        digest.update(f"{jax.tree_util.keystr(path)} {value.dtype} {value.shape} {text}\n".encode())
    return digest.hexdigest()[:12]
