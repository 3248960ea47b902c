"""Expert iteration: a policy learns to do at once what a search with the environment's step finds.

    python examples/expert_iteration.py --updates 36

The setting is that of ``jaxarc train experiment=ladder_l2_small``: real pairs, the answer in sight, nothing to imitate.
In each situation mctx searches among edits that the policy draws; the policy then learns the edits that the search
prefers (Anthony et al. 2017, Silver et al. 2017). ``pip install ".[mctx]"`` brings mctx.
"""

import argparse
import dataclasses
import time
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32
from plan_with_mctx import GAMMA, chosen, make_planner
from rich.console import Console

import jaxarc
from jaxarc.agents import EditPolicy, LearnerState
from jaxarc.agents.cloning import CloningExamples, clone, make_cloning_optimizer, start_cloning
from jaxarc.agents.edits import Edit
from jaxarc.agents.ppo import bootstrap_values, estimate_advantages
from jaxarc.agents.updates import make_params
from jaxarc.config import AgentConfig, CloningConfig, NetworkConfig, TaskConfig
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.evaluation import play_every_task
from jaxarc.types import Observation, PRNGKey
from jaxarc.unroll import unroll
from jaxarc.wrappers import AutoReset

AGENT: Final = AgentConfig()
NUM_STEPS: Final = 2  # of each environment between two updates
LEARNINGS: Final = 4  # times that an update looks at as many examples as PPO's update does, from all collected so far
_ENV: Final = AutoReset(ArcEnvironment())


def collect(
    policy: EditPolicy, states: ArcEnvState, key: PRNGKey, params: EnvParams, num_candidates: int, num_simulations: int
) -> tuple[ArcEnvState, CloningExamples]:
    """Take the steps that the search chooses, and record what it prefers."""
    plan = make_planner(params, policy, num_candidates, num_simulations, gumbel_scale=1.0)

    def act(key: PRNGKey, _: Observation, states: ArcEnvState) -> tuple[BboxAction, tuple[Edit, Float32[Array, " B"]]]:
        key_plan, key_target = jax.random.split(key)
        candidates, found = plan(key_plan, states)
        # One edit drawn by the search's weights stands for all of them: its expected loss is their cross-entropy.
        target = jax.random.categorical(key_target, jnp.log(found.action_weights))
        value = found.search_tree.summary().value
        return chosen(candidates, found.action), (policy.from_action(chosen(candidates, target)), value)

    keys = jax.random.split(key, NUM_STEPS)
    record = lambda taken: (taken.observation, *taken.extras, taken.reward, taken.done)
    states, (observation, edit, value, reward, done) = unroll(_ENV, params, act, states, keys, record)
    last_value = policy.value(jax.vmap(_ENV.observe, (0, None))(states, params))
    following = bootstrap_values(value, last_value, value, done, jnp.zeros_like(done))
    target = value + estimate_advantages(reward, value, following, done, GAMMA, AGENT.gae_lambda)
    return states, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), CloningExamples(observation, edit, target))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=36, help="each of them 512 steps")
    parser.add_argument("--simulations", type=int, default=16, help="steps of a search")
    parser.add_argument("--candidates", type=int, default=16, help="edits to choose from")
    parser.add_argument("--side", type=int, default=10, help="of the largest grids")
    parser.add_argument("--reports", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console()

    rules = jaxarc.make("ladder_l2_small")[1].config.with_fields(
        max_grid_height=options.side, max_grid_width=options.side
    )
    pairs = load_pairs(TaskConfig(max_side=options.side), rules.grid_shape, augmentation=rules.augmentation)
    params = make_params(pairs.train, rules)
    unseen = make_params(dataclasses.replace(pairs.eval, tasks=pairs.eval.tasks[pairs.num_train :]), rules)
    cloning = CloningConfig(num_updates=options.updates * LEARNINGS, learning_rate=4e-3)
    optimizer = make_cloning_optimizer(cloning, AGENT)
    steps_per_update = NUM_STEPS * AGENT.num_envs

    @eqx.filter_jit
    def search(policy: EditPolicy, states: ArcEnvState, key: PRNGKey) -> tuple[ArcEnvState, CloningExamples]:
        return collect(policy, states, key, params, options.candidates, options.simulations)

    @eqx.filter_jit
    def learn(
        learner: LearnerState, examples: CloningExamples, new: CloningExamples, first: Int32[Array, ""], key: PRNGKey
    ) -> tuple[LearnerState, CloningExamples]:
        store = lambda old, x: jax.lax.dynamic_update_slice_in_dim(old, x, first, axis=0)
        examples = jax.tree.map(store, examples, new)
        count = first + steps_per_update

        def once(learner: LearnerState, key: PRNGKey) -> tuple[LearnerState, None]:
            key_draw, key_learn = jax.random.split(key)
            drawn = jax.random.randint(key_draw, (AGENT.samples_per_update,), 0, count, jnp.int32)
            batch = jax.tree.map(lambda x: x[drawn], examples)
            return clone(learner, key_learn, batch, AGENT, optimizer)[0], None

        return jax.lax.scan(once, learner, jax.random.split(key, LEARNINGS))[0], examples

    @eqx.filter_jit
    def play(policy: EditPolicy) -> tuple[Bool[Array, " T"], Int32[Array, " T"]]:
        return play_every_task(lambda _, shown, __: (policy.act(shown), None), unseen)

    key_policy, key_start, key_updates = jax.random.split(jax.random.key(options.seed), 3)
    learner = start_cloning(EditPolicy.create(key_policy, rules, NetworkConfig()), optimizer)
    states, _ = jax.jit(jax.vmap(_ENV.reset, (0, None)))(jax.random.split(key_start, AGENT.num_envs), params)
    examples = None
    begin = time.perf_counter()
    for number, key in enumerate(jax.random.split(key_updates, options.updates)):
        key_search, key_learn = jax.random.split(key)
        states, new = search(learner.policy, states, key_search)
        if examples is None:  # room for the examples of all updates, so that nothing is compiled again
            examples = jax.tree.map(lambda x: jnp.zeros((options.updates * len(x), *x.shape[1:]), x.dtype), new)
        learner, examples = learn(learner, examples, new, jnp.int32(number * steps_per_update), key_learn)
        if (number + 1) % max(options.updates // options.reports, 1) == 0:
            solved, steps = play(learner.policy)
            taken = (number + 1) * steps_per_update
            actions = (steps * solved).sum() / jnp.maximum(solved.sum(), 1)
            console.print(
                f"{taken:,} steps, {taken * (options.simulations + 1):,} with those of the searches: "
                f"{solved.mean():.1%} of {solved.size} unseen pairs solved, {actions:.1f} actions, "
                f"{time.perf_counter() - begin:.0f} s",
                highlight=False,
            )


if __name__ == "__main__":
    main()
