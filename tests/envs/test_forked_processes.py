"""A process that is forked after JAX has started refuses its first call, behind every interface, and does not hang."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")

CODE = """
import faulthandler, importlib.util, multiprocessing, os
import jax, jaxarc, numpy as np
from jaxarc.adapters import GymnasiumEnv, GymnasiumVectorEnv
from jaxarc.compilation import ForkedProcessError
from jaxarc.parallel import rollout
from jaxarc.agents.saved_agent import TrainedAgent
from jaxarc.unroll import RandomPolicy
from jaxarc.wrappers import AutoReset, EpisodeStatistics

fields = dict(max_grid_height=3, max_grid_width=3, selection_format="bbox", invalid_action_policy="noop")
env, params = jaxarc.make("procedural/gravity", **fields)
key = jax.random.key(0)
state, observation = env.reset(key, params)
action = jaxarc.BboxAction(1, 0, 0, 1, 1)
env.step(state, action, params)
looped = EpisodeStatistics(AutoReset(env))
held, _ = looped.reset(key, params)
looped.step(held, action, params)
guide = jaxarc.arc_reset(key, params.config)[0]
keys = jax.random.split(key, 2)
states = jaxarc.batch_reset(keys, params.config)[0]
actions = jax.tree.map(lambda x: x[None].repeat(2), action)
space = env.action_space(params)
played = RandomPolicy(space), key, 4
agent = TrainedAgent(None, params.config, False)  # which refuses before it looks at its policy
single, batch = GymnasiumEnv(env, params), GymnasiumVectorEnv(env, params, 2)
numbers = np.zeros(5, int)
for one, taken in ((single, numbers), (batch, np.zeros((2, 5), int))):
    one.reset(seed=0)
    one.step(taken)
calls = {
    "reset": lambda: env.reset(key, params),
    "reset on a task": lambda: env.reset(key, params, 0),
    "reset_next": lambda: env.reset_next(state, params),
    "step": lambda: env.step(state, action, params),
    "step and reset": lambda: env.step_and_reset(state, action, params),
    "step under vmap": lambda: jax.vmap(env.step, (None, None, None), axis_size=2)(state, action, params),
    "step of wrappers": lambda: looped.step(held, action, params),
    "observe": lambda: env.observe(state, params),
    "info": lambda: env.info(state, params),
    "arc_reset": lambda: jaxarc.arc_reset(key, params.config),
    "arc_step": lambda: jaxarc.arc_step(guide, action, params.config),
    "batch_reset": lambda: jaxarc.batch_reset(keys, params.config),
    "batch_step": lambda: jaxarc.batch_step(states, actions, params.config),
    "rollout": lambda: rollout(looped, params, *played, 2),
    "record_episode": lambda: jaxarc.record_episode(played[0], env, params, key),
    "agent": lambda: agent.act(key, observation),
    "make": lambda: jaxarc.make("starter"),
    "Gymnasium's reset": lambda: single.reset(),
    "Gymnasium's step": lambda: single.step(numbers),
    "Gymnasium's vector reset": lambda: batch.reset(seed=1),
    "Gymnasium's vector step": lambda: batch.step(np.zeros((2, 5), int)),
}
if importlib.util.find_spec("gymnax"):
    from jaxarc.adapters import GymnaxEnvironment
    gymnax = GymnaxEnvironment("procedural/gravity", **fields)
    pressed = {"operation": 1, "r1": 0, "c1": 0, "r2": 0, "c2": 0}
    ours = gymnax.reset(key)[1]
    gymnax.step(key, ours, pressed)
    calls["gymnax's reset"] = lambda: gymnax.reset(key)
    calls["gymnax's step"] = lambda: gymnax.step(key, ours, pressed)
if importlib.util.find_spec("stoa"):
    from jaxarc.adapters import StoaEnvironment
    stoa = StoaEnvironment(env, params)
    theirs = stoa.reset(key)[0]
    stoa.step(theirs, numbers)
    calls["Stoa's reset"] = lambda: stoa.reset(key)
    calls["Stoa's step"] = lambda: stoa.step(theirs, numbers)
if importlib.util.find_spec("stable_baselines3"):
    from jaxarc.adapters import Sb3VecEnv
    sb3 = Sb3VecEnv(env, params, 2)
    sb3.reset()
    calls["stable-baselines3's reset"] = lambda: sb3.reset()
    calls["stable-baselines3's step"] = lambda: sb3.step(np.zeros((2, 5), int))

def play(name):
    faulthandler.dump_traceback_later(60, exit=True)
    try:
        calls[name]()
    except ForkedProcessError:
        os._exit(0)
    os._exit(1)

for name in calls:
    child = multiprocessing.get_context("fork").Process(target=play, args=(name,))
    child.start()
    child.join(90)
    if child.exitcode != 0:
        print(name, child.exitcode)
        child.kill()
print(len(calls))
"""


def test_every_first_call_in_a_fork_is_refused():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    (count,) = done.stdout.split()  # and not a name of a call that hangs or returns
    assert int(count) >= 21
