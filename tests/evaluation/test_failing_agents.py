"""Agents and fields that an evaluation refuses: the fault, its place in the agent's file, and what to do."""

import re
import sys

import jax.numpy as jnp
import pytest
from small_tasks import TASK

import jaxarc
from jaxarc.config import ConfigValidationError, EvaluationConfig
from jaxarc.evaluation import AgentMismatchError, Evaluation, evaluate

SMALL = {"max_grid_height": 3, "max_grid_width": 3}


class OwnError(Exception):
    """Of no class that an environment knows."""


def divides(key, observation):
    return 1 / 0


def raises(key, observation):
    raise OwnError("own words")


def misspells(key, observation):
    return jnp.zeros(3)[observation_]


def leaves(key, observation):
    sys.exit(3)


def looks_elsewhere(key, observation):
    return observation["target_grid"]


@pytest.mark.parametrize(
    ("agent", "fault", "may_need_other_rules"),
    [
        (divides, "ZeroDivisionError: division by zero", False),
        (raises, "OwnError: own words", False),
        (misspells, "NameError: name 'observation_'", False),
        (leaves, r"sys.exit\(3\)", True),  # worded as a TypeError of ours or not, it is named
        (looks_elsewhere, "TypeError|KeyError", True),
    ],
)
def test_a_failing_agent_is_refused_with_file_and_line(agent, fault, may_need_other_rules):
    line = agent.__code__.co_firstlineno + 1
    with pytest.raises(AgentMismatchError, match=fault) as caught:
        evaluate(agent, TASK, **SMALL)
    message = str(caught.value)
    assert f"fails in {__file__}, line {line}, on" in message
    assert "\n" not in message
    if agent is not leaves:
        assert ("answers_visible=True" in message) == may_need_other_rules


@pytest.mark.parametrize(
    ("field", "value"),
    [("mode", "train"), ("mode", "trials"), ("start_grid", "empty"), ("max_submissions", 3), ("recolor", "all"),
     ("score_on_submit", True), ("allow_demo_switching", True), ("augmentation", "all")],
)  # fmt: skip
def test_a_field_that_would_have_no_effect_is_refused(field, value):
    with pytest.raises(ConfigValidationError, match=f"chooses {field} itself.*{re.escape(repr(value))}"):
        evaluate(divides, TASK, **SMALL, **{field: value})


def test_a_field_that_says_what_an_evaluation_does_is_taken():
    with pytest.raises(AgentMismatchError):
        evaluate(divides, TASK, **SMALL, mode="test", start_grid="input")
    with pytest.raises(AgentMismatchError):
        evaluate(divides, TASK, config=EvaluationConfig(), answers_visible=True, **SMALL, mode="train")


def test_an_evaluation_of_an_agent_that_sees_the_answer_names_answers_visible():
    agent = jaxarc.load_agent("ladder_l2_small")
    with pytest.raises(ConfigValidationError, match="answers_visible=True"):
        evaluate(agent, TASK, agent.config)
    assert "answers_visible=True" in repr(Evaluation({}, None, (), answers_visible=True))
    assert "answers_visible" not in repr(Evaluation({}, None, ()))
    assert "\n" not in repr(agent)
    assert len(repr(agent)) < 150
