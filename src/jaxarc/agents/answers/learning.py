"""How an agent learns to imagine answers: from the tasks that it practices on, whose answers are known."""

from typing import Self

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float32, Int8, Key, PyTree

from jaxarc.agents.answers.predictor import AnswerPredictor, Puzzle
from jaxarc.agents.train_config import TrainConfig
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.parallel.shards import UNSHARDED, DataShard
from jaxarc.types import Observation, PRNGKey

_ENV = ArcEnvironment()


class PredictorState(eqx.Module):
    """A predictor, and how it learns."""

    predictor: AnswerPredictor
    optimizer_state: PyTree[Array]

    @classmethod
    def create(cls, key: Key[Array, ""], train_config: TrainConfig) -> Self:
        """Start with a predictor that knows nothing."""
        predictor = AnswerPredictor(key, train_config.answer.hidden_size)
        return cls(predictor, _optimizer(train_config).init(eqx.filter(predictor, eqx.is_array)))


def puzzle_of(observation: Observation) -> Puzzle:
    """Read the puzzle off a batch of observations with ``demonstrations`` and ``input_grid`` as planes."""
    shown = observation["demonstrations"]
    return Puzzle(shown["inputs"], shown["outputs"], shown["mask"], observation["input_grid"])


def learn_answers(
    predictor_state: PredictorState,
    key: PRNGKey,
    params: EnvParams,
    train_config: TrainConfig,
    shard: DataShard = UNSHARDED,
) -> tuple[PredictorState, Float32[Array, ""]]:
    """Improve the predictor on fresh puzzles, drawn as episodes are; returns the mean loss, in nats a cell.

    Each device draws its share of the puzzles, and all learn from the mean of their gradients.
    """
    optimizer = _optimizer(train_config)

    def learn(predictor_state: PredictorState, key: PRNGKey) -> tuple[PredictorState, Float32[Array, ""]]:
        puzzle, answer = _draw_puzzles(shard.local_slice(jax.random.split(key, train_config.answer.batch_size)), params)
        mean_loss = lambda predictor: predictor.loss(puzzle, answer).mean()
        loss, gradient = shard.mean(jax.value_and_grad(mean_loss)(predictor_state.predictor))
        change, optimizer_state = optimizer.update(gradient, predictor_state.optimizer_state)
        return PredictorState(eqx.apply_updates(predictor_state.predictor, change), optimizer_state), loss

    predictor_state, losses = jax.lax.scan(
        learn, predictor_state, jax.random.split(key, train_config.answer.batches_per_update)
    )
    return predictor_state, losses.mean()


def _draw_puzzles(keys: Key[Array, " B"], params: EnvParams) -> tuple[Puzzle, Int8[Array, "B H W"]]:
    states, observation = jax.vmap(_ENV.reset, (0, None))(keys, params)
    return puzzle_of(observation), states.target_grid


def _optimizer(train_config: TrainConfig) -> optax.GradientTransformation:
    steps = train_config.num_updates * train_config.answer.batches_per_update
    schedule = optax.cosine_decay_schedule(train_config.answer.learning_rate, max(steps, 1))
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))
