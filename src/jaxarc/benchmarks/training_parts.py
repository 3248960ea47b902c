"""The compiled parts of a training run."""

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import jax
import jax.numpy as jnp

from jaxarc.agents.canvases import canvases_of, configs_of
from jaxarc.agents.experiment import Experiment
from jaxarc.agents.ppo import TrainConfig, collect
from jaxarc.agents.updates import answer_shown_params, run_seed, start_seed
from jaxarc.config import CurriculumConfig
from jaxarc.datasets.task_set import choose_sides
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.unroll import Transition, replay_actions, unroll
from jaxarc.wrappers import AutoReset, EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState

_ENV: Final = EpisodeStatistics(AutoReset(ArcEnvironment()))
_UPDATES_A_CALL: Final = 2  # more than one, so that they stand in a loop as they do in training


class Speeds(NamedTuple):
    """Environment steps per second, interleaved."""

    environment: float  # with given actions
    playing: float  # with actions of the policy, nothing learned
    learning: float

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
            TaskFormatError, UnknownDatasetError, ValueError: see :func:`jaxarc.datasets.training_pairs.load_pairs`.
        """
        rules, agent = experiment.environment, experiment.agent
        pairs = load_pairs(experiment.task, rules.grid_shape)
        canvases = canvases_of(pairs.train, rules, choose_sides(experiment.task.canvases, pairs.eval))
        configs = configs_of(experiment.train_config, canvases)
        programs = [
            _CanvasPrograms.of(canvas.params, config, experiment.curriculum)
            for canvas, config in zip(canvases, configs, strict=True)
        ]
        steps = agent.samples_per_update
        parts = {
            "environment": _Part(lambda: [program.act() for program in programs], steps),
            "playing": _Part(lambda: [program.play() for program in programs], steps),
            "learning": _Part(lambda: [program.learn() for program in programs], _UPDATES_A_CALL * steps),
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


class _CanvasPrograms(NamedTuple):
    """The programs of one canvas of an experiment; it may be the only one."""

    act: Callable[[], Any]
    play: Callable[[], Any]
    learn: Callable[[], Any]

    @classmethod
    def of(cls, params: EnvParams, train_config: TrainConfig, curriculum: CurriculumConfig) -> Self:
        agent = train_config.agent
        state = jax.jit(lambda key: start_seed(key, params, train_config, curriculum))(jax.random.key(0))
        policy = state.learner.policy
        key = jax.random.key(1)
        shown = answer_shown_params(params, train_config)

        play = jax.jit(lambda states: collect(policy, _ENV, shown, states, key, agent.rollout_steps))
        for _ in range(math.ceil(params.config.environment.max_episode_steps / agent.rollout_steps)):
            state = dataclasses.replace(state, env_states=play(state.env_states)[0])
        # The environment alone takes the policy's own actions, recorded once, so that
        # its episodes are like those of training.
        actions = jax.jit(jax.vmap(policy.to_action))(play(state.env_states)[1].choice)
        act = jax.jit(lambda states: _take_steps(shown, states, actions))
        learn = jax.jit(lambda state: run_seed(state, params, train_config, _UPDATES_A_CALL, _ENV))
        return cls(lambda: act(state.env_states), lambda: play(state.env_states), lambda: learn(state))


def _take_steps(params: EnvParams, states: StatisticsState, actions: BboxAction) -> Any:
    """Take given steps, and keep all that a policy or an update reads of them."""

    def keep(taken: Transition[Any]) -> Any:
        info = taken.info
        counted = jax.tree.map(jnp.sum, (info["episode_return"], info["episode_length"], info["success"]))
        return taken.observation, taken.reward, taken.done, counted, info["task_index"]

    return unroll(_ENV, params, replay_actions, states, actions, keep)
