"""Bad input: a clear error that names the value, the rule and the fix, or the policy that was asked for."""

import dataclasses
import functools
import os
import subprocess
import sys
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.config import (
    ActionConfig,
    ConfigValidationError,
    DatasetConfig,
    EnvironmentConfig,
    EpisodeConfig,
    HistoryConfig,
    JaxArcConfig,
    ObservationConfig,
    RewardConfig,
)
from jaxarc.constants import SUBMIT
from jaxarc.envs import BboxAction, MaskAction, PointAction, arc_reset, arc_step
from jaxarc.tasks import create_mock_task
from jaxarc.testing import create_test_config
from jaxarc.utils.error_handling import JAXErrorHandler

H, W = CANVAS = (4, 5)
FULL = np.ones(CANVAS, bool)
TOPICS = [
    ActionConfig,
    DatasetConfig,
    EnvironmentConfig,
    EpisodeConfig,
    HistoryConfig,
    ObservationConfig,
    RewardConfig,
    JaxArcConfig,
]


def make_config(selection_format="point", **fields):
    return create_test_config(selection_format=selection_format, grid_shape=CANVAS, **fields)


@functools.cache
def start(config):
    return arc_reset(jax.random.key(0), config, create_mock_task(*CANVAS))[0]


def make_action(selection_format="point", **fields):
    """A valid action, but for the given fields."""
    match selection_format:
        case "point":
            return PointAction(**{"operation": 9, "row": 0, "col": 0, **fields})
        case "bbox":
            return BboxAction(**{"operation": 9, "r1": 0, "c1": 0, "r2": 0, "c2": 0, **fields})
        case _:
            return MaskAction(**{"operation": 9, "selection": FULL, **fields})


COORDINATES = [
    (kind, field, axis)
    for kind, fields in {"point": ("row", "col"), "bbox": ("r1", "c1", "r2", "c2")}.items()
    for axis, field in zip((H, W) * 2, fields, strict=False)
]


# Actions: values that are known when the step runs.
@pytest.mark.parametrize(
    ("operation", "named"), [(42, "42"), (-1, "-1"), (100, "100"), (10**6, "1000000"), (-(2**31), "below -67108864")]
)
@pytest.mark.parametrize("selection_format", ["point", "bbox", "mask"])
def test_operation_out_of_range_names_value_and_range(selection_format, operation, named):
    config = make_config(selection_format)
    with pytest.raises(RuntimeError, match=rf"ID {named}.*\[0, 41\]"):
        arc_step(start(config), make_action(selection_format, operation=operation), config)


@pytest.mark.parametrize("where", ["below", "above"])
@pytest.mark.parametrize(("selection_format", "field", "size"), COORDINATES)
def test_coordinate_out_of_range_names_field_value_and_range(selection_format, field, size, where):
    config, value = make_config(selection_format), -2 if where == "below" else size
    with pytest.raises(RuntimeError, match=rf"{selection_format} {field} {value}\b.*\[0, {size - 1}\]"):
        arc_step(start(config), make_action(selection_format, **{field: value}), config)


@pytest.mark.parametrize(
    ("operation", "fields", "rule"),
    [
        (5, {"allowed_operations": (0, 1, SUBMIT)}, r"action.allowed_operations=\(0, 1, 34\)"),
        (35, {}, "train mode, pair switching off"),
        (37, {"allow_demo_switching": True}, "train mode, pair switching on"),
        (35, {"mode": "test", "allow_test_switching": True}, "test mode, pair switching on"),
    ],
)
def test_illegal_operation_names_what_is_allowed(operation, fields, rule):
    config = make_config(**fields)
    with pytest.raises(RuntimeError, match=f"{operation}.*{rule}"):
        arc_step(start(config), make_action(operation=operation), config)


def test_validate_action_returns_a_valid_action_and_refuses_others():
    config = make_config("bbox")
    good = make_action("bbox", r1=3, c2=4)
    assert eqx.tree_equal(JAXErrorHandler.validate_action(good, config), good)
    assert eqx.tree_equal(good.validate(config), good)
    with pytest.raises(RuntimeError, match="Invalid bbox r2 4"):
        JAXErrorHandler.validate_action(make_action("bbox", r2=4), config)
    with pytest.raises(RuntimeError, match="Invalid bbox r2 4"):
        make_action("bbox", r2=4).validate(config)


def test_validate_action_works_inside_jit_and_vmap():
    config = make_config()
    check = eqx.filter_jit(jax.vmap(lambda action: JAXErrorHandler.validate_action(action, config).row))
    assert check(PointAction([0, 1], [2, 3], [0, 0])).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="Invalid point row 4"):
        check(PointAction([0, 1], [2, 4], [0, 0]))


# Configs.


@pytest.mark.parametrize(
    ("topic", "field", "value"),
    [
        *[(ActionConfig, "allowed_operations", value) for value in ((3, 42, -1), (), (3, 3))],
        (ActionConfig, "selection_format", "pixel"),
        (ActionConfig, "invalid_action_policy", "penalize"),
        *[(DatasetConfig, "max_grid_height", value) for value in (0, 31)],
        *[(EnvironmentConfig, "max_episode_steps", value) for value in (0, 2**31)],
        (EnvironmentConfig, "max_submissions", -1),
        (EnvironmentConfig, "executor", "fast"),
        *[(EpisodeConfig, field, "last") for field in ("mode", "demo_selection", "test_selection", "start_grid")],
        *[(EpisodeConfig, field, 31) for field in ("start_height", "start_width")],
        *[(EpisodeConfig, "partial_probability", value) for value in (1.5, float("nan"))],
        (HistoryConfig, "max_history_length", 0),
        (RewardConfig, "gamma", 1.01),
        (RewardConfig, "step_penalty", float("-inf")),
        *[(RewardConfig, field, float("nan")) for field in ("similarity_weight", "invalid_action_penalty")],
    ],
    ids=str,
)
def test_a_bad_field_is_refused_by_name_and_value(topic, field, value):
    with pytest.raises(ConfigValidationError) as caught:
        topic(**{field: value})
    assert [word for word in (topic.__name__, field) if word not in str(caught.value)] == []
    assert isinstance(value, tuple) or str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("topic", "field"), [(topic, field.name) for topic in TOPICS for field in dataclasses.fields(topic)]
)
def test_value_of_another_type_names_field_and_value(topic, field):
    with pytest.raises(ConfigValidationError, match=rf"^{topic.__name__}: {field} must be .*, got 1j"):
        topic(**{field: 1j})


# Arguments that do not fit one another.
@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({"max_grid_height": 5}, r"\(4, 5\).*\(5, 5\)"),
        ({"selection_format": "bbox"}, "point.*bbox"),
        ({"max_episode_steps": 50}, "100.*50"),
        ({"history_enabled": False}, "100.*None"),
    ],
    ids=str,
)
def test_state_of_another_config_is_refused(fields, fact):
    config = make_config().with_fields(**fields)
    with pytest.raises(ValueError, match=fact):
        arc_step(start(make_config()), make_action(config.action.selection_format), config)


# States.
@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (lambda s: s.counts, jnp.full((5,), -1, jnp.int32), "Step count"),
        (lambda s: s.similarity_score, jnp.float32(1.5), r"\[0.0, 1.0\]"),
        (lambda s: s.similarity_score, jnp.float32(-0.1), r"\[0.0, 1.0\]"),
        (lambda s: s.similarity_score, np.float32("nan"), r"\[0.0, 1.0\]"),
    ],
    ids=["steps", "above", "below", "nan"],
)
@pytest.mark.usefixtures("nans_allowed")
def test_inconsistent_state_is_refused(where, value, message):
    state = start(make_config())
    assert eqx.tree_equal(JAXErrorHandler.validate_state_consistency(state), state)
    with pytest.raises(RuntimeError, match=message):
        JAXErrorHandler.validate_state_consistency(eqx.tree_at(where, state, value))


@pytest.mark.parametrize("field", ["target_grid", "working_grid_mask"])
def test_state_whose_grids_differ_in_shape_is_refused(field):
    grids = dict.fromkeys(["working_grid", "target_grid", "working_grid_mask"], np.zeros(CANVAS))
    state = SimpleNamespace(
        **{**grids, field: np.zeros((2, 2))}, step_count=np.int32(0), similarity_score=np.float32(0)
    )
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        JAXErrorHandler.validate_state_consistency(state)


# Error modes; setting one forgets compiled functions, so these come last.
@pytest.fixture
def error_mode():
    before = JAXErrorHandler.get_error_mode()
    yield JAXErrorHandler.set_error_mode
    JAXErrorHandler.set_error_mode(before)


@pytest.mark.parametrize("mode", ["nan", "off"])
def test_step_goes_on_without_effect_where_raising_is_switched_off(error_mode, mode):
    error_mode(mode)
    config = make_config()
    state, _, reward, _, info = arc_step(start(config), make_action(operation=SUBMIT + 100), config)
    assert info["invalid_action"]
    assert state.submission_count == 0
    assert eqx.tree_equal(state.canvas, start(config).canvas)
    assert reward == pytest.approx(-0.01 - 0.1)


def test_error_mode_takes_effect_on_compiled_functions(error_mode):
    config, wrong = make_config(), make_action(row=H)
    state = start(config)
    calls = [JAXErrorHandler.validate_action, lambda action, config: arc_step(state, action, config)]
    for mode in ("raise", "off", "raise"):
        error_mode(mode)
        for call in calls:
            if mode == "off":
                call(wrong, config)
            else:
                with pytest.raises(RuntimeError, match="Invalid point row 4"):
                    call(wrong, config)


PROGRAM = """
import jax
from jaxarc.envs import PointAction, arc_reset, arc_step
from jaxarc.testing import create_mock_task, create_test_config
config = create_test_config(grid_shape=(2, 2))
state, _ = arc_reset(jax.random.key(0), config, create_mock_task(2, 2))
print(bool(arc_step(state, PointAction(100, 0, 0), config)[-1]["invalid_action"]))
"""


@pytest.mark.parametrize(("mode", "goes_on"), [("raise", False), ("off", True)])
def test_environment_variable_of_equinox_chooses_the_mode(mode, goes_on):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "EQX_ON_ERROR": mode},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout == "True\n") == goes_on, run.stderr
    assert ("Invalid operation ID 100" in run.stderr) != goes_on
