"""A rollout is what stepping by hand gives, on any number of devices, compiled once."""

import sys

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fingerprint import fingerprint
from small_world import KEY, filling, make_world

from jaxarc.constants import SUBMIT
from jaxarc.envs import PointAction
from jaxarc.parallel import RandomPolicy, compile_rollout, data_mesh, program, replicate, rollout
from jaxarc.parallel.program import compile_play, make_statics
from jaxarc.profiling import compiled_memory, count_collectives

B, S = 8, 12


def by_hand(env, params, policy):
    """Reset and step one environment after another, with the keys that the documentation promises."""
    key_reset, key_steps = jax.random.split(KEY)
    reset, step = eqx.filter_jit(env.reset), eqx.filter_jit(env.step)
    episodes = solved = 0
    rewards, returns, last = [], [], []
    for i in range(B):
        state, observation = reset(jax.random.fold_in(key_reset, i), params)
        for t in range(S):
            action = policy(jax.random.fold_in(jax.random.fold_in(key_steps, t), i), observation)
            state, observation, reward, done, info = step(state, action, params)
            rewards.append(float(reward))
            if done:
                episodes, solved = episodes + 1, solved + bool(info["success"])
                returns.append(float(info["episode_return"]))
        last.append(state)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *last), episodes, solved, sum(rewards), sum(returns)


def test_totals_and_states_are_those_of_stepping_by_hand():
    env, params = make_world()
    states, episodes, solved, reward_sum, return_sum = by_hand(env, params, filling())
    result = rollout(env, params, filling(), KEY, B, S)
    chex.assert_trees_all_equal(jax.device_get(result.states), jax.device_get(states))
    totals = result.totals
    assert (totals.episodes, totals.solved, totals.steps) == (episodes, solved, B * S)
    assert 0 < solved < episodes
    assert totals.reward_sum == pytest.approx(reward_sum, abs=1e-4)
    assert totals.return_sum == pytest.approx(return_sum, abs=1e-4)
    assert isinstance(totals.episodes, int)
    assert isinstance(totals.reward_sum, float)


def test_states_passed_in_go_on_where_they_were():
    env, params = make_world()
    never = filling(submit_chance=-1.0)
    first = rollout(env, params, never, KEY, B, S)
    second = rollout(env, params, never, KEY, B, S, states=first.states)
    np.testing.assert_array_equal(first.states.env_state.step_count, np.full(B, S % 5))
    np.testing.assert_array_equal(second.states.env_state.step_count, np.full(B, 2 * S % 5))
    assert (first.totals + second.totals).episodes == B * (2 * S // 5)


def test_without_auto_reset_an_episode_ends_once():
    env, params = make_world()
    totals = rollout(env.env.env, params, filling(submit_chance=2.0), KEY, B, S).totals
    assert totals.episodes == B
    assert 0 < totals.solved < B
    assert totals.return_sum is None  # nobody counts them without EpisodeStatistics


def test_equal_shapes_compile_once():
    env, params = make_world()
    traces = []

    def submit(key, observation):
        traces.append(1)
        return PointAction(jnp.int32(SUBMIT), jnp.int32(0), jnp.int32(0))

    first = rollout(env, params, submit, KEY, B, S)
    once = len(traces)
    assert once > 0
    other = eqx.tree_at(lambda p: p.weights, params, params.weights * 2)
    rollout(make_world()[0], other, submit, jax.random.key(1), B, S, data_mesh(), states=first.states)
    compile_rollout(env, params, submit, B, S)
    assert len(traces) == once


def test_compiled_rollout_gives_what_rollout_gives():
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S)
    assert compiled.compile_seconds > 0
    placed = replicate(params, data_mesh())
    assert fingerprint(compiled(placed, filling(), KEY)) == fingerprint(rollout(env, params, filling(), KEY, B, S))


def test_compiled_rollout_refuses_what_was_not_compiled():
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S)
    with pytest.raises(ValueError, match="compile_rollout"):
        compiled(make_world(max_episode_steps=6)[1], filling(), KEY)
    with pytest.raises(ValueError, match="compile_rollout"):
        compiled(params, RandomPolicy(env.action_space(params)), KEY)


@pytest.mark.parametrize("make_key", [jax.random.PRNGKey, lambda seed: jax.random.key(seed, impl="rbg")])
def test_any_key_will_do(make_key):
    env, params = make_world()
    typed, same, other = (rollout(env, params, filling(), key, B, S) for key in (KEY, make_key(7), make_key(8)))
    assert fingerprint(other.states) not in (fingerprint(typed.states), fingerprint(same.states))
    if make_key is jax.random.PRNGKey:
        assert fingerprint(same.states) == fingerprint(typed.states)


def test_invalid_actions_raise_where_the_config_says_so():
    env, params = make_world(invalid_action_policy="raise")
    assert rollout(env, params, filling(), KEY, B, S).totals.steps == B * S
    with pytest.raises(RuntimeError, match=r"^Invalid operation ID 99: .* set action.invalid_action_policy"):
        rollout(env, params, filling(color=99), KEY, B, S)


def test_states_of_another_batch_or_environment_are_refused():
    env, params = make_world()
    states = rollout(env, params, filling(), KEY, B, S).states
    with pytest.raises(ValueError, match=r"those of 4 environments .*\(8, .* where .*\(4,"):
        rollout(env, params, filling(), KEY, 4, S, states=states)
    with pytest.raises(ValueError, match="another environment or config"):
        rollout(env.env, params, filling(), KEY, B, S, states=states)


def test_chunks_that_are_played_one_after_the_other_change_nothing(monkeypatch):
    env, params = make_world()
    whole = rollout(env, params, filling(), KEY, B, S, record=True, count_tasks=True)
    monkeypatch.setattr(program, "SMALLEST_CHUNK", 2)
    monkeypatch.setattr(program, "LARGEST_CHUNK", 4)
    assert program.chunk_size(B) == 4
    program.compile_play.cache_clear()
    chunked = rollout(env, params, filling(), KEY, B, S, record=True, count_tasks=True)
    program.compile_play.cache_clear()
    assert fingerprint((whole.carry, whole.trajectory)) == fingerprint((chunked.carry, chunked.trajectory))


@pytest.mark.parametrize(
    ("num_envs", "backend", "size"),
    [(1000, "cpu", 1000), (65536, "cpu", 1024), (3000, "cpu", 1000), (65536, "gpu", 65536)],
)
def test_a_batch_is_played_in_chunks_that_fit_into_the_cache(monkeypatch, num_envs, backend, size):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert program.chunk_size(num_envs) == size


@pytest.mark.usefixtures("nans_allowed")
def test_states_stay_in_place_between_the_chunks_of_a_rollout(monkeypatch):
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S, chunk_steps=5)
    given = []
    play = compile_play(compiled._statics, 4)
    noting = play._replace(call=lambda *arguments: given.append(arguments[-1]) or play.call(*arguments))
    monkeypatch.setattr(sys.modules[compile_rollout.__module__], "compile_play", lambda *_: noting)
    first = compiled(params, filling(), KEY)
    after = compiled(params, filling(), jax.random.key(1), first.states)
    assert len(given) == 6
    assert all(leaf.is_deleted() for carry in given for leaf in jax.tree.leaves(carry))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((first.carry, after.carry, params)))
    again = compiled(params, filling(), jax.random.key(2), after.states, donate_states=True)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(after.states))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((again.carry, params)))
    memory = compiled_memory(play.call)
    states = sum(leaf.nbytes for leaf in jax.tree.leaves(first.carry))
    assert memory.alias_bytes == states  # all that goes from chunk to chunk


@pytest.mark.usefixtures("nans_allowed")
def test_each_yielded_rollout_can_be_read_after_the_next():
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S, chunk_steps=5)
    pieces = list(compiled.chunks(params, filling(), KEY))
    ends = [fingerprint(piece.carry) for piece in pieces]
    assert len(set(ends)) == 3
    assert ends[-1] == fingerprint(compiled(params, filling(), KEY).carry)


def test_a_callback_hears_of_each_chunk():
    env, params = make_world()
    heard = []
    result = rollout(
        env, params, filling(), KEY, B, S, chunk_steps=5, on_chunk=lambda done, totals: heard.append((done, totals))
    )
    assert [done for done, _ in heard] == [4, 8, 12]  # equal chunks of at most 5
    assert [totals.steps for _, totals in heard] == [4 * B, 8 * B, 12 * B]
    assert heard[-1][1] == result.totals
    assert 0 < heard[0][1].episodes < heard[1][1].episodes < result.totals.episodes


def test_a_recorded_trajectory_agrees_with_the_metrics():
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S, chunk_steps=5, record=True, count_tasks=True)
    result = compiled(params, filling(), KEY)
    trajectory = result.trajectory
    assert trajectory.dones.shape == trajectory.actions.operation.shape == (S, B)
    np.testing.assert_array_equal(trajectory.dones.sum(axis=0), result.metrics.episodes)
    np.testing.assert_allclose(trajectory.rewards.sum(axis=0), result.metrics.reward_sum, atol=1e-5)
    np.testing.assert_array_equal(trajectory.terminated, trajectory.actions.operation == SUBMIT)
    pieces = [piece.trajectory.dones for piece in compiled.chunks(params, filling(), KEY)]
    assert [piece.shape[0] for piece in pieces] == [4, 4, 4]
    np.testing.assert_array_equal(np.concatenate(pieces), trajectory.dones)


def test_episodes_are_counted_by_task_where_that_is_asked_for():
    env, params = make_world()
    result = rollout(env, params, filling(), KEY, B, S, count_tasks=True)
    counts, totals = result.task_counts, result.totals
    assert (counts.episodes.sum(), counts.solved.sum()) == (totals.episodes, totals.solved)
    assert min(counts.episodes) > 0
    assert counts.solved.tolist() == [totals.solved, 0]  # submitting at once solves the first task only
    assert rollout(env, params, filling(), KEY, B, S).task_counts is None


def test_results_come_to_the_host_where_that_is_asked_for():
    env, params = make_world()
    result = rollout(env, params, filling(), KEY, B, S)
    gathered = result.gather()
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(gathered))
    assert fingerprint(gathered.carry) == fingerprint(result.carry)
    more = [rollout(env, params, filling(), KEY, B, S, states=each.states).totals for each in (result, gathered)]
    assert more[0] == more[1]


def test_the_devices_of_a_rollout_do_not_talk():
    env, params = make_world()
    statics, _ = make_statics(env, params, filling(), 4, data_mesh(1))
    found = count_collectives(compile_play(statics, 2).call)
    assert not any(each.num_instructions for each in found.values())


def test_a_rollout_goes_on_without_hidden_transfers():
    env, params = make_world()
    mesh = data_mesh(1)
    params, policy = replicate((params, filling()), mesh)
    play = compile_rollout(env, params, policy, 4, 3, mesh)
    keys = list(jax.random.split(jax.random.key(0), 2))
    states = play(params, policy, keys[0]).states
    with jax.transfer_guard("disallow"):
        jax.block_until_ready(play(params, policy, keys[1], states).states)
        with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device"):
            jax.numpy.sin(np.ones(2, np.float32))  # the guard guards
