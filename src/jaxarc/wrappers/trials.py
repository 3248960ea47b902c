"""Several trials in one episode: on demonstrations, with rewards, and then on a test, as in learning to learn."""

import dataclasses
from typing import Final, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int32, UInt32

from jaxarc.envs.environment import Action
from jaxarc.envs.observations import add_number, add_number_space
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.interface import Environment, Step, compiled_step, with_next_info
from jaxarc.primitives import vary_like
from jaxarc.prng import as_typed_key, from_key_data, random_bits, to_randint
from jaxarc.rows import reset_where
from jaxarc.spaces import Space
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.wrappers.wrapper import Wrapper


class TrialsState(eqx.Module):
    """The wrapped environment's state in the current trial, and which trial it is."""

    env_state: ArcEnvState
    trial_index: Int32[Array, "*B"]  # 0 .. num_trials; the last one is played on a test
    episode_key: UInt32[Array, "*B words"]  # what each trial is reset with, so that all play the same task


@final
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Trials(Wrapper[TrialsState]):
    """An episode of ``episode.num_trials`` trials on demonstrations, one after the other, and one on a test.

    Needs ``episode.mode="trials"``. Trial ``k`` starts from the input of demonstration ``k``, again from the first when
    there are fewer; all trials play the same task under the same augmentation. A trial ends as an episode does, with
    its submits or after ``max_episode_steps`` steps, and the step that ends it returns the start of the next one. Only
    the last trial ends the episode. Its rewards and its info are those of test mode: its target is hidden.

    ``info`` is about the trial that was played, with ``trial_index`` and ``trial_done``. Observations have the
    entry ``trial_index``. Wrap it directly around the environment, and auto-reset around it.
    """

    env: Environment[ArcEnvState, EnvParams]

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[TrialsState, Observation]:
        """Start the first trial.

        Raises:
            ValueError: a pair is given, or the mode is not ``"trials"``.
        """
        _require_trials(params)
        if pair_index is not None:
            raise ValueError(f"trials go through the pairs themselves, got pair_index={pair_index}; leave it out")
        env_state, observation = self.env.reset(key, params, task_index, 0)
        words = jax.random.key_data(as_typed_key(key))
        (first,) = vary_like((jnp.int32(0),), words)
        return TrialsState(env_state, first, words), _with_trial(observation, first, params)

    def reset_next(self, state: TrialsState, params: EnvParams) -> tuple[TrialsState, Observation]:
        # The key that the inner environment is about to use; every later trial is reset with it, and so plays the same
        # task under the same augmentation.
        words = state.env_state.key
        env_state, observation = self.env.reset_next(state.env_state, params)
        first = jnp.zeros_like(state.trial_index)
        return TrialsState(env_state, first, words), _with_trial(observation, first, params)

    def step(self, state: TrialsState, action: Action, params: EnvParams) -> Step[TrialsState]:
        _require_trials(params)
        return _step(self.env, state, action, params)

    def observe(self, state: TrialsState, params: EnvParams) -> Observation:
        return _with_trial(self.env.observe(state.env_state, params), state.trial_index, params)

    def info(self, state: TrialsState, params: EnvParams) -> Info:
        info = self.env.info(state.env_state, params)
        return _trial_info(info, state.trial_index, jnp.zeros_like(info["terminated"]), params)

    def observation_space(self, params: EnvParams) -> Space:
        space = self.env.observation_space(params)
        return add_number_space(space, "trial_index", params.config.episode.num_trials, params.config)


@compiled_step
def _step(
    env: Environment[ArcEnvState, EnvParams], state: TrialsState, action: Action, params: EnvParams
) -> Step[TrialsState]:
    # With 2 demonstrations and num_trials 2 the trials are 0, 1 and the test, 2. A step that ends trial 0 or 1 starts
    # the next one at once, on the same task and with the same key; only the end of trial 2 ends the episode.
    env_state, _, reward, trial_done, info = env.step(state.env_state, action, params)
    is_last = state.trial_index >= params.config.episode.num_trials
    goes_on = trial_done & ~is_last
    played = TrialsState(env_state, state.trial_index, state.episode_key)

    def next_trial(played: TrialsState, _: tuple[()], params: EnvParams) -> TrialsState:
        trial = played.trial_index + 1
        task = played.env_state.task_index
        pair = _pair_of(trial, task, played.episode_key, params)
        return TrialsState(env.reset(played.episode_key, params, task, pair)[0], trial, played.episode_key)

    after = reset_where(goes_on, next_trial, played, (), params)
    observation = _with_trial(env.observe(after.env_state, params), after.trial_index, params)
    info = with_next_info(env, info, after.env_state, params)
    return after, observation, reward, trial_done & is_last, _trial_info(info, state.trial_index, trial_done, params)


def _pair_of(
    trial: Int32[Array, ""], task_index: Int32[Array, ""], words: UInt32[Array, " words"], params: EnvParams
) -> Int32[Array, ""]:
    """Index of the pair of a trial among demonstrations and tests, one after the other."""
    episode = params.config.episode
    num_train = params.tasks.num_train_of(task_index)
    num_test = params.tasks.num_test_of(task_index)
    # Pairs are demonstrations, then tests. With 3 demonstrations and num_trials 5 the trials play the pairs 0 1 2 0 1,
    # and then a test, pair 3 or a later one.
    test = jnp.int32(0)
    if episode.test_selection == "random":
        test = to_randint(random_bits(from_key_data(words), _TEST_WORD + 1)[_TEST_WORD], num_test)
    return jnp.where(trial < episode.num_trials, trial % num_train, num_train + test)


_TEST_WORD: Final = 7  # a reset uses the words before it


def _with_trial(observation: Observation, trial_index: Int32[Array, "*B"], params: EnvParams) -> Observation:
    return add_number(observation, "trial_index", trial_index, params.config.episode.num_trials, params.config)


def _trial_info(info: Info, trial_index: Int32[Array, "*B"], trial_done: Array, params: EnvParams) -> Info:
    is_last = trial_index >= params.config.episode.num_trials
    return {
        **info,
        "terminated": info["terminated"] & is_last,
        "truncated": info["truncated"] & is_last,
        "discount": jnp.where(is_last, info["discount"], jnp.float32(1)),
        "trial_index": trial_index,
        "trial_done": trial_done,
    }


def _require_trials(params: EnvParams) -> None:
    mode = params.config.episode.mode
    if mode != "trials":
        raise ValueError(f"Trials needs episode.mode='trials', got {mode!r}; make the params with mode='trials'")
