"""Looking ahead against the environment and against plain NumPy; candidates; the agents made of both."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from look_ahead_on_host import look_ahead_on_host

import jaxarc
from jaxarc import constants as c
from jaxarc.datasets import TaskSet
from jaxarc.envs.structured_actions import BboxAction, MaskAction
from jaxarc.experts.candidates import candidate_actions
from jaxarc.experts.host_canvas import HostCanvas
from jaxarc.experts.lookahead import LookaheadAgent, look_ahead, soft_choice
from jaxarc.parallel import rollout
from jaxarc.tasks import RawTask
from jaxarc.wrappers import AutoReset, EpisodeStatistics

SHAPE = (6, 7)
NUM_TASKS, NUM_ACTIONS, NUM_CANDIDATES = 6, 64, 64  # equal: one program looks at both
FORMATS = ("point", "bbox", "mask")


def make_world(selection_format, **rules):
    """Pairs of random grids of random sizes, in few colors."""
    draw = np.random.default_rng(1)
    grid = lambda: draw.integers(0, 3, (draw.integers(2, SHAPE[0] + 1), draw.integers(2, SHAPE[1] + 1)))
    tasks = TaskSet(
        "random", tuple(RawTask(f"t{i}", ((grid(), grid()),), ((grid(), grid()),)) for i in range(NUM_TASKS))
    )
    rules = {"allowed_operations": tuple(range(c.NUM_GRID_OPERATIONS)), "max_episode_steps": 200} | rules
    return jaxarc.make(
        tasks,
        selection_format=selection_format,
        reveal_target=True,
        include_input=True,
        max_grid_height=SHAPE[0],
        max_grid_width=SHAPE[1],
        history_enabled=False,
        invalid_action_policy="noop",
        **rules,
    )


class Played:
    """States some random steps into their episodes, random actions in each, and what is said about them."""

    def __init__(self, selection_format):
        self.env, self.params = make_world(selection_format)
        self.format = selection_format
        config = self.params.config.with_fields(allowed_operations=tuple(range(c.SUBMIT)))
        edits = dataclasses.replace(self.params, config=config)
        self.step = jax.jit(jax.vmap(jax.vmap(self._step, (None, 0))))
        self.states, _ = jax.jit(jax.vmap(self.env.reset, (0, None, 0)))(
            jax.random.split(jax.random.key(0), NUM_TASKS), self.params, jnp.arange(NUM_TASKS)
        )
        for seed in range(10):
            after = self.step(self.states, self._sample(seed, edits))
            self.states = jax.tree.map(lambda x: x[:, 0], after)
        self.actions = self._sample(10, self.params)
        self.traced = []
        self.look = jax.jit(jax.vmap(self._look))
        self.draw = jax.jit(jax.vmap(lambda key, state: candidate_actions(key, state, self.params, NUM_CANDIDATES)))

    def _step(self, state, action):
        return self.env.step(state, action, self.params)[0]

    def _look(self, state, actions):
        self.traced.append(actions)
        return look_ahead(state, actions, self.params)

    def _sample(self, seed, params):
        keys = jax.random.split(jax.random.key(seed), (NUM_TASKS, NUM_ACTIONS))
        return jax.vmap(jax.vmap(self.env.action_space(params).sample))(keys)

    def candidates(self, seed=0):
        return self.draw(jax.random.split(jax.random.key(seed), NUM_TASKS), self.states)

    def as_numbers(self, actions, row):
        """Actions of one state as experts on the host write them."""
        one = jax.tree.map(lambda x: np.asarray(x[row]), actions)
        if isinstance(one, MaskAction):
            return [
                (int(op), *np.argwhere(cells).ravel().tolist())
                for op, cells in zip(one.operation, one.selection, strict=True)
            ]
        return np.stack(jax.tree.leaves(one), axis=1).tolist()


play = functools.cache(Played)


@pytest.fixture(params=FORMATS)
def played(request):
    return play(request.param)


def test_a_look_tells_what_a_step_would_bring(played):
    after, seen = played.step(played.states, played.actions), played.look(played.states, played.actions)
    np.testing.assert_array_equal(seen.similarity, after.similarity_score)
    assert seen.is_valid.all()
    submits = np.asarray(played.actions.operation) == c.SUBMIT
    assert (np.asarray(seen.score)[submits] == np.where(np.asarray(after.is_solved)[submits], 2, -1)).all()
    assert (np.asarray(seen.score == seen.similarity))[~submits].all()
    assert len(np.unique(seen.similarity)) > 20


def test_the_look_in_plain_numpy_sees_the_same(played):
    seen = np.asarray(played.look(played.states, played.actions).similarity)
    _, targets = (np.asarray(x) for x in (played.states.working_grid, played.states.target_grid))
    for row, target in enumerate(targets):
        canvas = host_canvas(played.states, row, played.params)
        wanted = target[(target >= 0).any(axis=1)][:, (target >= 0).any(axis=0)]
        told = look_ahead_on_host(canvas, wanted, played.as_numbers(played.actions, row), played.format)
        np.testing.assert_allclose(seen[row], told, rtol=1e-6)


def host_canvas(states, row, params):
    """The canvas of a state on the host."""
    cut = lambda grid: grid[(grid >= 0).any(axis=1)][:, (grid >= 0).any(axis=0)]
    grid, held = np.asarray(states.working_grid[row]), np.asarray(states.clipboard[row])
    height, width = np.asarray(states.canvas.sizes[row, 4:6])
    buffer = params.tasks
    pair_input = np.asarray(buffer.inputs[buffer.first_pair[row]]).reshape(SHAPE)
    canvas = HostCanvas(cut(pair_input), SHAPE)
    canvas.grid = cut(grid).copy()
    canvas.clipboard = held[:height, :width].copy() if height else None
    return canvas


@pytest.mark.parametrize("selection_format", ["bbox", "mask"])
def test_accelerators_see_what_cpus_see(monkeypatch, selection_format):
    played = play(selection_format)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    look = jax.jit(jax.vmap(lambda state, actions: look_ahead(state, actions, played.params)))
    chex.assert_trees_all_equal(look(played.states, played.actions), played.look(played.states, played.actions))


def test_candidates_are_distinct_as_far_as_they_say(played):
    candidates = played.candidates()
    for row in range(NUM_TASKS):
        numbers = played.as_numbers(candidates.actions, row)
        kept = [tuple(n) for n, is_new in zip(numbers, candidates.is_distinct[row], strict=True) if is_new]
        if played.format == "mask":  # the wrong cells of a color may happen to be a box
            kept = kept[:-10]
        assert len(set(kept)) == len(kept)
        assert candidates.is_distinct[row].sum() >= (40 if played.format == "point" else 60)


def test_candidates_are_in_order_and_always_mend_a_cell_or_the_size(played):
    candidates = played.candidates()
    seen = played.look(played.states, candidates.actions)
    assert seen.is_valid.all()
    same_size = (played.states.canvas.sizes[:, :2] == played.states.canvas.sizes[:, 2:4]).all(axis=1)
    gains = seen.similarity.max(axis=1) > played.states.similarity_score
    resized = np.asarray(seen.similarity)[np.asarray(candidates.actions.operation) == c.RESIZE]
    assert (gains | ~same_size | (played.states.similarity_score == 1)).all()
    assert (resized[:NUM_TASKS] >= np.asarray(played.states.similarity_score) - 1e-6).all()


def test_what_is_illegal_or_outside_changes_nothing_and_is_reported():
    env, params = make_world("bbox", allowed_operations=(1, 2, c.RESIZE, c.SUBMIT))
    state, _ = env.reset(jax.random.key(0), params)
    wrong = BboxAction(
        jnp.array([3, 1, -1, 40, 1]), jnp.array([0, -1, 0, 0, 0]), jnp.zeros(5, jnp.int32), jnp.zeros(5, jnp.int32),
        jnp.array([0, 0, 0, 0, 7]),
    )  # fmt: skip
    seen = jax.jit(lambda state, actions: look_ahead(state, actions, params))(state, wrong)
    assert not seen.is_valid.any()
    assert (seen.similarity == state.similarity_score).all()


def test_shares_follow_worth_and_leave_out_what_is_not_allowed():
    worth = jnp.array([[0.5, 0.5, 0.6, 2.0], [0.1, 0.2, 0.3, 0.4]])
    allowed = jnp.array([[True, True, True, False], [False] * 4])
    shares = soft_choice(worth, allowed, 0.1)
    np.testing.assert_allclose(shares.sum(axis=-1), 1, rtol=1e-6)
    assert shares[0, 0] == shares[0, 1]
    assert shares[0, 3] == 0
    assert shares[0, 2] / shares[0, 0] == pytest.approx(np.e, rel=1e-5)
    np.testing.assert_allclose(shares[1], 0.25)
    cold = soft_choice(worth, allowed, 1e-6)
    np.testing.assert_allclose(cold[0], [0, 0, 1, 0], atol=1e-6)


def test_the_best_candidates_solve_every_pair_in_a_rollout():
    env, params = make_world("point")
    agent = LookaheadAgent(params.config, NUM_CANDIDATES)
    played = rollout(EpisodeStatistics(AutoReset(env)), params, agent, jax.random.key(0), num_envs=4, num_steps=90)
    assert played.totals.solved == played.totals.episodes > 4


def test_too_few_candidates_and_rules_without_fills_are_refused():
    config = make_world("bbox")[1].config
    with pytest.raises(ValueError, match=r"at least 20 with these operations \(12 are always there\), got 19"):
        LookaheadAgent(config, 19)
    with pytest.raises(ValueError, match="fills and floods above all"):
        LookaheadAgent(config.with_fields(allowed_operations=(c.MOVE_UP, c.SUBMIT)))
