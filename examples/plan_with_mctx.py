"""Planning: mctx's Gumbel search looks some edits ahead, by the environment's own step.

    jaxarc train experiment=ladder_l2_small
    python examples/plan_with_mctx.py runs/AGENT

The search chooses among edits that the trained agent draws, and its value head judges where they lead. The pairs are
unseen ones that need a look ahead: the expert that looks one edit ahead takes more actions on them than the painter,
which searches for short ways. ``pip install ".[mctx]"`` brings mctx.
"""

import argparse
import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jaxtyping import Array, Float32
from rich.console import Console
from rich.progress import track

import jaxarc
from jaxarc.agents import EditPolicy
from jaxarc.agents.saved_agent import load_policy
from jaxarc.agents.updates import make_params
from jaxarc.config import AgentConfig, NetworkConfig, TaskConfig
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.evaluation import play_every_task
from jaxarc.experts import LookaheadAgent, Painter
from jaxarc.experts.expert import Pair
from jaxarc.runs.folder import open_run_folder
from jaxarc.types import Observation, PRNGKey

NUM_CANDIDATES: Final = 16  # edits that the agent draws in each situation
NUM_SIMULATIONS: Final = 32  # steps that the search takes before each action
NUM_LOOKED_AT: Final = 256  # candidates of the expert that looks one edit ahead
MAX_ACTIONS: Final = 40  # of an episode
GAMMA: Final = AgentConfig().gamma
_ENV: Final = ArcEnvironment()
_NEVER: Final = -1e9
_ROW: Final = "{:<28}{:>9}{:>10}{:>9}{:>11}{:>13}"


class Situation(NamedTuple):
    """A node of the search tree: where the episode is, and the edits to choose from."""

    states: ArcEnvState  # where the episodes are; leaves [B, ...]
    candidates: BboxAction  # leaves [B, k]


class Evaluated(NamedTuple):
    """Situations as the agent sees them."""

    situation: Situation
    logits: Float32[Array, "B k"]  # log of how often an edit was drawn; never of one that repeats an earlier one
    value: Float32[Array, " B"]


Planner = Callable[[PRNGKey, ArcEnvState], tuple[BboxAction, mctx.PolicyOutput]]
"""From B states to k candidates of each, and what the search thinks of them."""


def make_planner(
    params: EnvParams,
    policy: EditPolicy,
    num_candidates: int = NUM_CANDIDATES,
    num_simulations: int = NUM_SIMULATIONS,
    gumbel_scale: float = 0.0,
) -> Planner:
    """Make a search over edits that a policy draws, as Sampled MuZero does (Hubert et al. 2021).

    Args:
        params: of the environment, whose step looks ahead: a pure function of the states.
        policy: draws the candidates, k for each node of the tree, and says what a node is worth.
        num_candidates: k.
        num_simulations: steps taken before each decision; each of them makes one node.
        gumbel_scale: 1 explores, as in training; 0 takes what looks best.
    """
    # The q-values stay as they are: one cell of 10x10 is worth 0.03, which 50 visits and the scale 1 make 1.5 nats. By
    # default mctx stretches them to 0 .. 1, and then a wrong submit at 0 makes all other candidates alike.
    q_transform = functools.partial(mctx.qtransform_completed_by_mix_value, value_scale=1.0, rescale_values=False)

    def evaluate(key: PRNGKey, states: ArcEnvState) -> Evaluated:
        seen = jax.vmap(_ENV.observe, (0, None))(states, params)
        repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, num_candidates, axis=0), seen)
        drawn = policy.sample(key, repeated)
        per_situation = lambda leaf: leaf.reshape(-1, num_candidates)
        candidates = jax.tree.map(per_situation, policy.to_action(drawn.choice))
        # An edit that was drawn three times counts once, with three times the weight: [B, k, k], of each pair of edits.
        equal = functools.reduce(jnp.logical_and, [x[:, :, None] == x[:, None] for x in jax.tree.leaves(candidates)])
        count = equal.sum(axis=-1, dtype=jnp.int32).astype(jnp.float32)
        logits = jnp.where(jnp.tril(equal, -1).any(axis=-1), jnp.float32(_NEVER), jnp.log(count))
        return Evaluated(Situation(states, candidates), logits, per_situation(drawn.value)[:, 0])

    def recurrent(
        _: None, key: PRNGKey, index: Array, situation: Situation
    ) -> tuple[mctx.RecurrentFnOutput, Situation]:
        actions = chosen(situation.candidates, index)
        states, _, reward, done, _ = jax.vmap(_ENV.step, (0, 0, None))(situation.states, actions, params)
        following, logits, value = evaluate(key, states)
        goes_on = (~done).astype(jnp.float32)  # nothing is worth anything after an end
        output = mctx.RecurrentFnOutput(
            reward=reward, discount=GAMMA * goes_on, prior_logits=logits, value=goes_on * value
        )
        return output, following

    def plan(key: PRNGKey, states: ArcEnvState) -> tuple[BboxAction, mctx.PolicyOutput]:
        key_root, key_search = jax.random.split(key)
        situation, logits, value = evaluate(key_root, states)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=situation)
        found = mctx.gumbel_muzero_policy(
            params=None,
            rng_key=key_search,
            root=root,
            recurrent_fn=recurrent,
            num_simulations=num_simulations,
            invalid_actions=logits == _NEVER,
            max_num_considered_actions=num_candidates,
            gumbel_scale=gumbel_scale,
            qtransform=q_transform,
        )
        return situation.candidates, found

    return plan


def chosen(candidates: BboxAction, index: Array) -> BboxAction:
    """Take one of the k candidates of each situation."""
    return jax.tree.map(lambda leaf: jnp.take_along_axis(leaf, index[:, None], axis=1)[:, 0], candidates)


class Played(NamedTuple):
    """One episode of each pair."""

    solved: np.ndarray  # bool[T]
    actions: np.ndarray  # int[T], the submit included
    decisions_per_second: float


Act = Callable[[PRNGKey, Observation, ArcEnvState], BboxAction]
"""From observations and states of B environments to their actions."""


def play(act: Act, params: EnvParams, key: PRNGKey) -> Played:
    """Play all pairs side by side, each to its end."""

    def policy(_: Array, observation: Observation, states: ArcEnvState) -> tuple[BboxAction, None]:
        return act(jax.random.fold_in(key, states.step_count.sum()), observation, states), None

    count = params.tasks.num_tasks
    compiled = jax.jit(lambda params: play_every_task(policy, params, count)).lower(params).compile()
    begin = time.perf_counter()
    solved, actions = jax.block_until_ready(compiled(params))
    seconds = time.perf_counter() - begin
    # It decides for all pairs until the last episode ends.
    return Played(np.asarray(solved), np.asarray(actions), count * int(actions.max()) / seconds)


class HardPairs(NamedTuple):
    """Unseen pairs on which it pays to look further than one edit ahead."""

    params: EnvParams
    painter_actions: np.ndarray  # int[T]


def find_hard_pairs(rules: jaxarc.JaxArcConfig, side: int) -> HardPairs:
    """Keep the pairs that the painter solves in fewer actions than the expert that looks one edit ahead."""
    pairs = load_pairs(TaskConfig(max_side=side), rules.grid_shape)
    unseen = pairs.eval.tasks[pairs.num_train :]
    painter = Painter()
    actions = np.array([len(painter.solve(Pair(*each.pairs[0]), "bbox")) for each in track(unseen, "painting ...")])
    params = make_params(dataclasses.replace(pairs.eval, tasks=unseen), rules)
    is_hard = play(looking_one_ahead(params), params, jax.random.key(0)).actions > actions
    kept = tuple(each for each, keeps in zip(unseen, is_hard, strict=True) if keeps)
    return HardPairs(make_params(dataclasses.replace(pairs.eval, tasks=kept), rules), actions[is_hard])


def looking_one_ahead(params: EnvParams) -> Act:
    expert = LookaheadAgent(params.config, NUM_LOOKED_AT)
    return lambda key, shown, _: jax.vmap(expert)(jax.random.split(key, len(shown["step_count"])), shown)


def searching(plan: Planner) -> Act:
    def act(key: PRNGKey, _: Observation, states: ArcEnvState) -> BboxAction:
        candidates, found = plan(key, states)
        return chosen(candidates, found.action)

    return act


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent", nargs="?", help="run of an agent; without one, a fresh policy plays")
    parser.add_argument("--simulations", type=int, default=NUM_SIMULATIONS, help="steps of a search")
    parser.add_argument("--candidates", type=int, default=NUM_CANDIDATES, help="edits to choose from")
    parser.add_argument("--side", type=int, default=10, help="of the largest grids")
    parser.add_argument("--seed", type=int, default=0, help="of the agent, and of what it draws")
    options = parser.parse_args()
    console = Console()

    rules = jaxarc.make("ladder_l2_small")[1].config.with_fields(
        include_input=True, max_grid_height=options.side, max_grid_width=options.side
    )
    if options.agent is None:
        policy = EditPolicy.create(jax.random.key(options.seed), rules, NetworkConfig())
    else:
        policy, _ = load_policy(open_run_folder(Path(options.agent)), "last", options.seed, rules)
    params, painter_actions = find_hard_pairs(rules.with_fields(max_episode_steps=MAX_ACTIONS), options.side)
    plan = make_planner(params, policy, options.candidates, options.simulations)
    rows: dict[str, tuple[Act, int]] = {
        "one edit ahead": (looking_one_ahead(params), NUM_LOOKED_AT),
        "agent": (lambda _, shown, __: policy.act(shown), 0),
        "agent and a search": (searching(plan), options.simulations),
    }

    number = len(painter_actions)
    console.print(f"{number} pairs; the painter took {painter_actions.mean():.2f} actions", highlight=False)
    console.print(_ROW.format("", "solved", "as short", "actions", "looked at", "decisions/s"))
    for name, (act, num_steps) in rows.items():
        solved, actions, speed = play(act, params, jax.random.key(options.seed))
        is_short = solved & (actions <= painter_actions)
        mean_actions = f"{actions[solved].mean():.2f}" if solved.any() else "-"
        cells = (f"{solved.mean():.1%}", f"{is_short.mean():.1%}", mean_actions, f"{num_steps}", f"{speed:,.0f}")
        console.print(_ROW.format(name, *cells), highlight=False)
    console.print("as short: solved in at most as many actions as the painter; looked at: steps before each action")


if __name__ == "__main__":
    main()
