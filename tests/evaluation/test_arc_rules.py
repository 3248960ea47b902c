"""An agent over a task set by the rules of ARC: what is played, what counts, what an agent can know."""

import dataclasses
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_exam import EXAM, SIDE, painting, rules, task, task_set

import jaxarc
from jaxarc import constants as c
from jaxarc.config import AugmentationConfig, ConfigValidationError, ObservationConfig
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.envs import ArcEnvironment, BboxAction, EnvParams
from jaxarc.envs.action_masks import FlatActionCodec
from jaxarc.envs.action_space import action_space
from jaxarc.evaluation import (
    Agent,
    AgentMismatchError,
    EvaluationConfig,
    RecordedAgent,
    SubmitPolicy,
    evaluate,
    score_submission,
    write_submission,
)
from jaxarc.evaluation.evaluate import plan_evaluation
from jaxarc.parallel import RandomPolicy
from jaxarc.tasks import RawTask, task_id_of, uniform_weights
from jaxarc.tasks.augmentation import restore_grid

RULES = rules()
SUBMIT_ONLY = rules(allowed_operations=(c.SUBMIT,))
RANDOM = RandomPolicy(action_space(RULES))
ENV = ArcEnvironment()
env_reset, env_step = jax.jit(ENV.reset), jax.jit(ENV.step)


def box(operation, row=0, column=0, last_row=0, last_column=0):
    return BboxAction(operation, row, column, last_row, last_column)


def fill_with(color):
    """The first half of an agent that colors the whole canvas; a fill stays inside the grid."""
    return box(color, 0, 0, SIDE - 1, SIDE - 1)


class ColorOfAttempt(Agent):
    """Fills the grid with the number of its attempt, then submits: it needs to remember both."""

    def start(self, key, place, observation):
        return place.attempt_index, jnp.bool_(False)

    def act(self, key, observation, memory):
        color, is_filled = memory
        fill, submit = fill_with(color), box(c.SUBMIT)
        return jax.tree.map(lambda a, b: jnp.where(is_filled, a, b), submit, fill), (color, jnp.bool_(True))


def test_submitting_at_once_solves_exactly_the_pairs_whose_input_is_the_answer():
    """On real tasks of ARC-AGI-1, whose demonstrations take the place of the tests: no real test is that easy."""
    names = ["22eb0ac0", "253bf280", "44d8ac46", "4938f0c2", "0d3d703e", "25ff71a9"]
    real = load_tasks("arc-agi-1/training").select(ids=names).select(max_side=13)
    tasks = TaskSet("turned over", tuple(RawTask(t.task_id, t.test, t.train) for t in real))
    same = {t.task_id: [np.array_equal(source, answer) for source, answer in t.test] for t in tasks}
    outputs = [right for rights in same.values() for right in rights]
    assert 0 < sum(outputs) < len(outputs)
    submit_rules = rules(13, allowed_operations=(c.SUBMIT,))
    result = evaluate(SubmitPolicy.for_config(submit_rules), tasks, submit_rules)
    assert {name: list(solved) for name, solved in result.score.solved.items()} == same
    assert result.score.output_score == sum(outputs) / len(outputs)
    assert all(row.mean_steps == 1 and row.submitted == row.attempts for row in result.rows)


def test_recorded_actions_that_paint_the_answers_score_everything():
    real = load_tasks("arc-agi-1/training").select(max_side=4)
    recordings = {(t.task_id, i): painting(answer) for t in real for i, (_, answer) in enumerate(t.test)}
    long_enough = rules(4, max_episode_steps=18)
    agent = RecordedAgent.create(recordings, real, long_enough)
    result = evaluate(agent, real, long_enough)
    assert (result.score.output_score, result.score.task_score, result.score.mean_task_share) == (1.0, 1.0, 1.0)
    assert all(row.best_similarity == 1.0 for row in result.rows)
    assert [row.first_solving_step for row in result.rows] == [
        min(len(recordings[t.task_id, i]) for i in range(len(t.test))) for t in real
    ]


def replay(tasks, played_rules, seed, voters):
    """Each episode by itself, step by step, in a loop on the host: its grid, as if nothing had been augmented."""
    symmetries = played_rules.augmentation.num_symmetries
    params = EnvParams(
        tasks.buffer((SIDE, SIDE)).with_symmetries(symmetries), uniform_weights(len(tasks)), played_rules
    )
    for task_index, raw in enumerate(tasks):
        for pair_index in range(len(raw.test)):
            for attempt in range(voters):
                key = jax.random.key(seed)
                for index in (task_index, pair_index, attempt):
                    key = jax.random.fold_in(key, index)
                key_reset, _, key_steps = jax.random.split(key, 3)
                state, observation = env_reset(key_reset, params, task_index, pair_index)
                for step in range(played_rules.environment.max_episode_steps):
                    action = RANDOM(jax.random.fold_in(key_steps, step), observation)
                    state, observation, _, done, _ = env_step(state, action, params)
                    if done:
                        break
                grid = state.working_grid
                if state.augmentation is not None:
                    grid = restore_grid(grid, state.augmentation)
                grid = np.asarray(grid)
                yield (raw.task_id, pair_index), grid[(grid >= 0).any(1)][:, (grid >= 0).any(0)]


def same_grids(left, right):
    return len(left) == len(right) and all(map(np.array_equal, left, right))


def test_a_random_agent_hands_in_what_a_replay_of_its_keys_on_the_host_gives():
    result = evaluate(RANDOM, EXAM, RULES, EvaluationConfig(seed=3))
    expected = {}
    for place, grid in replay(EXAM, RULES.with_fields(mode="test"), 3, 2):
        expected.setdefault(place, []).append(grid)
    for (task_id, pair_index), grids in expected.items():
        assert same_grids(result.submission[task_id][pair_index], grids)
    assert len(expected) == result.score.num_outputs == 5


def test_votes_are_the_most_frequent_grids_of_augmented_episodes_turned_back():
    votes = AugmentationConfig(symmetries="flips", recolor="all")
    config = EvaluationConfig(seed=1, votes=5, attempts=2, augmentation=votes)
    result = evaluate(RANDOM, EXAM, RULES, config)
    expected = {}
    for place, grid in replay(EXAM, RULES.with_fields(mode="test", augmentation=votes), 1, 5):
        expected.setdefault(place, []).append(str(grid.tolist()))
    for (task_id, pair_index), grids in expected.items():
        ranked = [grid for grid, _ in Counter(grids).most_common(2)]  # of equal counts the first seen
        handed_in = [str(grid.tolist()) for grid in result.submission[task_id][pair_index]]
        assert handed_in == (ranked if len(ranked) == 2 else ranked * 2)
    assert [row.attempts for row in result.rows] == [15, 5, 5]


def test_what_an_agent_does_not_touch_comes_back_from_every_augmentation_as_it_was():
    everything = AugmentationConfig(symmetries="all", recolor="all", shuffle_demos=True)
    config = EvaluationConfig(votes=8, augmentation=everything)
    result = evaluate(SubmitPolicy.for_config(SUBMIT_ONLY), EXAM, SUBMIT_ONLY, config)
    for raw in EXAM:
        for attempts, (source, _) in zip(result.submission[raw.task_id], raw.test, strict=True):
            assert same_grids(attempts, [source, source])


@pytest.fixture(scope="module")
def side_by_side():
    return evaluate(RANDOM, EXAM, RULES, EvaluationConfig(seed=5))


@pytest.mark.parametrize("size", [1, 4])
def test_a_batch_changes_nothing(side_by_side, size):
    """10 episodes one by one, and in batches of which the last is not full."""
    told = []
    config = EvaluationConfig(seed=5, batch_size=size)
    result = evaluate(RANDOM, EXAM, RULES, config, on_progress=lambda done, total: told.append((done, total)))
    assert result.rows == side_by_side.rows
    for task_id, inputs in side_by_side.submission.items():
        assert all(map(same_grids, inputs, result.submission[task_id]))
    assert told == [(min(done, 10), 10) for done in range(size, 10 + size, size)]
    planned = plan_evaluation(RANDOM, EXAM, RULES, config, answers_visible=False)
    assert planned.num_batches == len(told)
    assert planned.score([planned.play_batch(number) for number in range(len(told))]).rows == result.rows


@pytest.mark.parametrize("attempts", [2, 3])
def test_any_of_k_attempts_may_be_right(attempts):
    tasks = task_set(task("two", ([[5, 5]], [[2, 2]])), task("one", ([[5]], [[1]])))
    result = evaluate(ColorOfAttempt(), tasks, RULES, EvaluationConfig(attempts=attempts))
    assert result.score.solved == {"two": (attempts == 3,), "one": (True,)}
    assert [len(inputs[0]) for inputs in result.submission.values()] == [attempts, attempts]
    assert [row.solves for row in result.rows] == [int(attempts == 3), 1]
    assert [row.first_solving_step for row in result.rows] == [2 if attempts == 3 else None, 2]


def test_scores_count_outputs_and_tasks_apart():
    score = evaluate(SubmitPolicy.for_config(SUBMIT_ONLY), EXAM, SUBMIT_ONLY).score
    assert score.solved == {"three": (True, False, True), "right": (True,), "wrong": (False,)}
    assert (score.solved_outputs, score.num_outputs, score.output_score) == (3, 5, 3 / 5)
    assert (score.solved_tasks, score.num_tasks, score.task_score) == (1, 3, 1 / 3)
    assert score.mean_task_share == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_when_time_runs_out_the_working_grid_counts():
    def fill_only(key, observation):
        return fill_with(3)

    result = evaluate(fill_only, task_set(task("threes", ([[5, 5]], [[3, 3]]))), RULES)
    (row,) = result.rows
    assert (result.score.output_score, row.submitted, row.mean_steps, row.best_similarity) == (1.0, 0, 6.0, 1.0)


def test_the_best_similarity_is_that_of_any_grid_on_the_way():
    def spoil(key, observation):
        return fill_with(9)

    (row,) = evaluate(spoil, task_set(task("near", ([[1, 2]], [[1, 3]]))), RULES).rows
    assert (row.best_similarity, row.solves) == (0.5, 0)


def test_rules_that_concern_starts_submits_and_pairs_do_not_change_what_counts():
    plain = evaluate(SubmitPolicy.for_config(SUBMIT_ONLY), EXAM, SUBMIT_ONLY)
    odd = SUBMIT_ONLY.with_fields(start_grid="empty", max_submissions=3, score_on_submit=True, test_selection="random")
    assert evaluate(SubmitPolicy.for_config(odd), EXAM, odd).rows == plain.rows


class Nosy(Agent):
    """Lets everything that it is shown, and its key, decide what it does."""

    def start(self, key, place, observation):
        return 0

    def act(self, key, observation, memory):
        seen = sum(leaf.astype(jnp.int32).sum() for leaf in jax.tree.leaves(observation))
        chosen = action_space(RULES).sample(jax.random.fold_in(key, seen + memory))
        return chosen, memory * 3 + seen


@pytest.mark.parametrize("votes", [0, 4])
def test_other_answers_change_no_byte_of_a_submission(tmp_path, votes):
    other = {"three": [[[7, 7, 7]], [[3, 3]], [[0], [1]]], "right": [[[5, 6], [7, 9]]], "wrong": [[[5]]]}
    inputs = {t.task_id: [source for source, _ in t.test] for t in EXAM}
    changed = task_set(*(task(name, *zip(inputs[name], other[name], strict=True)) for name in inputs))
    config = EvaluationConfig(votes=votes, seed=2)
    shown = [name for name, value in dataclasses.asdict(ObservationConfig()).items() if value is False]
    everything = RULES.with_fields(**{name: True for name in shown if name != "reveal_target"})
    files = []
    for name, tasks in (("one", EXAM), ("other", changed)):
        result = evaluate(Nosy(), tasks, everything, config)
        files.append(write_submission(tmp_path / name, result.submission).read_bytes())
    assert files[0] == files[1]
    assert score_submission(result.submission, changed).solved == result.score.solved


def towards_the_answer(key, observation):
    """Fill the grid with the answer's first color, submit when it is there."""
    working, answer = observation["working_grid"][0, 0], observation["target_grid"][0, 0]
    fill, submit = fill_with(answer.astype(jnp.int32)), box(c.SUBMIT)
    return jax.tree.map(lambda a, b: jnp.where(working == answer, a, b), submit, fill)


def test_an_agent_that_looks_at_the_answer_plays_only_where_answers_may_be_seen():
    tasks = task_set(task("plain", ([[1, 1]], [[2, 2]]), ([[3]], [[4]])), task("odd", ([[1, 1]], [[2, 5]])))
    seeing = RULES.with_fields(reveal_target=True)
    result = evaluate(towards_the_answer, tasks, seeing, answers_visible=True)
    assert result.score.solved == {"plain": (True, True), "odd": (False,)}
    with pytest.raises(ConfigValidationError, match="target"):
        evaluate(towards_the_answer, tasks, seeing)
    with pytest.raises(AgentMismatchError, match=r"int8\[3, 3\]"):
        evaluate(towards_the_answer, tasks, RULES)


def test_flat_actions_play_as_the_structured_ones_that_they_number():
    codec = FlatActionCodec.of(RULES)
    flat = lambda key, observation: codec.to_flat(RANDOM(key, observation))
    structured = evaluate(RANDOM, EXAM, RULES)
    assert evaluate(flat, EXAM, RULES, flat_actions=True).rows == structured.rows
    assert any(row.best_similarity > 0 for row in structured.rows)
    assert evaluate(lambda key, observation: 3, EXAM, RULES).rows[0].submitted == 0
    with pytest.raises(TypeError, match="float32"):
        evaluate(lambda key, observation: jnp.float32(3), EXAM, RULES)
    with pytest.raises(ValueError, match="mask"):
        evaluate(flat, EXAM, RULES.with_fields(selection_format="mask"))


def test_tasks_and_rules_are_those_that_make_takes():
    env, params = jaxarc.make("arc-agi-1/training:max_side=4", RULES, max_grid_height=4, max_grid_width=4)
    by_name = evaluate(RANDOM, "arc-agi-1/training:max_side=4", RULES, max_grid_height=4, max_grid_width=4)
    assert env.name.endswith("max_side=4")
    assert [row.task_id for row in by_name.rows] == [task_id_of(i) for i in params.tasks.registry_index.tolist()]
    assert by_name.rows == evaluate(RANDOM, load_tasks("arc-agi-1/training").select(max_side=4), params.config).rows
    with pytest.raises(ValueError, match="3x3"):
        evaluate(RANDOM, "arc-agi-1/training:max_side=5", RULES)
    assert evaluate(RANDOM, "arc-agi-1/training:max_side=5", RULES, too_large="skip").rows == by_name.rows
    with pytest.raises(TypeError, match="procedural/gravity"):
        evaluate(RANDOM, "procedural/gravity", RULES)


def test_an_agent_that_sees_demonstrations_plays_task_sets_with_fewer_and_with_more():
    rules = RULES.with_fields(include_demonstrations=True, max_demonstrations=2, layout="flat")
    weights = np.random.default_rng(0).normal(size=ENV.observation_space(params_of(rules)).shape)
    linear = lambda key, observation: (jnp.abs(observation @ weights) * 100).astype(jnp.int32) % 10 * 36
    more = task_set(RawTask("more", (([[1]], [[2]]),) * 5, (([[1]], [[2]]),)))
    assert {len(evaluate(linear, tasks, rules).rows) for tasks in (EXAM, more)} == {len(EXAM), 1}
    with pytest.raises(AgentMismatchError, match="float32"):
        evaluate(linear, more, rules.with_fields(max_demonstrations=None))


def params_of(rules):
    return jaxarc.make(EXAM, rules)[1]


class Growing(ColorOfAttempt):
    """Counts steps in another dtype than it started with."""

    def act(self, key, observation, memory):
        return box(c.SUBMIT), (memory[0], memory[1].astype(jnp.int32))


def test_an_agent_whose_memory_changes_its_type_is_refused():
    with pytest.raises(AgentMismatchError, match=r"int32\[\], bool\[\].*int32\[\], int32\[\]"):
        evaluate(Growing(), EXAM, RULES)


def test_another_seed_compiles_nothing_anew():
    traced = []

    def counting(key, observation):
        traced.append(key)
        return box(c.SUBMIT)

    evaluate(counting, EXAM, SUBMIT_ONLY)
    before = len(traced)
    evaluate(counting, EXAM, SUBMIT_ONLY, EvaluationConfig(seed=9))
    assert len(traced) == before + 1  # the check that the agent fits; it computes shapes only
