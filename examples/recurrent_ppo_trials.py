"""RL^2: an agent with a memory plays three demonstrations of a rule that it never saw, and then a test.

    python examples/recurrent_ppo_trials.py
    python examples/recurrent_ppo_trials.py --see answer
    python examples/recurrent_ppo_trials.py --similarity 0

Each of four colors becomes another color. There are 81 such rules: the agent learns on 65, and is measured on the 16
others. A grid has a cell of each color, and a trial is six fills and a submit. Without a demonstration, the answer of
the test is a guess among 81. ``--see`` says what the agent sees of its past beside the grid: its last action and the
reward (``reward``), the answer of a demonstration when its trial is over (``answer``), both, or nothing. ``--forget``
empties its memory between trials.
"""

import argparse
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console

import jaxarc
from jaxarc.envs import PointAction
from jaxarc.tasks.procedural import Rule, procedural_tasks, register_rule
from jaxarc.unroll import actor_step
from jaxarc.wrappers import AutoReset, Trials

SIDE, NUM_CELLS, NUM_COLORS, NUM_TRIALS, TRIAL_STEPS = 2, 4, 4, 3, 7
EPISODE_STEPS = TRIAL_STEPS * (NUM_TRIALS + 1)
NUM_ENVS, NUM_STEPS, NUM_EPOCHS, NUM_MINIBATCHES, NUM_HIDDEN = 256, 2 * EPISODE_STEPS, 2, 4, 32
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.99, 0.95, 0.2, 0.01, 4e-3
SUBMIT = 34


class Recolor(Rule):
    """Color c of 1..4 becomes another one of them, which gives 81 rules."""

    smallest_side = SIDE

    def draw(self, key):
        index = jax.random.randint(key, (), 0, 81)
        distance = (index // jnp.array([1, 3, 9, 27])) % 3 + 1
        return (1 + (jnp.arange(NUM_COLORS) + distance) % NUM_COLORS).astype(jnp.int8)

    def make_pair(self, key, drawn, grid_shape):
        colors = jax.random.permutation(key, NUM_CELLS)
        return (1 + colors).astype(jnp.int8), drawn[colors]


register_rule("recolor-four", Recolor(min_side=SIDE))


def rule_keys() -> tuple[jax.Array, jax.Array]:
    """Return 500 keys that draw the 65 rules to learn on, and 500 that draw the 16 that are held out."""
    keys = jax.random.split(jax.random.key(0), 5000)
    maps = jax.vmap(Recolor().draw)(keys)
    held_out = np.asarray(maps @ jnp.array([1, 2, 4, 8], jnp.int8) % 5 == 0)
    return keys[~held_out][:500], keys[held_out][:500]


def make_environment(keys: jax.Array, similarity: float) -> tuple[AutoReset, Any]:
    env, params = jaxarc.make(
        procedural_tasks("recolor-four", (SIDE, SIDE), NUM_TRIALS, side=(SIDE, SIDE), rule_keys=keys),
        max_grid_height=SIDE,
        max_grid_width=SIDE,
        mode="trials",
        num_trials=NUM_TRIALS,
        max_episode_steps=TRIAL_STEPS,
        selection_format="point",
        allowed_operations=(*range(1, NUM_COLORS + 1), SUBMIT),
        invalid_action_policy="noop",
        include_input=True,
        include_step_count=True,
        include_demonstrations=True,  # all but the one that is played; the agent looks at those that are over
        similarity_weight=similarity,  # in demonstrations alone
        success_bonus=1.0,
        unsolved_submission_penalty=0.0,
        step_penalty=0.0,
        score_on_submit=True,  # without it no reward teaches the agent to solve the test
    )
    return AutoReset(Trials(env)), params


class Past(NamedTuple):
    """What an agent keeps of the steps before; of one environment."""

    memory: jax.Array  # float32[colors, hidden]
    color: jax.Array  # int32[], of the input, where it filled last
    fill: jax.Array  # int32[], with this color; -1: it submitted, or the episode begins
    reward: jax.Array  # float32[], of the last step
    begins: jax.Array  # bool[], a trial begins


class Agent(eqx.Module):
    """A memory for each color of the input, with the same weights: what it learns of one color holds for all."""

    remember: eqx.nn.GRUCell
    paint: eqx.nn.MLP
    value: eqx.nn.MLP
    see: tuple[str, ...] = eqx.field(static=True)
    forget: bool = eqx.field(static=True)

    def __init__(self, key: jax.Array, see: tuple[str, ...], forget: bool):
        key_remember, key_paint, key_value = jax.random.split(key, 3)
        num_inputs = 3 * NUM_COLORS + 1 + (NUM_TRIALS + 1) + 2
        self.remember = eqx.nn.GRUCell(num_inputs, NUM_HIDDEN, key=key_remember)
        self.paint = eqx.nn.MLP(2 * NUM_HIDDEN + NUM_COLORS, NUM_COLORS, 48, 1, key=key_paint)
        self.value = eqx.nn.MLP(NUM_HIDDEN, "scalar", 48, 1, key=key_value)
        self.see = see
        self.forget = forget

    def __call__(self, observation: Any, past: Past) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the log probabilities of 16 fills and the submit, the value, and the memory."""
        trial = observation["trial_index"]
        inputs = one_hot(observation["input_grid"])
        working = one_hot(observation["working_grid"])
        nothing = jnp.zeros((NUM_COLORS, NUM_COLORS + 1))
        # What was done to each color and what it brought, [color, fill and reward], and what each color became.
        did = jnp.append(jax.nn.one_hot(past.fill, NUM_COLORS), past.reward)
        color = jax.nn.one_hot(past.color, NUM_COLORS)
        where = jnp.where(past.color < 0, jnp.ones(NUM_COLORS), color)  # the reward of a submit is about all colors
        tried = where[:, None] * did if "reward" in self.see else nothing
        became = nothing[:, 1:]
        if "answer" in self.see:
            pairs = observation["demonstrations"]
            became = one_hot(pairs["inputs"][trial - 1]).T @ one_hot(pairs["outputs"][trial - 1])
            became = jnp.where(past.begins & (trial > 0), became, 0)
        place = jax.nn.one_hot(trial, NUM_TRIALS + 1)
        time = jnp.stack([past.begins, observation["step_count"] / TRIAL_STEPS])
        shared = jnp.tile(jnp.concatenate([place, time]), (NUM_COLORS, 1))
        memory = jnp.where(self.forget & past.begins, 0, past.memory)
        seen = jnp.concatenate([inputs.T @ working, tried, became, shared], axis=1)
        memory = jax.vmap(self.remember)(seen, memory)
        overall = memory.mean(axis=0)
        cells = jnp.concatenate([inputs @ memory, jnp.tile(overall, (NUM_CELLS, 1)), working], axis=1)
        fills = jnp.append(jax.vmap(self.paint)(cells), 0)
        # The last step of a trial submits, the others fill.
        is_submit = jnp.arange(fills.size) == fills.size - 1
        legal = is_submit == (observation["step_count"] == TRIAL_STEPS - 1)
        return jax.nn.log_softmax(jnp.where(legal, fills, -1e9)), self.value(overall), memory


def one_hot(grid: jax.Array) -> jax.Array:
    """Turn a grid of the colors 1..4 into float32[cells, colors]."""
    return jax.nn.one_hot(grid.ravel() - 1, NUM_COLORS)


def to_action(choice: jax.Array) -> PointAction:
    submits = choice == NUM_CELLS * NUM_COLORS
    cell = jnp.where(submits, 0, choice // NUM_COLORS)
    return PointAction(jnp.where(submits, SUBMIT, 1 + choice % NUM_COLORS), cell // SIDE, cell % SIDE)


class Sample(NamedTuple):
    """One step of each environment."""

    observation: Any
    past: Past
    choice: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array  # the episode has ended, with the test
    solved: jax.Array  # [B, trials]: of the trial that this step ended
    ended: jax.Array  # [B, trials]


class Players(NamedTuple):
    states: Any
    past: Past  # leaves [B, ...]


def start(env: AutoReset, params: Any, key: jax.Array, num_envs: int) -> Players:
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(key, num_envs), params)
    zeros = jnp.zeros(num_envs)
    none = jnp.full(num_envs, -1)
    return Players(states, Past(jnp.zeros((num_envs, NUM_COLORS, NUM_HIDDEN)), none, none, zeros, zeros == 0))


def step(agent: Agent, env: AutoReset, params: Any, players: Players, key: jax.Array) -> tuple[Players, Sample]:
    def act(key: jax.Array, observation: Any, _: Any) -> tuple[PointAction, tuple]:
        log_probs, value, memory = jax.vmap(agent)(observation, players.past)
        choice = jax.random.categorical(key, log_probs)
        chosen = jnp.take_along_axis(log_probs, choice[:, None], axis=1)[:, 0]
        return jax.vmap(to_action)(choice), (choice, chosen, value, memory)

    states, taken = actor_step(env, params, act, players.states, key)
    choice, chosen, value, memory = taken.extras
    fills = choice < NUM_CELLS * NUM_COLORS
    cell = jnp.where(fills, choice // NUM_COLORS, 0)
    under = jnp.take_along_axis(taken.observation["input_grid"].reshape(-1, NUM_CELLS), cell[:, None], axis=1)[:, 0]
    color = jnp.where(fills, under.astype(jnp.int32) - 1, -1)
    fill = jnp.where(fills, choice % NUM_COLORS, -1)
    # An episode begins with an empty memory; a trial does not.
    memory = jnp.where(taken.done[:, None, None], 0, memory)
    past = Past(memory, color, fill, taken.reward, taken.info["trial_done"])
    ended = jax.nn.one_hot(taken.info["trial_index"], NUM_TRIALS + 1) * taken.info["trial_done"][:, None]
    solved = ended * taken.info["success"][:, None]
    of_step = taken.observation, players.past, choice, chosen, value, taken.reward, taken.done, solved, ended
    return Players(states, past), Sample(*of_step)


def play(agent: Agent, env: AutoReset, params: Any, players: Players, key: jax.Array, num_steps: int):
    once = functools.partial(step, agent, env, params)
    return jax.lax.scan(once, players, jax.random.split(key, num_steps))


def loss(agent: Agent, batch: tuple[Sample, jax.Array, jax.Array]) -> jax.Array:
    sample, advantage, target = batch

    # The memory is computed again from that of the first step, so that the gradient reaches through all of them.
    def again(memory: jax.Array, at: tuple) -> tuple[jax.Array, tuple]:
        observation, past, done = at
        log_probs, value, memory = jax.vmap(agent)(observation, past._replace(memory=memory))
        return jnp.where(done[:, None, None], 0, memory), (log_probs, value)

    first = sample.past.memory[0]
    _, (log_probs, value) = jax.lax.scan(again, first, (sample.observation, sample.past, sample.done))
    chosen = jnp.take_along_axis(log_probs, sample.choice[..., None], axis=-1)[..., 0]
    ratio = jnp.exp(chosen - sample.log_prob)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=-1)
    return -surrogate.mean() + 0.5 * ((value - target) ** 2).mean() - ENTROPY * entropy.mean()


def train(agent: Agent, env: AutoReset, params: Any, key: jax.Array, num_updates: int) -> tuple[Agent, jax.Array]:
    """Learn; return the agent, and float32[updates, trials], the share of trials solved in each update."""
    schedule = optax.linear_schedule(LEARNING_RATE, 0.1 * LEARNING_RATE, num_updates * NUM_EPOCHS * NUM_MINIBATCHES)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(schedule, eps=1e-6))
    arrays, static = eqx.partition(agent, eqx.is_array)

    def learn(learned: tuple, batch: tuple) -> tuple[tuple, None]:
        arrays, optimizer_state = learned
        gradient = jax.grad(lambda arrays: loss(eqx.combine(arrays, static), batch))(arrays)
        change, optimizer_state = optimizer.update(gradient, optimizer_state)
        return (eqx.apply_updates(arrays, change), optimizer_state), None

    def update(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
        learned, players = carry
        agent = eqx.combine(learned[0], static)
        key_play, key_order = jax.random.split(key)
        players, samples = play(agent, env, params, players, key_play, NUM_STEPS)
        _, last_value, _ = jax.vmap(agent)(jax.vmap(env.observe, (0, None))(players.states, params), players.past)

        # Trials are steps of one episode: what is learned in the first counts when it helps in the last.
        def backward(later: tuple, sample: Sample) -> tuple[tuple, jax.Array]:
            advantage, value = later
            goes_on = 1 - sample.done
            error = sample.reward + GAMMA * goes_on * value - sample.value
            advantage = error + GAMMA * LAMBDA * goes_on * advantage
            return (advantage, sample.value), advantage

        _, advantages = jax.lax.scan(backward, (jnp.zeros(NUM_ENVS), last_value), samples, reverse=True)
        everything = samples, advantages, advantages + samples.value

        def epoch(learned: tuple, key: jax.Array) -> tuple[tuple, None]:
            order = jax.random.permutation(key, NUM_ENVS).reshape(NUM_MINIBATCHES, -1)
            return jax.lax.scan(learn, learned, jax.tree.map(lambda x: jnp.moveaxis(x[:, order], 1, 0), everything))

        learned, _ = jax.lax.scan(epoch, learned, jax.random.split(key_order, NUM_EPOCHS))
        return (learned, players), samples.solved.sum((0, 1)) / jnp.maximum(samples.ended.sum((0, 1)), 1)

    key_start, key_updates = jax.random.split(key)
    learned = arrays, optimizer.init(arrays)
    carry = learned, start(env, params, key_start, NUM_ENVS)
    (learned, _), solved = jax.lax.scan(update, carry, jax.random.split(key_updates, num_updates))
    return eqx.combine(learned[0], static), solved


@eqx.filter_jit
def measure(agent: Agent, env: AutoReset, params: Any, key: jax.Array, num_episodes: int = 4096) -> jax.Array:
    """Return the share of trials solved, float32[trials], the test last."""
    key_start, key_play = jax.random.split(key)
    _, samples = play(agent, env, params, start(env, params, key_start, num_episodes), key_play, EPISODE_STEPS)
    return samples.solved.sum((0, 1)) / samples.ended.sum((0, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--see", nargs="*", choices=["reward", "answer"], default=["reward"])
    parser.add_argument("--forget", action="store_true", help="empty the memory between trials")
    parser.add_argument("--similarity", type=float, default=1.0, help="weight of the reward for each right cell")
    parser.add_argument("--updates", type=int, default=100, help=f"each of {NUM_ENVS * NUM_STEPS:,} steps")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    keys_known, keys_new = rule_keys()
    env, known = make_environment(keys_known, options.similarity)
    _, new = make_environment(keys_new, options.similarity)
    learn = eqx.filter_jit(train)
    console = Console(highlight=False)
    console.print(f"{'share solved':<20}{'first':>9}{'second':>9}{'third':>9}{'test':>9}")
    for seed in options.seeds:
        key_agent, key_train, key_measure = jax.random.split(jax.random.key(seed), 3)
        agent = Agent(key_agent, tuple(options.see), options.forget)
        agent, _ = learn(agent, env, known, key_train, options.updates)
        for name, params in (("known rules", known), ("new rules", new)):
            shares = measure(agent, env, params, key_measure)
            row = "".join(f"{100 * float(share):7.1f} %" for share in shares)
            console.print(f"seed {seed}, {name:<12}{row}")


if __name__ == "__main__":
    main()
