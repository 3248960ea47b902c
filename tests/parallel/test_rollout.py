"""A rollout is what stepping by hand gives, on any number of devices, compiled once."""

import hashlib
import json
import os
import subprocess
import sys

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from small_world import CANVAS, KEY, filling, make_world

from jaxarc.constants import SUBMIT
from jaxarc.envs import PointAction
from jaxarc.parallel import RandomPolicy, compile_rollout, data_mesh, program, replicate, rollout
from jaxarc.tasks.procedural import procedural_tasks

B, S = 8, 12


def digest(tree):
    bits = hashlib.sha256()
    for leaf in jax.tree.leaves(jax.device_get(tree)):
        bits.update(f"{leaf.dtype}{leaf.shape}".encode() + np.ascontiguousarray(leaf).tobytes())
    return bits.hexdigest()


def augmented_world():
    return make_world(symmetries="flips", recolor="all", shuffle_demos=True, task_order="in_turn")


def generated_world():
    return make_world(procedural_tasks("color-map", CANVAS, side=(2, 2)))


def facts_on(num_devices, make_world=make_world):
    """Play twice on so many devices; what came out, as text and numbers."""
    env, params = make_world()
    mesh = data_mesh(num_devices)
    first = rollout(env, params, filling(), KEY, B, S, mesh)
    second = rollout(env, params, filling(), jax.random.key(8), B, S, mesh, states=first.states)
    used = {leaf.sharding.num_devices for leaf in jax.tree.leaves(second.states)}
    totals = [
        [x.episodes, x.solved, x.reward_sum.hex(), x.return_sum.hex(), x.steps] for x in (first.totals, second.totals)
    ]
    return {"used": sorted(used), "states": digest((first.states, second.states)), "totals": totals}


def run_with_devices(count, call):
    """Call a function of this file in a process of its own, with so many CPU devices."""
    program = f"import json, conftest, jax, test_rollout as t; print(json.dumps({call}))"
    here = os.path.dirname(__file__)
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([here, os.path.dirname(here), os.environ.get("PYTHONPATH", "")]),
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


def test_same_key_gives_same_bits_on_any_number_of_devices():
    alone, *shared = run_with_devices(8, "[t.facts_on(count) for count in (1, 2, 4, 8)]")
    assert alone["used"] == [1]
    assert [facts["used"] for facts in shared] == [[2], [4], [8]]
    for facts in shared:
        assert facts["states"] == alone["states"]
        assert facts["totals"] == alone["totals"]
    assert alone["totals"][0][0] > 0
    assert alone["totals"][1][1] > 0
    assert alone["states"] == facts_on(1)["states"]


def test_augmented_and_generated_tasks_are_the_same_on_any_number_of_devices():
    worlds = "t.augmented_world, t.generated_world"
    for alone, shared in run_with_devices(8, f"[[t.facts_on(n, world) for n in (1, 4)] for world in ({worlds})]"):
        assert [alone["used"], shared["used"]] == [[1], [4]]
        assert shared["states"] == alone["states"]
        assert shared["totals"] == alone["totals"]
        assert alone["totals"][0][0] > 0


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


def test_arrays_of_a_policy_are_arguments():
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S)
    for color in (3, 4):
        states = compiled(params, filling(color=color, submit_chance=-1.0), KEY).states
        assert int(states.env_state.working_grid.max()) == color


def test_compiled_rollout_gives_what_rollout_gives():
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S)
    assert compiled.compile_seconds > 0
    placed = replicate(params, data_mesh())
    assert digest(compiled(placed, filling(), KEY)) == digest(rollout(env, params, filling(), KEY, B, S))


def test_compiled_rollout_refuses_what_was_not_compiled():
    env, params = make_world()
    compiled = compile_rollout(env, params, filling(), B, S)
    with pytest.raises(ValueError, match="call compile_rollout with the new ones"):
        compiled(make_world(max_episode_steps=6)[1], filling(), KEY)
    with pytest.raises(ValueError, match="call compile_rollout with the new ones"):
        compiled(params, RandomPolicy(env.action_space(params)), KEY)


@pytest.mark.parametrize("make_key", [jax.random.PRNGKey, lambda seed: jax.random.key(seed, impl="rbg")])
def test_any_key_will_do(make_key):
    env, params = make_world()
    typed, same, other = (rollout(env, params, filling(), key, B, S) for key in (KEY, make_key(7), make_key(8)))
    assert digest(other.states) not in (digest(typed.states), digest(same.states))
    if make_key is jax.random.PRNGKey:
        assert digest(same.states) == digest(typed.states)


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


@pytest.mark.parametrize(("num_envs", "num_steps", "complaint"), [(0, 1, "num_envs=0"), (1, 0, "num_steps .* got 0")])
def test_empty_rollouts_are_refused(num_envs, num_steps, complaint):
    env, params = make_world()
    with pytest.raises(ValueError, match=complaint):
        rollout(env, params, filling(), KEY, num_envs, num_steps)


def test_meshes_with_explicit_and_further_axes_work_too():
    env, params = make_world()
    mesh = jax.make_mesh((1, 1), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    assert digest(rollout(env, params, filling(), KEY, B, S, mesh)) == digest(
        rollout(env, params, filling(), KEY, B, S)
    )


def test_random_policy_draws_from_its_space():
    env, params = make_world()
    space = env.action_space(params)
    action = RandomPolicy(space)(jax.random.key(3), None)
    chex.assert_trees_all_equal(action, space.sample(jax.random.key(3)))
    assert bool(space.contains(action))


def test_chunks_that_are_played_one_after_the_other_change_nothing(monkeypatch):
    env, params = make_world()
    whole = rollout(env, params, filling(), KEY, B, S)
    monkeypatch.setattr(program, "SMALLEST_CHUNK", 2)
    monkeypatch.setattr(program, "LARGEST_CHUNK", 4)
    assert program.chunk_size(B, "compact") == 4
    program.compile_programs.cache_clear()
    chunked = rollout(env, params, filling(), KEY, B, S)
    program.compile_programs.cache_clear()
    assert digest((whole.states, whole.tally)) == digest((chunked.states, chunked.tally))


@pytest.mark.parametrize(
    ("num_envs", "executor", "size"),
    [(1000, "compact", 1000), (65536, "compact", 1024), (3000, "compact", 1000), (65536, "dense", 65536)],
)
def test_a_batch_is_played_in_chunks_that_fit_into_the_cache(num_envs, executor, size):
    assert program.chunk_size(num_envs, executor) == size


def test_a_batch_that_has_no_such_part_is_played_at_once():
    assert program.chunk_size(2 * 1049, "compact") == 2 * 1049  # 1049 is a prime number
