"""Levels of a game as tasks: what a run learns from, what measures it, and the environment whose episodes play them."""

import dataclasses
import functools
from typing import Any, Final, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Int8, Int32, UInt32

from jaxarc.agents.games.policy import GamePolicy
from jaxarc.agents.policy import ActorCritic
from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.updates import environment_of, make_params, make_policy, play_all
from jaxarc.config import AgentConfig, GameConfig, JaxArcConfig
from jaxarc.evaluation import TaskResults
from jaxarc.games import GameEnvironment, GameParams, GameState, GridGame, game
from jaxarc.games.engine import NOT_FINISHED, OUTSIDE, WIN
from jaxarc.games.game import ACTION_NAMES, HEX_COLORS
from jaxarc.games.scoring import game_score
from jaxarc.interface import Environment, Step
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.prng import as_typed_key, from_key_data, to_randint, to_uniform
from jaxarc.spaces import Box, Discrete
from jaxarc.tasks import uniform_weights
from jaxarc.tasks.buffer import sample_task_index
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.unroll import BatchPolicy
from jaxarc.wrappers import EpisodeStatistics

_LEARNED: Final = 0  # seed of the random levels that are learned from
_UNSEEN: Final = 1  # and of those that are only measured


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LevelParams:
    """Levels on the device, with the weights by which resets draw them: a task, then one of its levels."""

    levels: UInt32[Array, "L words"]  # as jaxarc.games.engine.pack writes them; level i is of task i % T
    weights: Float32[Array, " T"]
    max_steps: Int32[Array, ""]  # of an episode
    game: GridGame = dataclasses.field(metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class LevelSet:
    """Levels of a game; each is a task, or all random ones of one difficulty are."""

    game: GridGame
    levels: UInt32[np.ndarray, "L words"]
    task_ids: tuple[str, ...]  # of T tasks; level i is of task i % T
    max_steps: int

    def __len__(self) -> int:
        return len(self.levels)

    def params(self) -> LevelParams:
        """Put the levels on the device, each task as likely as any other."""
        weights = uniform_weights(len(self.task_ids))
        return LevelParams(jnp.asarray(self.levels), weights, jnp.int32(self.max_steps), self.game)


@dataclasses.dataclass(frozen=True)
class GameLevels:
    """What a run learns from and is measured on, in the place of :class:`jaxarc.agents.TrainingPairs`."""

    train: LevelSet  # the game's own levels, and random ones of as many difficulties
    eval: LevelSet  # the game's own levels, then random ones that are not learned from
    num_train: int  # how many of ``eval`` are learned from: the game's own

    @property
    def num_evaluation(self) -> int:
        return len(self.eval) - self.num_train

    @property
    def train_ids(self) -> tuple[str, ...]:
        return self.train.task_ids

    def scores(self, solved: Bool[np.ndarray, " T"], steps: Int[np.ndarray, " T"]) -> dict[str, float]:
        """Return the official score, 0 .. 100, of one attempt at each of the game's own levels, up to the first lost.

        Args:
            solved: whether each level of ``eval`` was completed.
            steps: actions in each of them.
        """
        baselines = [level.baseline for level in self.train.game.levels]
        completed = int(np.cumprod(solved[: self.num_train]).sum())
        return {"game_score": game_score(baselines, steps[: self.num_train].tolist(), completed)}


def load_levels(config: GameConfig) -> GameLevels:
    """Read the levels of a game, and make its random ones.

    Raises:
        GameError: there is no such game, or it makes no random levels.
    """
    env = GameEnvironment(game(config.name))
    numbers = range(len(env.game.levels))
    own = LevelSet(env.game, _rows(env.make_params()), tuple(f"level/{i}" for i in numbers), config.max_steps)
    if not config.num_sets:
        return GameLevels(own, own, len(own))
    make = jax.jit(env.random_params, static_argnums=1)
    # A set of the game's own levels stands before each set of random ones, so that every task has as many levels.
    learned = np.asarray(make(jax.random.key(_LEARNED), config.num_sets).levels)
    both = np.concatenate([np.broadcast_to(own.levels, learned.shape), learned], axis=1)
    names = own.task_ids + tuple(f"random/{i}" for i in numbers)
    train = dataclasses.replace(own, levels=both.reshape(-1, both.shape[-1]), task_ids=names)
    unseen = np.concatenate([own.levels, _rows(make(jax.random.key(_UNSEEN), config.num_unseen))])
    names = own.task_ids + tuple(f"unseen/{i}/{number}" for i in range(config.num_unseen) for number in numbers)
    return GameLevels(train, dataclasses.replace(own, levels=unseen, task_ids=names), len(own))


def _rows(params: GameParams) -> UInt32[np.ndarray, "L words"]:
    return np.asarray(params.levels).reshape(-1, params.levels.shape[-1])


@final
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LevelEpisodes(Environment[GameState, Any]):
    """A game whose episodes play one level each, drawn by the weights of the params; it resets itself.

    An action is a number of :class:`jaxarc.games.GameEnvironment`. ``info`` has the keys that training reads:
    ``success``, ``task_index`` and ``final_observation`` beside those of the game.
    """

    game: GridGame = dataclasses.field(metadata={"static": True})

    def reset(
        self,
        key: PRNGKey,
        params: Any,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[GameState, Observation]:
        """Start a level, drawn if none is given; there are no pairs."""
        key_task, key_start = jax.random.split(as_typed_key(key))
        word_task, word_level = jax.random.key_data(key_task)
        if task_index is None:
            task_index = sample_task_index(to_uniform(word_task), params.weights)
        num_levels, num_tasks = params.levels.shape[0], params.weights.shape[0]
        level = to_randint(word_level, jnp.int32(num_levels // num_tasks)) * num_tasks + task_index
        return self._env.reset(key_start, _one_level_a_set(params), level)

    def reset_next(self, state: GameState, params: Any) -> tuple[GameState, Observation]:
        return self.reset(from_key_data(state.key), params)

    def step(self, state: GameState, action: Any, params: Any) -> Step[GameState]:
        """Take an action, and start the next level where the episode ended."""
        ended, observation, reward, done, info = self._env.step(state, action, _one_level_a_set(params))
        fresh, _ = self.reset_next(ended, params)
        after = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, ended)
        task_index = ended.set_index % params.weights.shape[0]
        about = {"success": ended.status == WIN, "task_index": task_index, "final_observation": observation}
        return after, self.observe(after, params), reward, done, {**info, **about}

    def observe(self, state: GameState, params: Any) -> Observation:
        """Show a state, or a batch of states."""
        observe = self._env.observe
        for _ in range(state.status.ndim):
            observe = jax.vmap(observe)
        return observe(state)

    def info(self, state: GameState, params: Any) -> Info:
        terminated = state.status != NOT_FINISHED
        return {"terminated": terminated, "truncated": ~terminated & (state.step_count >= params.max_steps)}

    def action_space(self, params: Any) -> Discrete:
        return Discrete(self._env.num_actions)

    def observation_space(self, params: Any) -> Box:
        return Box(OUTSIDE, len(HEX_COLORS) - 1, self.game.shape, jnp.int8)

    @property
    def _env(self) -> GameEnvironment:
        return GameEnvironment(self.game)


def _one_level_a_set(params: LevelParams) -> GameParams:
    return GameParams(params.levels[:, None], params.max_steps)


class RecordedLevel(NamedTuple):
    """A level as an agent played it."""

    task_id: str
    completed: bool
    cells: Int8[np.ndarray, "S+1 H W"]  # before each action, and at the end
    actions: list[str]  # in words


def record_levels(policy: ActorCritic, levels: LevelSet) -> list[RecordedLevel]:
    """Play every level once by the likeliest actions, as :func:`play_levels` does, and keep what was seen and done."""
    states, cells, actions = _record(policy, levels.params(), levels.max_steps)
    counts, wins = np.asarray(states.step_count).tolist(), np.asarray(states.status == WIN).tolist()
    cells, actions = np.asarray(cells), np.asarray(actions)
    return [
        RecordedLevel(
            name, won, cells[: count + 1, index], [_words(one, levels.game) for one in actions[:count, index]]
        )
        for index, (name, won, count) in enumerate(zip(levels.task_ids, wins, counts, strict=True))
    ]


@functools.partial(jax.jit, static_argnums=2)
def _record(policy: ActorCritic, params: LevelParams, num_steps: int) -> tuple[GameState, Array, Array]:
    env, levels = GameEnvironment(params.game), _one_level_a_set(params)

    def step(states: GameState, _: None) -> Any:
        seen = jax.vmap(env.observe)(states)
        actions = policy.act(seen)
        return jax.vmap(env.step, (0, 0, None))(states, actions, levels)[0], (seen, actions)

    states = _start_all(env, levels)
    states, (cells, actions) = jax.lax.scan(step, states, None, num_steps)
    return states, jnp.concatenate([cells, jax.vmap(env.observe)(states)[None]]), actions


def _words(action: int, game: GridGame) -> str:
    """Say what an action is."""
    simple = game.simple_actions
    if action <= len(simple):
        return ACTION_NAMES[simple[action - 1]]
    row, column = divmod(int(action) - 1 - len(simple), game.shape[1])
    return f"click row {row}, column {column}"


@environment_of.register(LevelParams)
def _(params: LevelParams, agent: AgentConfig) -> EpisodeStatistics:
    return EpisodeStatistics(LevelEpisodes(params.game))


@make_policy.register(LevelParams)
def _(params: LevelParams, key: Array, train_config: TrainConfig) -> GamePolicy:
    return GamePolicy.create(key, params.game, train_config.network)


@make_params.register(LevelSet)
def _(levels: LevelSet, config: JaxArcConfig) -> LevelParams:
    return levels.params()


@play_all.register(LevelParams)
def play_levels(params: LevelParams, policy: BatchPolicy, shard: DataShard = UNSHARDED) -> TaskResults:
    """Play every level once, from its start, and return which ones were completed, and in how many actions."""
    env = GameEnvironment(params.game)
    levels = _one_level_a_set(params)
    tasks = jnp.arange(params.levels.shape[0], dtype=jnp.int32)

    def play_on(states: GameState) -> GameState:
        action: Any = policy(tasks, jax.vmap(env.observe)(states), states)[0]
        # A state that is done stays as it is.
        return jax.vmap(env.step, (0, 0, None))(states, action, levels)[0]

    def goes_on(states: GameState) -> Bool[Array, ""]:
        return ((states.status == NOT_FINISHED) & (states.step_count < params.max_steps)).any()

    states = jax.lax.while_loop(goes_on, play_on, _start_all(env, levels))
    return TaskResults(states.status == WIN, states.step_count)


def _start_all(env: GameEnvironment, levels: GameParams) -> GameState:
    tasks = jnp.arange(levels.levels.shape[0], dtype=jnp.int32)
    return jax.vmap(env.reset, (None, None, 0))(jax.random.key(0), levels, tasks)[0]
