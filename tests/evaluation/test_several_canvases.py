"""An evaluation whose tasks are played on canvases of several sizes: the episodes and the order of one canvas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_exam import OPERATIONS, painting, rules, task, task_set

from jaxarc import constants as c
from jaxarc.agents import EditAgent, EditPolicy
from jaxarc.config import ConfigValidationError, NetworkConfig
from jaxarc.envs import BboxAction
from jaxarc.envs.action_masks import FlatActionCodec
from jaxarc.evaluation import Agent, AgentMismatchError, EvaluationConfig, RecordedAgent, SubmitPolicy, evaluate
from jaxarc.evaluation.evaluate import plan_evaluation
from jaxarc.experts import GreedyPainter

RULES = rules(4, reveal_target=True, include_step_count=True, grid_format="planes", max_episode_steps=8)
WIDE = [[1, 2, 3, 4]]
MIXED = task_set(  # largest sides of the tests 4 1 2 4 1
    task("wide", (WIDE, [[1, 2, 5, 4]]), ([[2]], [[3]])),
    task("dot", ([[7]], [[8]])),
    task("square", ([[1, 2], [3, 4]], [[1, 2], [3, 5]]), ([[6]], [[6, 6]])),
    task("tall", ([[1], [2], [3], [4]], [[0]])),
    task("other dot", ([[7]], [[7]])),
)


class Drawing(Agent):
    """Fills the first cell with colors that key, task and attempt decide, and may submit."""

    def start(self, key, spec, observation):
        return jax.random.randint(key, (), 0, 10) + 3 * spec.task_index + spec.attempt_index

    def act(self, key, observation, memory):
        color = (memory + jax.random.randint(key, (), 0, 10)) % c.NUM_COLORS
        operation = jnp.where(jax.random.bernoulli(key, 0.2), c.SUBMIT, color)
        return BboxAction(operation, 0, 0, 0, 0), memory + 1


def same_evaluation(left, right):
    assert left.rows == right.rows
    assert list(left.submission) == list(right.submission) == list(MIXED.task_ids)
    jax.tree.map(np.testing.assert_array_equal, left.submission, right.submission)


def on(agent, canvases, rules=RULES, **config):
    return evaluate(agent, MIXED, rules, EvaluationConfig(canvases=canvases, **config), answers_visible=True)


@pytest.mark.parametrize(
    ("agent", "votes"), [(GreedyPainter(), 0), (Drawing(), 3)], ids=["painting", "drawing and voting"]
)
def test_an_agent_that_ignores_padding_plays_the_same_episodes_on_any_canvas(agent, votes):
    whole = on(agent, (), votes=votes)
    same_evaluation(on(agent, (1, 4), votes=votes), whole)
    assert any(row.solves for row in whole.rows)


def test_batches_each_on_one_canvas_are_the_whole_evaluation():
    told = []
    config = EvaluationConfig(canvases=(1, 2, 4), batch_size=3, seed=5)
    tell = lambda *counts: told.append(counts)
    result = evaluate(Drawing(), MIXED, RULES, config, answers_visible=True, on_progress=tell)
    same_evaluation(result, on(Drawing(), (), seed=5))
    # Tests on the canvases 1, 2 and 4: 2, 2 and 3, with two attempts each.
    assert told == [(done, 14) for done in (3, 4, 7, 8, 11, 14)]
    planned = plan_evaluation(Drawing(), MIXED, RULES, config, answers_visible=True)
    assert [canvas.params.config.grid_shape for canvas in planned.canvases] == [(1, 1), (2, 2), (4, 4)]
    assert planned.num_batches == len(told)
    batches = [planned.play_batch(number) for number in range(len(told))]
    assert [batch.grids.shape for batch in batches[:3]] == [(3, 1, 1), (1, 1, 1), (3, 2, 2)]
    same_evaluation(planned.score(batches), result)


def test_recordings_are_found_by_the_number_of_a_task_in_the_whole_set():
    recordings = {(t.task_id, i): painting(answer) for t in MIXED for i, (_, answer) in enumerate(t.test)}
    agent = RecordedAgent.create(recordings, MIXED, RULES)
    assert on(agent, "auto").score.output_score == 1.0


def test_a_network_without_weights_for_cells_plays_on_all_canvases_and_one_with_them_is_refused():
    shown = rules(4, reveal_target=True, include_step_count=True)
    agents = [
        EditAgent(EditPolicy.create(jax.random.key(0), shown, NetworkConfig(kind))) for kind in ("relational", "cells")
    ]
    same_evaluation(on(agents[0], (2, 4), shown, attempts=1), on(agents[0], (), shown, attempts=1))
    with pytest.raises(AgentMismatchError, match=r"canvases must be empty .* 2x2 .* kind 'cells' has weights for"):
        on(agents[1], (2, 4), shown)


def test_agents_of_one_canvas_are_refused_on_several():
    codec = FlatActionCodec.of(RULES)
    flat = lambda key, observation: codec.to_flat(BboxAction(c.SUBMIT, 0, 0, 0, 0))
    masks = rules(4, selection_format="mask", allowed_operations=OPERATIONS)
    own_size = lambda key, observation: BboxAction(observation["working_grid"].reshape(4, 4)[0, 0], 0, 0, 0, 0)
    for agent, played, words in (
        (flat, RULES, "flat actions"),
        (lambda key, observation: 3, RULES, "flat actions"),
        (SubmitPolicy.for_config(masks), masks, "mask"),
        (own_size, RULES, "reshape"),
    ):
        with pytest.raises(AgentMismatchError, match=f"canvases must be empty for an agent of one canvas.*{words}"):
            on(agent, (1, 4), played)


def test_canvases_that_tell_the_size_of_an_answer_or_hold_no_task_are_refused():
    with pytest.raises(ConfigValidationError, match=r"canvases=\(1, 4\) .* size of a hidden answer"):
        evaluate(Drawing(), MIXED, rules(4), EvaluationConfig(canvases=(1, 4)))
    with pytest.raises(ConfigValidationError, match="canvases must fit the canvas of the rules, 4x4, got 5"):
        on(Drawing(), (1, 5))
    with pytest.raises(ValueError, match=r"task 'wide' .* needs a canvas of 4x4, and the largest is 2"):
        on(Drawing(), (1, 2))
