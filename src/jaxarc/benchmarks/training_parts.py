"""The compiled parts of a training run, and an environment that replays recorded steps at no cost."""

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Int32

from jaxarc.agents import EditPolicy
from jaxarc.agents.experiment import Experiment
from jaxarc.agents.ppo import collect
from jaxarc.agents.updates import TrainingState, answer_shown_params, make_params, run_seed, start_seed
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.envs.environment import Action, Environment, Step
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.training.pairs import load_pairs
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.unroll import Transition, replay_actions, unroll
from jaxarc.wrappers import AutoReset, EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState
from jaxarc.wrappers.wrapper import Wrapper

_ENV: Final = EpisodeStatistics(AutoReset(ArcEnvironment()))
_UPDATES_A_CALL: Final = 2  # more than one, so that they stand in a loop as they do in training


class Speeds(NamedTuple):
    """Environment steps per second, interleaved."""

    environment: float  # with given actions
    playing: float  # with actions of the policy, nothing learned
    learning: float
    bound: float  # learning where environments cost nothing

    @property
    def environment_share(self) -> float:
        """Share of the time of learning that environments take."""
        return self.learning / self.environment

    @property
    def policy_share(self) -> float:
        """Share of the time of learning that the policy takes to act."""
        return self.learning / self.playing - self.environment_share

    @property
    def update_share(self) -> float:
        """Share of the time of learning that updates take."""
        return 1 - self.learning / self.playing


@dataclass(frozen=True)
class _Part:
    """A compiled function without arguments, and how many environment steps it takes."""

    run: Callable[[], Any]
    num_steps: int


class TrainingParts:
    """Compiled programs of one experiment; each call starts from the same state, so equal calls do equal work."""

    def __init__(self, parts: dict[str, _Part]):
        self._parts = parts  # by the fields of Speeds

    @classmethod
    def of(cls, experiment: Experiment) -> Self:
        """Compile, and play until the episodes have lost step with one another.

        Raises:
            TaskFormatError, UnknownDatasetError, ValueError: see :func:`jaxarc.training.pairs.load_pairs`.
        """
        train_config = experiment.train_config
        agent = experiment.agent
        config = experiment.environment
        params = make_params(load_pairs(experiment.task, config.grid_shape).train, config)
        state = jax.jit(lambda key: start_seed(key, params, train_config, experiment.curriculum))(jax.random.key(0))
        policy = state.learner.policy
        key = jax.random.key(1)
        shown = answer_shown_params(params, train_config)

        play = jax.jit(lambda states: collect(policy, _ENV, shown, states, key, agent.rollout_steps))
        for _ in range(math.ceil(config.environment.max_episode_steps / agent.rollout_steps)):
            state = dataclasses.replace(state, env_states=play(state.env_states)[0])
        # The environment alone takes the policy's own actions, recorded once, so that
        # its episodes are like those of training.
        actions = jax.jit(jax.vmap(policy.to_action))(play(state.env_states)[1].edit)
        act = jax.jit(lambda states: _take_steps(shown, states, actions))

        # The bound learns from a tape of steps: the same rollout, policy and updates,
        # with an environment that only reads.
        steps = _UPDATES_A_CALL * agent.rollout_steps
        tape = jax.jit(lambda states: record(policy, _ENV.env, shown, states, key, steps))
        replay = EpisodeStatistics(Replay(_ENV.env, tape(state.env_states.env_state)))
        restart = jax.jit(jax.vmap(replay.reset, (0, None)))
        replayed = dataclasses.replace(state, env_states=restart(jax.random.split(key, agent.num_envs), params)[0])

        def learn(env: EpisodeStatistics) -> Callable[[TrainingState], Any]:
            return jax.jit(lambda state: run_seed(state, params, train_config, _UPDATES_A_CALL, env))

        learn_really = learn(_ENV)
        learn_replayed = learn(replay)
        steps = agent.samples_per_update
        parts = {
            "environment": _Part(lambda: act(state.env_states), steps),
            "playing": _Part(lambda: play(state.env_states), steps),
            "learning": _Part(lambda: learn_really(state), _UPDATES_A_CALL * steps),
            "bound": _Part(lambda: learn_replayed(replayed), _UPDATES_A_CALL * steps),
        }
        for part in parts.values():
            jax.block_until_ready(part.run())
        return cls(parts)

    def sample(self, min_seconds: float) -> Speeds:
        """Run the parts alternately, until learning took at least ``min_seconds``, and at least once."""
        seconds = dict.fromkeys(self._parts, 0.0)
        rounds = 0
        while rounds == 0 or seconds["learning"] < min_seconds:
            rounds += 1
            for name, part in self._parts.items():
                start = time.perf_counter()
                jax.block_until_ready(part.run())
                seconds[name] += time.perf_counter() - start
        return Speeds(**{name: rounds * part.num_steps / seconds[name] for name, part in self._parts.items()})


def _take_steps(params: EnvParams, states: StatisticsState, actions: BboxAction) -> Any:
    """Take given steps, and keep all that a policy or an update reads of them."""

    def keep(taken: Transition[Any]) -> Any:
        info = taken.info
        counted = jax.tree.map(jnp.sum, (info["episode_return"], info["episode_length"], info["success"]))
        return taken.observation, taken.reward, taken.done, counted, info["task_index"]

    return unroll(_ENV, params, replay_actions, states, actions, keep)


class Outcome(eqx.Module):
    """Reward, ending and info of each recorded step."""

    reward: Float32[Array, "*B R"]
    done: Bool[Array, "*B R"]
    info: Info  # without the final observation, leaves [*B, R]


class RecordedSteps(eqx.Module):
    """Steps that happened, and which of them comes next."""

    position: Int32[Array, "*B"]  # 0 .. R - 1
    shown: Observation
    shown_next: Observation
    outcomes: Outcome


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Replay(Wrapper[RecordedSteps]):
    """Plays recorded steps over and over, whatever the action: rewards, endings and information as they happened.

    Observations have the shapes and dtypes of the real ones, but there are only two of each environment, which take
    turns: were there one, the compiler would compute once what a network makes of it.
    """

    env: Environment[Any]  # the recorded one
    recordings: RecordedSteps  # of B environments

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[RecordedSteps, Observation]:
        """Begin with the recording of any environment, whatever task is asked for."""
        num_envs = self.recordings.position.shape[0]
        chosen = jax.random.randint(key, (), 0, num_envs, jnp.int32)
        recording = jax.tree.map(lambda x: x[chosen], self.recordings)
        return recording, recording.shown

    def reset_next(self, state: RecordedSteps, params: EnvParams) -> tuple[RecordedSteps, Observation]:
        """Begin again with the first recorded step."""
        return dataclasses.replace(state, position=jnp.zeros_like(state.position)), state.shown

    def step(self, state: RecordedSteps, action: Action, params: EnvParams) -> Step[RecordedSteps]:
        now = jax.tree.map(lambda x: x[state.position], state.outcomes)
        # Two observations take turns, so that a policy gets another one in each step
        # and nothing can be computed once for all.
        after = RecordedSteps(
            (state.position + 1) % state.outcomes.done.shape[-1], state.shown_next, state.shown, state.outcomes
        )
        return after, after.shown, now.reward, now.done, {**now.info, "final_observation": after.shown}

    def observe(self, state: RecordedSteps, params: EnvParams) -> Observation:
        return state.shown

    def info(self, state: RecordedSteps, params: EnvParams) -> Info:
        """Report on the step to come, as of an episode that is going on."""
        info = jax.tree.map(lambda x: x[state.position], state.outcomes.info)
        going_on = dict.fromkeys(("terminated", "truncated"), jnp.zeros_like(state.position, jnp.bool_))
        return {**info, **going_on, "final_observation": state.shown}


def record(
    policy: EditPolicy, env: Environment[Any], params: EnvParams, states: Any, key: PRNGKey, num_steps: int
) -> RecordedSteps:
    """Let a policy take ``num_steps`` steps in each of B environments that reset themselves."""

    def act(key_edit: PRNGKey, observation: Observation, states: Any) -> tuple[BboxAction, None]:
        return policy.to_action(policy.sample(key_edit, observation).edit), None

    def keep(taken: Transition[Any]) -> Outcome:
        info = {name: value for name, value in taken.info.items() if name != "final_observation"}
        return Outcome(taken.reward, taken.done, info)

    last, outcomes = unroll(env, params, act, states, jax.random.split(key, num_steps), keep)
    # [S, B] -> [B, S]: each environment gets a recording of its own.
    outcomes = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), outcomes)
    position = jnp.zeros(outcomes.done.shape[0], jnp.int32)
    return RecordedSteps(position, env.observe(states, params), env.observe(last, params), outcomes)
