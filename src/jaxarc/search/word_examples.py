"""The expert of the learned posterior: what the search finds at tasks whose answers are known, and dreamed tasks.

Of a task one output is asked, that of a test or of a demonstration that is left out. All programs that explain the
shown demonstrations share the posterior: a program that costs less has more of it, one whose answer is wrong has
little. A dreamed task is a random program on the inputs of a task, so its words are known without a search of programs.
"""

import hashlib
import io
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32

from jaxarc.config import SearchConfig
from jaxarc.errors import UsageError
from jaxarc.search.descriptions import Described, Pair, key_indices, keys_of, vocabulary_digest, word_keys
from jaxarc.search.graph import StateGraph
from jaxarc.search.rounds import Question, search_all
from jaxarc.search.solve import Found, described
from jaxarc.search.words import LARGEST, vocabulary
from jaxarc.tasks.raw_task import RawTask

_TEMPERATURE: Final = 2.0  # in cost: an image function more makes a program less likely by a factor of e
_WRONG_SHARE: Final = 0.05  # of the weight of a program whose answer is wrong
_DREAMED_COST: Final = 4  # of a dreamed program at most
_DREAMED_STATES: Final = 12_000
_DRAWN: Final = 400  # states, of which the dreams are taken
_NEAR: Final = 0.95  # share of cells that equal the input's, from which on a dream is none
_FOLDS: Final = 5


class ExpertExamplesError(UsageError, ValueError):
    """A file holds no recorded examples of this version."""


class ExpertExamples(NamedTuple):
    """Examples of the expert, one a row."""

    task_ids: np.ndarray  # [B] str
    is_dreamed: Bool[np.ndarray, " B"]
    pairs: Float32[np.ndarray, "B N d 3"]
    words: Float32[np.ndarray, "B k F"]
    is_tried: Bool[np.ndarray, "B k"]
    probs: Float32[np.ndarray, "B k"]
    accuracies: Float32[np.ndarray, " B"]  # share of the right programs' weight

    def save(self, path: str | Path) -> None:
        """Write the examples to a file, with the digest of the vocabulary."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **self._asdict(), vocabulary=np.array(vocabulary_digest()))
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> "ExpertExamples":
        """Read examples back.

        Raises:
            ExpertExamplesError: the file holds none, or they were recorded with another vocabulary.
        """
        try:
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
                digest = str(file["vocabulary"])
                recorded = cls(*(file[name] for name in cls._fields))
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ExpertExamplesError(
                f"{path} holds no recorded examples: it is no archive of their arrays; remove it, to record anew"
            ) from error
        if digest != vocabulary_digest():
            raise ExpertExamplesError(
                f"{path} was recorded with the vocabulary {digest}, and this version has {vocabulary_digest()}; remove "
                "it, to record anew"
            )
        return recorded


def fold_of(task_id: str) -> int:
    """Return in which of five folds a task is: by a hash of its id, so that it never changes."""
    return int(hashlib.sha256(task_id.encode()).hexdigest(), 16) % _FOLDS


def posterior(found: Sequence[Found], answer: np.ndarray) -> tuple[Float32[np.ndarray, " k"], float] | None:
    """Return the expert's posterior over the keys, and the share of right programs; None where no program is right.

    A program's weight is ``exp(-cost / 2)``, and a twentieth of that if its answer is wrong; its words share it. Of two
    programs of cost 4 and 6, both right, the words of the first have 73 %.
    """
    fitting = {str(one.program): one for one in found if one.fits_all and one.program is not None}
    costs = np.array([one.cost for one in fitting.values()], np.float64)
    is_right = np.array([np.array_equal(one.answer, answer) for one in fitting.values()], np.bool_)
    if not is_right.any():
        return None
    weights = np.exp((costs.min() - costs) / _TEMPERATURE) * np.where(is_right, 1.0, _WRONG_SHARE)
    weights /= weights.sum()
    probs = np.zeros(len(word_keys()))
    for weight, one in zip(weights, fitting.values(), strict=True):
        assert one.program is not None
        keys = list(keys_of(one.program.all_words) or {key_indices()["input"]})
        probs[keys] += weight / len(keys)
    return probs.astype(np.float32), float(weights[is_right].sum())


def dreams(
    random: np.random.Generator, inputs: Sequence[np.ndarray], count: int
) -> Iterator[tuple[tuple[Pair, ...], Float32[np.ndarray, " k"]]]:
    """Draw programs; yield the pairs that each makes of some inputs, and which words it has.

    The programs are states of one search, drawn so that each last word is as likely. One is kept where each output has
    two colors or more, differs from its input in more than a twentieth of the cells, and the outputs differ.
    """
    colors = sorted({int(color) for grid in inputs for color in np.unique(grid)})
    sides = [side for grid in inputs for side in grid.shape]
    frame = min(2 * max(*sides, 3), LARGEST)
    words = vocabulary(colors, colors, (), ())
    graph = StateGraph(inputs, frame, words, _DREAMED_STATES)
    graph.expand(_DREAMED_COST, time.monotonic() + 60)
    states, numbers, _ = graph.image_states
    drawn = random.integers(1, len(states), _DRAWN) if len(states) > 1 else np.zeros(0, np.int64)
    programs = [graph.program(int(states[place])) for place in drawn]
    often = Counter(words[-1] for words in programs)
    order = np.argsort(random.exponential(size=len(drawn)) * [often[words[-1]] for words in programs])
    for place in order.tolist():
        images = graph.images(numbers[drawn[place]])
        outputs = [images.grid(one).astype(np.int8) for one in range(len(images))]
        if all(map(_is_dream, inputs, outputs)) and len({one.tobytes() for one in outputs}) > 1:
            keys = list(keys_of(programs[place]))
            probs = np.zeros(len(word_keys()), np.float32)
            probs[keys] = 1 / len(keys)
            yield tuple(zip(inputs, outputs, strict=True)), probs
            count -= 1
        if count <= 0:
            break


def _is_dream(source: np.ndarray, target: np.ndarray) -> bool:
    is_like_input = source.shape == target.shape and np.mean(source == target) > _NEAR
    return len(np.unique(target)) > 1 and not is_like_input


def questions_of(tasks: Sequence[RawTask]) -> list[tuple[Question, np.ndarray]]:
    """Return what is asked of each task, with the answers: each test input, and each demonstration that is left out."""
    asked = []
    for task in tasks:
        asked += [(Question(task.task_id, 0, task.train, source), target) for source, target in task.test]
        for place, (source, target) in enumerate(task.train if len(task.train) > 2 else ()):
            rest = task.train[:place] + task.train[place + 1 :]
            asked.append((Question(task.task_id, place + 1, rest, source), target))
    return [(question, answer) for question, answer in asked if answer.size]


def record(
    tasks: Sequence[RawTask],
    config: SearchConfig,
    num_dreams: int,
    processes: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ExpertExamples:
    """Search all questions of some tasks and dream others; return the examples in which a right program was found.

    Args:
        tasks: whose answers are known.
        config: limits of each search.
        num_dreams: of each task.
        processes: that search side by side.
        progress: called with the questions that are done and all there are.
    """
    asked = questions_of(tasks)
    answers = {(one.task_id, one.test_index, one.test_input.tobytes()): answer for one, answer in asked}
    rows = []
    for done, (one, result) in enumerate(search_all([one for one, _ in asked], config, processes), start=1):
        progress(done, len(asked))
        known = posterior(result.found, answers[one.task_id, one.test_index, one.test_input.tobytes()])
        if known is not None:
            rows.append(((one.task_id, one.test_index), False, described(one.train, one.test_input), *known))
    rows.sort(key=lambda row: row[0])  # whatever process was the first
    return gathered([*((name, *rest) for (name, _), *rest in rows), *_dreams(tasks, num_dreams)])


def _dreams(tasks: Sequence[RawTask], count: int) -> Iterator[tuple[str, bool, Described, np.ndarray, float]]:
    for task in tasks if count else ():
        random = np.random.default_rng(list(task.task_id.encode()))
        for (*pairs, (asked, _)), probs in dreams(random, [source for source, _ in (*task.train, *task.test)], count):
            yield task.task_id, True, described(pairs, asked), probs, 1.0


def gathered(rows: Sequence[tuple[str, bool, Described, np.ndarray, float]]) -> ExpertExamples:
    """Stack examples; words that the search does not try at a task get no probability."""
    names, are_dreamed, seen, probs, accuracies = zip(*rows, strict=True)
    is_tried = np.stack([one.is_tried for one in seen])
    kept = np.where(is_tried, np.stack(probs), 0.0)
    kept /= np.maximum(kept.sum(1, keepdims=True), 1e-6)
    recorded = ExpertExamples(
        np.array(names),
        np.array(are_dreamed, np.bool_),
        np.stack([one.pairs for one in seen]),
        np.stack([one.words for one in seen]),
        is_tried,
        kept.astype(np.float32),
        np.array(accuracies, np.float32),
    )
    has_weight = recorded.probs.sum(1) > 0.5
    return ExpertExamples(*(array[has_weight] for array in recorded))
