"""What fills in the target where a task's answer is hidden: a network that predicts it, or a program search."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float32, Int8, Key, PyTree

from jaxarc.agents.answer_predictor import AnswerPredictor, Puzzle
from jaxarc.agents.ppo import TrainConfig
from jaxarc.config import JaxArcConfig, SearchConfig
from jaxarc.constants import PADDING
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.tasks.raw_task import crop_padding
from jaxarc.types import Observation, PRNGKey

if TYPE_CHECKING:
    from jaxarc.search import Question

_answers: Final[dict[bytes, np.ndarray]] = {}  # of this process: search and puzzle -> answer


class SearchedAnswers(eqx.Module):
    """Predicts the best answer of :func:`jaxarc.search.solve`, and the input again where there is no demonstration.

    Each puzzle is searched once in a process, at the first call that has it. In compiled code it is a call back to the
    host, so a program that contains it is compiled anew in each process.
    """

    seconds: float = eqx.field(static=True)  # for each search
    processes: int = eqx.field(static=True)  # that search side by side; more than 1 are spawned

    def predict(self, puzzle: Puzzle) -> Int8[Array, "B H W"]:
        """Return the best answer, a grid; what is beyond the canvas is cut."""
        shape = jax.ShapeDtypeStruct(puzzle.grid.shape, jnp.int8)
        return jax.pure_callback(self._predict, shape, *puzzle, vmap_method="broadcast_all")

    def _predict(self, *puzzle: Array) -> Int8[np.ndarray, "*B H W"]:
        from jaxarc.search import Question  # with SciPy, which most agents have no use for

        inputs, outputs, shown, grids = (np.asarray(part) for part in puzzle)
        height, width = grids.shape[-2:]
        num_pairs = shown.shape[-1]
        many = zip(
            inputs.reshape(-1, num_pairs, height, width),
            outputs.reshape(-1, num_pairs, height, width),
            shown.reshape(-1, num_pairs),
            grids.reshape(-1, height, width),
            strict=True,
        )
        questions = []
        for before, after, is_shown, grid in many:  # without padding, and only the demonstrations that are shown
            train = [(crop_padding(before[index]), crop_padding(after[index])) for index in np.flatnonzero(is_shown)]
            questions.append(Question("", 0, tuple(train), crop_padding(grid)))
        answers = np.full((len(questions), height, width), PADDING, np.int8)
        for canvas, answer in zip(answers, self.answers(questions), strict=True):
            part = answer[:height, :width]
            canvas[: part.shape[0], : part.shape[1]] = part
        return answers.reshape(grids.shape)

    def answers(
        self, questions: "Sequence[Question]", progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[Int8[np.ndarray, "h w"]]:
        """Return the best answer to each question; what was asked before is not searched again.

        Args:
            questions: of any tasks.
            progress: called with the searches that are done and all there are.
        """
        from jaxarc.search import search_all

        keys = [self._key_of(one) for one in questions]
        new = {key: one for key, one in zip(keys, questions, strict=True) if key not in _answers}
        asked = [one._replace(task_id=key.hex()) for key, one in new.items() if one.train]
        config = SearchConfig(seconds=self.seconds, answers=1)
        _answers.update((key, one.test_input) for key, one in new.items() if not one.train)
        found = search_all(asked, config, max(min(self.processes, len(asked)), 1))
        for done, (question, result) in enumerate(found, start=1):
            progress(done, len(asked))
            _answers[bytes.fromhex(question.task_id)] = result.answers[0].answer
        return [_answers[key] for key in keys]

    def _key_of(self, question: "Question") -> bytes:
        grids = [question.test_input, *(grid for pair in question.train for grid in pair)]
        text = repr((self.seconds, [grid.tolist() for grid in grids]))
        return hashlib.sha256(text.encode()).digest()


Predictor: TypeAlias = AnswerPredictor | SearchedAnswers
"""``predict`` makes the answers of a batch of puzzles."""

_ENV = ArcEnvironment()


class PredictorState(eqx.Module):
    """A predictor and the state of its optimizer, which a search has none of."""

    predictor: Predictor
    optimizer_state: PyTree[Array]

    @classmethod
    def create(cls, key: Key[Array, ""], train_config: TrainConfig) -> Self:
        """Make a fresh predictor."""
        answer = train_config.answer
        if answer.source == "searched":
            return cls(SearchedAnswers(answer.search_seconds, answer.search_processes), ())
        predictor = AnswerPredictor(key, answer.hidden_size)
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
    """Improve the predictor on fresh puzzles, drawn as episodes are; returns the mean loss, in nats per cell.

    Each device draws its share of the puzzles, and all learn from the mean of their gradients.
    """
    optimizer = _optimizer(train_config)

    def learn(predictor_state: PredictorState, key: PRNGKey) -> tuple[PredictorState, Float32[Array, ""]]:
        # The puzzles are split over the devices, the gradient is the mean over them, so
        # all devices make the same update.
        keys = shard.local_slice(jax.random.split(key, train_config.answer.batch_size))
        states, observation = jax.vmap(_ENV.reset, (0, None))(keys, params)
        cell_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, 1)
        losses = lambda predictor: jax.vmap(predictor.loss)(puzzle_of(observation), states.target_grid, cell_keys)
        mean_loss = lambda predictor: losses(predictor).mean()
        loss, gradient = shard.mean(jax.value_and_grad(mean_loss)(predictor_state.predictor))
        change, optimizer_state = optimizer.update(gradient, predictor_state.optimizer_state)
        return PredictorState(eqx.apply_updates(predictor_state.predictor, change), optimizer_state), loss

    predictor_state, losses = jax.lax.scan(
        learn, predictor_state, jax.random.split(key, train_config.answer.batches_per_update)
    )
    return predictor_state, losses.mean()


def _optimizer(train_config: TrainConfig) -> optax.GradientTransformation:
    parts = train_config.minibatches_of_update / train_config.agent.num_minibatches  # more than 1 of several canvases
    steps = round(train_config.num_updates * train_config.answer.batches_per_update * parts)
    schedule = optax.cosine_decay_schedule(train_config.answer.learning_rate, max(steps, 1))
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))


def predict_answer(predictor: Predictor | None, observation: Observation) -> Int8[Array, "B H W"] | None:
    """Predict the answers, the same at every step of an episode; None without a predictor, where they are shown.

    The observations have the keys ``input_grid`` and ``demonstrations``.
    """
    return None if predictor is None else predictor.predict(puzzle_of(observation))


def with_answer(observation: Observation, answer: Int8[Array, "*B H W"] | None) -> Observation:
    """Fill in the target that a policy edits towards; an observation that shows the answer stays as it is."""
    if answer is None:
        return observation
    return {
        "working_grid": observation["working_grid"],
        "step_count": observation["step_count"],
        "target_grid": answer,
    }


def answer_shown_config(config: JaxArcConfig) -> JaxArcConfig:
    """Return the rules by which a policy learns to edit: the same, with the answer shown."""
    return config.with_fields(reveal_target=True, include_demonstrations=False, include_input=False)


def missing_for_answer_prediction(config: JaxArcConfig) -> list[str]:
    """List what a config lacks for predicting the answer, each as one sentence; else empty."""
    wanted = {
        "observation.layout": (config.observation.layout, "dict"),
        "observation.reveal_target": (config.observation.reveal_target, False),
        "observation.include_demonstrations": (config.observation.include_demonstrations, True),
        "observation.include_input": (config.observation.include_input, True),
    }
    return [
        f"with answer.source 'predicted' or 'searched' the policy works out the answer from the demonstrations, so "
        f"{name} must be {needed!r}, got {value!r}"
        for name, (value, needed) in wanted.items()
        if value != needed
    ]
