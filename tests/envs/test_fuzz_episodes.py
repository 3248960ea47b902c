"""Whole episodes through the public functions against the NumPy reference, under many rules."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import EXECUTORS
from reference.cases import random_boxes, random_masks, random_operations, random_pairs, random_points
from reference.episode import ReferenceEpisode

from jaxarc.config import JaxArcConfig
from jaxarc.envs.functional import arc_reset, batch_step
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.tasks import create_task

EPISODES, STEPS = 48, 30
REWARDS = {
    "step_penalty": -0.01,
    "success_bonus": 10.0,
    "unsolved_submission_penalty": -1.0,
    "invalid_action_penalty": -0.1,
}

RULES = {
    "point": {"selection_format": "point"},
    "bbox, several submits": {"selection_format": "bbox", "max_submissions": 3, "gamma": 0.9},
    "mask, short": {"selection_format": "mask", "max_episode_steps": 7},
    "clip": {"selection_format": "bbox", "invalid_action_policy": "clip", "max_submissions": 5},
    "switching demonstrations": {"selection_format": "bbox", "allow_demo_switching": True, "max_submissions": 9},
    "test": {"selection_format": "point", "mode": "test", "max_submissions": 2},
    "test, scored": {"selection_format": "mask", "mode": "test", "score_on_submit": True, "max_submissions": 4},
    "switching tests": {
        "selection_format": "bbox",
        "mode": "test",
        "allow_test_switching": True,
        "score_on_submit": True,
        "max_submissions": 9,
    },
    "switching hidden tests": {
        "selection_format": "point",
        "mode": "test",
        "allow_test_switching": True,
        "allowed_operations": (0, 7, 34, 37, 38, 41),
        "max_submissions": 5,
    },
    "few operations": {
        "selection_format": "point",
        "allowed_operations": (0, 3, 12, 24, 33, 34, 39),
        "max_submissions": 3,
    },
}


def _pairs(rng, count, shape):
    """Random pairs without their padding."""
    crop = lambda grid: grid[: (grid[:, 0] >= 0).sum(), : (grid[0] >= 0).sum()]
    return [(crop(start), crop(target)) for start, target in random_pairs(rng, count, *shape)]


def _actions(rng, kind, count, shape):
    """Actions of a batch, and the same as (operation, selection) pairs for the reference."""
    operations = random_operations(rng, count)
    match kind:
        case "point":
            points = random_points(rng, count, *shape)
            return (
                PointAction(operations, points[:, 0], points[:, 1]),
                [("point", tuple(p)) for p in points],
                operations,
            )
        case "bbox":
            boxes = random_boxes(rng, count, *shape)
            return BboxAction(operations, *boxes.T), [("bbox", tuple(b)) for b in boxes], operations
        case _:
            masks = random_masks(rng, count, *shape)
            return MaskAction(operations, masks), [("mask", m) for m in masks], operations


def _facts(state):
    return {
        "grid": state.working_grid,
        "target": state.target_grid,
        "selection": state.selected,
        "clipboard": state.clipboard,
        "step_count": state.step_count,
        "submission_count": state.submission_count,
        "pair_index": state.pair_index,
        "terminated": state.terminated,
        "truncated": state.truncated,
    }


@pytest.mark.parametrize("rules", RULES.values(), ids=list(RULES))
def test_episodes_agree_with_the_reference(rules):
    shape = (6, 5)
    rng = np.random.default_rng(len(str(rules)))
    defaults = {"invalid_action_policy": "noop", "max_episode_steps": STEPS - 5, **REWARDS}
    fields = {**defaults, **rules}
    config = JaxArcConfig().with_fields(max_grid_height=shape[0], max_grid_width=shape[1], **fields)
    others = [config.with_fields(executor=executor) for executor in EXECUTORS[1:]]
    config = config.with_fields(executor=EXECUTORS[0])
    tasks = [(_pairs(rng, 3, shape), _pairs(rng, 2, shape)) for _ in range(EPISODES)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *[create_task(*task, grid_shape=shape) for task in tasks])
    keys = jax.random.split(jax.random.key(0), EPISODES)
    states, _ = jax.vmap(arc_reset, in_axes=(0, None, 0))(keys, config, stacked)
    reference_fields = {name: value for name, value in fields.items() if name != "selection_format"}
    episodes = [
        ReferenceEpisode(*task, *shape, int(states.pair_index[i]), **reference_fields) for i, task in enumerate(tasks)
    ]
    for step in range(STEPS):
        actions, selections, operations = _actions(rng, config.action.selection_format, EPISODES, shape)
        result = batch_step(states, actions, config)
        for other in others:
            chex.assert_trees_all_equal(batch_step(states, actions, other), result, strict=True)
        states, _, rewards, dones, infos = jax.device_get(result)
        facts = jax.device_get(_facts(states))
        for i, episode in enumerate(episodes):
            episode.step(operations[i], selections[i])
            expected = {
                "grid": episode.grid,
                "target": episode.target,
                "selection": episode.selection,
                "clipboard": episode.clipboard,
                "step_count": episode.step_count,
                "submission_count": episode.submission_count,
                "pair_index": episode.pair_index,
                "terminated": episode.terminated,
                "truncated": episode.truncated,
            }
            where = f"step {step}, environment {i}, operation {operations[i]}"
            for name, value in expected.items():
                np.testing.assert_array_equal(facts[name][i], value, f"{name} at {where}")
            assert states.similarity_score[i] == episode.similarity, where
            assert infos["invalid_action"][i] == episode.invalid_action, where
            assert dones[i] == episode.done, where
            np.testing.assert_allclose(rewards[i], episode.reward, rtol=0, atol=1e-6, err_msg=where)
