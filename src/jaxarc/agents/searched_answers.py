"""Answers of a program search on the host, in the place of those of a trained predictor."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int8

from jaxarc.agents.puzzles import Puzzle
from jaxarc.config import SearchConfig
from jaxarc.constants import PADDING
from jaxarc.search import Question, search_all
from jaxarc.tasks.raw_task import crop_padding

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
        questions = [_question(*one) for one in many]
        answers = np.full((len(questions), height, width), PADDING, np.int8)
        for canvas, answer in zip(answers, self.answers(questions), strict=True):
            part = answer[:height, :width]
            canvas[: part.shape[0], : part.shape[1]] = part
        return answers.reshape(grids.shape)

    def answers(
        self, questions: Sequence[Question], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[Int8[np.ndarray, "h w"]]:
        """Return the best answer to each question; what was asked before is not searched again.

        Args:
            questions: of any tasks.
            progress: called with the searches that are done and all there are.
        """
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

    def _key_of(self, question: Question) -> bytes:
        grids = [question.test_input, *(grid for pair in question.train for grid in pair)]
        text = repr((self.seconds, [grid.tolist() for grid in grids]))
        return hashlib.sha256(text.encode()).digest()


def _question(inputs: np.ndarray, outputs: np.ndarray, shown: np.ndarray, grid: np.ndarray) -> Question:
    """Make a question of a puzzle: grids without padding, and only the demonstrations that are shown."""
    train = [(crop_padding(inputs[index]), crop_padding(outputs[index])) for index in np.flatnonzero(shown)]
    return Question("", 0, tuple(train), crop_padding(grid))
