"""The agent that plays what a surrogate likes: it solves pairs, as the expert does, from the same candidates."""

import equinox as eqx
import jax
import numpy as np
from exact_scorer import EXACT, exact_scorer
from small_tasks import tasks_of

import jaxarc
from jaxarc.experts.candidates import candidates_of_canvas
from jaxarc.experts.canvas_state import canvas_of_observation
from jaxarc.parallel import rollout
from jaxarc.surrogate import CountingScorer, SurrogateAgent
from jaxarc.wrappers import AutoReset, EpisodeStatistics

SIDE, COUNT = 5, 32


def make_world(**rules):
    draw = np.random.default_rng(1)
    grid = lambda: draw.integers(0, 3, draw.integers(2, SIDE + 1, 2))
    pairs = [(grid(), grid()) for _ in range(4)]
    settings = {
        "selection_format": "bbox", "reveal_target": True, "include_input": True, "history_enabled": False,
        "max_grid_height": SIDE, "max_grid_width": SIDE, "invalid_action_policy": "noop",
    }  # fmt: skip
    return jaxarc.make(tasks_of(*pairs), **(settings | rules))


def test_with_exact_worths_it_solves_every_pair():
    env, params = make_world(allowed_operations=EXACT)
    agent = SurrogateAgent(exact_scorer(), params.config, COUNT)
    played = rollout(EpisodeStatistics(AutoReset(env)), params, agent, jax.random.key(0), num_envs=4, num_steps=40)
    assert played.totals.solved == played.totals.episodes > 4


def test_it_takes_a_candidate_that_the_expert_would_draw_with_the_same_key():
    env, params = make_world()
    _, seen = env.reset(jax.random.key(0), params)
    model = CountingScorer(jax.random.key(0))
    key = jax.random.key(7)
    action = eqx.filter_jit(SurrogateAgent(model, params.config, COUNT))(key, seen)
    draw = jax.jit(
        lambda key, seen: candidates_of_canvas(key, canvas_of_observation(seen, params.config), COUNT, params.config)
    )
    actions, is_distinct = draw(jax.random.split(key)[0], seen)
    is_it = jax.tree.map(lambda taken, drawn: np.asarray(taken) == np.asarray(drawn), action, actions)
    assert (np.all(jax.tree.leaves(is_it), axis=0) & np.asarray(is_distinct)).any()
