"""Levels of a game as tasks: what a run learns from, and what measures it."""

import dataclasses
import functools
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int8, UInt32

from jaxarc.agents.games.game_policy import GamePolicy
from jaxarc.agents.policy import ActorCritic
from jaxarc.agents.ppo import TrainConfig
from jaxarc.agents.updates import environment_of, make_params, make_policy, play_all
from jaxarc.config import AgentConfig, GameConfig, JaxArcConfig
from jaxarc.evaluation import TaskResults
from jaxarc.games import GameEnvironment, GameParams, GameState, GridGame, game
from jaxarc.games.engine import NOT_FINISHED, WIN
from jaxarc.games.game import ACTION_NAMES
from jaxarc.games.scoring import game_score
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.tasks import uniform_weights
from jaxarc.unroll import BatchPolicy, actor_step, unroll
from jaxarc.wrappers import AutoReset, EpisodeStatistics

_LEARNED: Final = 0  # seed of the random levels that are learned from
_UNSEEN: Final = 1  # and of those that are only measured


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class LevelParams(GameParams):
    """Levels on the device, each a set of its own, with the game of which they are."""

    rules: GridGame = dataclasses.field(metadata={"static": True})


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
        levels, weights = jnp.asarray(self.levels)[:, None], uniform_weights(len(self.task_ids))
        return LevelParams(levels=levels, max_steps=jnp.int32(self.max_steps), weights=weights, rules=self.game)


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
    env = GameEnvironment(params.rules)
    act = lambda _, seen, states: (policy.act(seen), None)
    record = lambda transition: (transition.observation, transition.action)
    states, (cells, actions) = unroll(env, params, act, _start_all(env, params), jnp.arange(num_steps), record)
    return states, jnp.concatenate([cells, env.observe(states)[None]]), actions


def _words(action: int, game: GridGame) -> str:
    """Say what an action is."""
    simple = game.simple_actions
    if action <= len(simple):
        return ACTION_NAMES[simple[action - 1]]
    row, column = divmod(int(action) - 1 - len(simple), game.shape[1])
    return f"click row {row}, column {column}"


@environment_of.register(LevelParams)
def _(params: LevelParams, agent: AgentConfig) -> EpisodeStatistics:
    return EpisodeStatistics(AutoReset(GameEnvironment(params.rules)))


@make_policy.register(LevelParams)
def _(params: LevelParams, key: Array, train_config: TrainConfig) -> GamePolicy:
    return GamePolicy.create(key, params.rules, train_config.network)


@make_params.register(LevelSet)
def _(levels: LevelSet, config: JaxArcConfig) -> LevelParams:
    return levels.params()


@play_all.register(LevelParams)
def play_levels(params: LevelParams, policy: BatchPolicy, shard: DataShard = UNSHARDED) -> TaskResults:
    """Play every level once, from its start, and return which ones were completed, and in how many actions."""
    env = GameEnvironment(params.rules)
    tasks = jnp.arange(params.levels.shape[0], dtype=jnp.int32)
    # A state that is done stays as it is.
    play_on = lambda states: actor_step(env, params, policy, states, tasks)[0]

    def goes_on(states: GameState) -> Bool[Array, ""]:
        return ((states.status == NOT_FINISHED) & (states.step_count < params.max_steps)).any()

    states = jax.lax.while_loop(goes_on, play_on, _start_all(env, params))
    return TaskResults(states.status == WIN, states.step_count)


def _start_all(env: GameEnvironment, params: LevelParams) -> GameState:
    each = dataclasses.replace(params, weights=None)  # then every level is a task
    tasks = jnp.arange(each.num_tasks, dtype=jnp.int32)
    return jax.vmap(env.reset, (None, None, 0))(jax.random.key(0), each, tasks)[0]
