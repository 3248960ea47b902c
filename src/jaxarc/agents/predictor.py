"""What fills in the target where a task's answer is hidden: a network that predicts it, or a program search.

For each cell the network says where its color comes from. It never writes a color of its own: it weighs candidates
(turned copies of the input, readings of its rows and columns, the colors that a color always becomes in the
demonstrations, black, outside), so all ten colors are alike to it. How well each candidate explains the demonstrations
shows it which rule is at work.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float32, Int8, Key, PyTree

from jaxarc.agents.edits import neighbors
from jaxarc.agents.ppo import TrainConfig
from jaxarc.config import JaxArcConfig, SearchConfig
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.nn.layers import Dense
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.tasks.raw_task import crop_padding
from jaxarc.types import Observation, PRNGKey

if TYPE_CHECKING:
    from jaxarc.search import Question

UNKNOWN: Final = -2  # a candidate's color where it has none to offer
NUM_COPIES: Final = 16  # 8 symmetries, 8 readings of lines
NUM_TABLES: Final = 2


class Puzzle(NamedTuple):
    """The visible part of a task: its demonstrations, and the input whose answer is wanted."""

    inputs: Int8[Array, "B P H W"]  # of the demonstrations, -1 outside
    outputs: Int8[Array, "B P H W"]
    shown: Bool[Array, "B P"]  # slots that hold a demonstration
    grid: Int8[Array, "B H W"]  # the input whose answer is wanted


def symmetric_copies(grids: Int8[Array, "N H W"]) -> Int8[Array, "N 8 H W"]:
    """Turn and mirror grids within their own sizes; the first copy is the grid itself.

    What does not fit a canvas that is not square is cut off.
    """
    # The four flips of a grid and the four of its transpose are all 8 symmetries. On a square canvas a
    # transposed grid of 2x5 has room for its 5 rows.
    height, width = grids.shape[1:]
    side = max(height, width)
    square = jnp.pad(grids, ((0, 0), (0, side - height), (0, side - width)), constant_values=PADDING)
    flips = [_mirror(square, *axes) for axes in ((False, False), (False, True), (True, False), (True, True))]
    copies = jnp.stack([*flips, *(jnp.swapaxes(copy, 1, 2) for copy in flips)], axis=1)
    return copies[:, :, :height, :width]


def _mirror(square: Int8[Array, "N S S"], rows: bool, columns: bool) -> Int8[Array, "N S S"]:
    """Mirror grids up-down and left-right, each anchored at its top left again."""
    # The grid turns within its own size: 2 rows on a side of 4 take the rows (2 - 1 - index) % 4 =
    # 1, 0, 3, 2, so the padding stays below.
    inside = square > PADDING
    side = square.shape[-1]
    index = jnp.arange(side, dtype=jnp.int32)[None]
    if rows:
        height = inside[:, :, 0].sum(axis=1, dtype=jnp.int32)[:, None]
        square = jnp.take_along_axis(square, ((height - 1 - index) % side)[:, :, None], axis=1)
    if columns:
        width = inside[:, 0].sum(axis=1, dtype=jnp.int32)[:, None]
        square = jnp.take_along_axis(square, ((width - 1 - index) % side)[:, None, :], axis=2)
    return square


def color_tables(
    inputs: Int8[Array, "B P H W"], outputs: Int8[Array, "B P H W"], shown: Bool[Array, "B P"]
) -> Int8[Array, "B 2 10"]:
    """Return what each color always becomes in the same cell, over all demonstrations of a task.

    The first table counts all cells, the second those that change. A color that becomes several colors, or that no
    demonstration has, is :data:`UNKNOWN`. From the input ``1 1 2`` and the output ``3 3 2`` the first table has 1 -> 3
    and 2 -> 2, the second only 1 -> 3.
    """
    return sure_colors(color_counts(inputs, outputs, shown))


def color_counts(
    inputs: Int8[Array, "B P H W"], outputs: Int8[Array, "B P H W"], shown: Bool[Array, "B P"]
) -> Float32[Array, "B 10 10"]:
    """Return the number of cells that have one color before and another after: entry [a, s] counts those from a to s.

    The counts are a product of one-hot colors, which take 80 bytes a cell.
    """
    # Only cells that are in both grids of a shown demonstration count: ``before`` is 0 for the others, and so is the
    # product. A change of color is an entry off the diagonal.
    batch = inputs.shape[0]
    both = ((inputs > PADDING) & (outputs > PADDING) & shown[..., None, None]).reshape(batch, -1, 1)
    each_color = lambda grids: jax.nn.one_hot(grids.reshape(batch, -1), NUM_COLORS, dtype=jnp.float32)
    before = each_color(inputs) * both.astype(jnp.float32)
    return jnp.einsum("bna,bns->bas", before, each_color(outputs))


def sure_colors(counts: Float32[Array, "B 10 10"]) -> Int8[Array, "B 2 10"]:
    """Return the tables of :func:`color_tables`: a color is sure where one entry of its row is the whole row's sum."""
    both_tables = jnp.stack([counts, counts * (1 - jnp.eye(NUM_COLORS, dtype=jnp.float32))[None]], axis=1)
    total = both_tables.sum(axis=-1)
    is_sure = (both_tables.max(axis=-1) == total) & (total > 0)
    return jnp.where(is_sure, jnp.argmax(both_tables, axis=-1), UNKNOWN).astype(jnp.int8)


def recolored(grids: Int8[Array, "N H W"], tables: Int8[Array, "N 2 10"]) -> Int8[Array, "N 2 H W"]:
    """Give every cell the color that each table has for it; cells outside of the grid stay outside."""
    count, height, width = grids.shape
    # A color is an index into its table; cells outside look up color 0, and ``where`` puts them back outside.
    index = jnp.broadcast_to(
        jnp.maximum(grids, 0).reshape(count, 1, -1).astype(jnp.int32), (count, NUM_TABLES, height * width)
    )
    found = jnp.take_along_axis(tables, index, axis=2).reshape(count, NUM_TABLES, height, width)
    return jnp.where(grids[:, None] > PADDING, found, jnp.int8(PADDING))


def line_readings(grids: Int8[Array, "N H W"]) -> Int8[Array, "N 8 H W"]:
    """Read the colored cells of each column and of each row, black ones left out, in one order or the other.

    A reading puts, at each cell, the color of the n-th colored cell of the line; n is the distance of the cell from an
    end of the line, and the colored cells are counted from an end. That gives four readings of columns and four of
    rows. Where the line has fewer colored cells a reading is black. The row ``0 3 0 5`` has the readings:

        counted from the left,  distance from the left   3 5 0 0    all colored cells fall to the left
        counted from the left,  distance from the right  0 0 5 3
        counted from the right, distance from the left   5 3 0 0
        counted from the right, distance from the right  0 0 3 5    all colored cells fall to the right
    """
    columns = jnp.swapaxes(_read_lines(jnp.swapaxes(grids, 1, 2)), 2, 3)
    return jnp.concatenate([columns, _read_lines(grids)], axis=1)


def enclosed_cells(grids: Int8[Array, "N H W"]) -> Bool[Array, "N H W"]:
    """Mark the black cells from which no path over black, up, down, left or right, leads to the edge of the grid.

    Black at the edge is reached; then black beside what is reached, again and again until nothing changes. In a ring of
    eight colored cells of a 3x3 grid the center stays unreached: it is enclosed.
    """
    black = grids == 0
    inside = jnp.pad(grids > PADDING, ((0, 0), (1, 1), (1, 1)))
    around = lambda mask: mask[:, :-2, 1:-1] | mask[:, 2:, 1:-1] | mask[:, 1:-1, :-2] | mask[:, 1:-1, 2:]

    # The state is the mask and the mask before it: the loop ends when a turn adds nothing.
    def spread(reached: tuple[Array, Array]) -> tuple[Array, Array]:
        before = reached[0]
        return before | (black & around(jnp.pad(before, ((0, 0), (1, 1), (1, 1))))), before

    at_edge = black & around(~inside)
    reached = jax.lax.while_loop(lambda state: jnp.any(state[0] != state[1]), spread, (at_edge, jnp.zeros_like(black)))
    return black & ~reached[0]


def _read_lines(lines: Int8[Array, "N L A"]) -> Int8[Array, "N 4 L A"]:
    inside = lines > PADDING
    colored = lines > 0
    index = jnp.arange(lines.shape[-1], dtype=jnp.int32)[None, None]
    # The row 0 3 0 5: before = 0 0 1 1 and after = 1 1 0 0 colored cells. The first reading takes for n = 0 the colored
    # cell with before = 0, which is 3, and for n = 1 the one with before = 1, which is 5: 3 5 0 0. Read at the
    # distances from the right, 3 2 1 0, it is 0 0 5 3.
    from_end = jnp.where(inside, inside.sum(axis=-1, keepdims=True, dtype=jnp.int32) - 1 - index, 0)
    before = jnp.cumsum(colored, axis=-1, dtype=jnp.int32) - colored.astype(jnp.int32)
    after = colored.sum(axis=-1, keepdims=True, dtype=jnp.int32) - before - 1
    readings = []
    for rank in (before, after):
        is_nth = (rank[..., None, :] == index[..., None]) & colored[..., None, :]
        nth = jnp.where(is_nth, lines[..., None, :], jnp.int8(0)).max(axis=-1)  # [N, L, n]
        readings += [nth, jnp.take_along_axis(nth, from_end, axis=-1)]
    return jnp.where(inside[:, None], jnp.stack(readings, axis=1), jnp.int8(PADDING))


_EXPLAINING: Final = NUM_COPIES + NUM_TABLES  # candidates that the demonstrations speak for or against
NUM_CANDIDATES: Final = _EXPLAINING + 2  # and black, and outside
_STATISTICS: Final = 3
_LOCAL: Final = 12  # numbers that describe a cell of the input


class AnswerPredictor(eqx.Module):
    """From demonstrations and an input to the answer.

    Every cell gives each candidate a weight, a softmax over all candidates, and the probability of a color is the sum
    of the weights of the candidates that have it. Where a cell gives 0.6 to the mirrored input, which is red there,
    0.3 to a recolored one and 0.1 to a turned one, which are blue there, red has 0.6 and blue 0.4.
    """

    choice_cell: Dense
    choice_evidence: Dense
    choice_layer: Dense
    choice_last: Dense

    def __init__(self, key: Key[Array, ""], hidden_size: int):
        keys = jax.random.split(key, 4)
        self.choice_cell = Dense(keys[0], _LOCAL, hidden_size)
        self.choice_evidence = Dense(keys[1], _STATISTICS * _EXPLAINING, hidden_size)
        self.choice_layer = Dense(keys[2], hidden_size, hidden_size)
        self.choice_last = Dense(keys[3], hidden_size, NUM_CANDIDATES, 0.1)

    def predict(self, puzzle: Puzzle) -> Int8[Array, "B H W"]:
        """Return the likeliest answer, a grid."""
        tables = color_tables(puzzle.inputs, puzzle.outputs, puzzle.shown)
        candidates = _candidates_of(puzzle.grid, tables)
        weights = self._weights(puzzle, tables)
        # Color by color, -1 .. 9: all eleven comparisons [B, H, W, K] at once would take eleven times the memory.
        score = lambda color: (_explained(candidates, jnp.full_like(puzzle.grid, color)) * weights).sum(axis=-1)
        likelihood = jax.lax.map(score, jnp.arange(PADDING, NUM_COLORS, dtype=jnp.int8))
        return _as_grid(jnp.argmax(likelihood, axis=0).astype(jnp.int8) + jnp.int8(PADDING))

    def loss(self, puzzle: Puzzle, answer: Int8[Array, "B H W"]) -> Float32[Array, " B"]:
        """Return the negative log-likelihood of an answer, the mean over the cells of the canvas."""
        tables = color_tables(puzzle.inputs, puzzle.outputs, puzzle.shown)
        explained = _explained(_candidates_of(puzzle.grid, tables), answer)
        likelihood = (explained * self._weights(puzzle, tables)).sum(axis=-1)
        return -jnp.log(likelihood + 1e-6).mean(axis=(1, 2))

    def _weights(self, puzzle: Puzzle, tables: Int8[Array, "B 2 10"]) -> Float32[Array, "B H W K"]:
        """Return the weight of each candidate at each cell; they add up to 1."""
        # The evidence is about the task, the description about a cell: [B, 1, 1, C] is added to [B, H, W, C]. So the
        # same rule may choose otherwise in an enclosed cell than in a black one at the edge.
        evidence = self.choice_evidence(_evidence(puzzle, tables))
        hidden = jax.nn.silu(self.choice_cell(_describe_cells(puzzle.grid)) + evidence[:, None, None])
        hidden = jax.nn.silu(self.choice_layer(hidden))  # silu: no unit dies
        return jax.nn.softmax(self.choice_last(hidden).astype(jnp.float32), axis=-1)


def _candidates_of(grids: Int8[Array, "N H W"], tables: Int8[Array, "N 2 10"]) -> Int8[Array, "N K H W"]:
    """Return all candidates for the colors of an answer, those that demonstrations can explain first."""
    constants = [jnp.full_like(grids, constant)[:, None] for constant in (0, PADDING)]
    return jnp.concatenate(
        [symmetric_copies(grids), line_readings(grids), recolored(grids, tables), *constants], axis=1
    )


def _explained(candidates: Int8[Array, "N K H W"], answer: Int8[Array, "N H W"]) -> Float32[Array, "N H W K"]:
    """Return 1 where a candidate has the color of the answer."""
    return jnp.moveaxis((candidates == answer[:, None]).astype(jnp.float32), 1, -1)


def _evidence(puzzle: Puzzle, tables: Int8[Array, "B 2 10"]) -> Float32[Array, "B E"]:
    """Return how well each candidate explains the demonstrations, the mean over them.

    Three numbers for each candidate: the share of all cells that it has right, the share of the cells that change, and
    whether it has the whole grid right. For the input ``1 2 2`` and the output ``2 2 1`` of one demonstration:

        candidate            all cells   changed cells   whole grid
        the input itself     1/3         0               0
        mirrored left-right  1           1               1
    """
    batch, slots = puzzle.shown.shape
    flat = lambda grids: grids.reshape(batch * slots, *grids.shape[2:])
    inputs = flat(puzzle.inputs)
    outputs = flat(puzzle.outputs)
    # All demonstrations side by side, [B * P, ...]. Black and outside are left out: they explain the same in any task.
    candidates = _candidates_of(inputs, jnp.repeat(tables, slots, axis=0))
    explained = _explained(candidates[:, :_EXPLAINING], outputs)
    cells = ((inputs > PADDING) | (outputs > PADDING)).astype(jnp.float32)[..., None]
    changed = cells * (inputs != outputs).astype(jnp.float32)[..., None]
    # Where no cell changes the share is 0 / 1e-6 = 0.
    mean = lambda weight: (explained * weight).sum(axis=(1, 2)) / (weight.sum(axis=(1, 2)) + 1e-6)
    whole = (mean(cells) > 0.99).astype(jnp.float32)
    statistics = jnp.concatenate([mean(cells), mean(changed), whole], axis=-1).reshape(batch, slots, -1)
    # Empty slots count neither in the sum nor in the number that it is divided by.
    shown = puzzle.shown.astype(jnp.float32)[..., None]
    return (statistics * shown).sum(axis=1) / jnp.maximum(shown.sum(axis=1), 1)


def _describe_cells(grids: Int8[Array, "N H W"]) -> Float32[Array, "N H W 12"]:
    """Describe each cell: inside, black, colored, enclosed; and for each neighbor: inside, of the same color."""
    # Beyond the canvas is the same as outside of the grid.
    inside = grids > PADDING
    around = neighbors(grids, PADDING)
    sides = [neighbor > PADDING for neighbor in around]
    alike = [(neighbor == grids) & inside for neighbor in around]
    parts = [inside, grids == 0, grids > 0, enclosed_cells(grids), *sides, *alike]
    return jnp.stack(parts, axis=-1).astype(jnp.float32)


def _as_grid(colors: Int8[Array, "B H W"]) -> Int8[Array, "B H W"]:
    """Make a rectangle of ragged colors: as many rows and columns as hold a color; gaps are black.

    The predicted rows ``5 . 3`` and ``. . 2``, where a point is outside, become ``5 0`` and ``0 0``: two rows and two
    columns, 0 and 2, hold a color, so the grid is 2x2, and its cells are those at the top left.
    """
    inside = colors > PADDING
    rows = inside.any(axis=2)
    columns = inside.any(axis=1)
    height, width = (axis.sum(axis=1, dtype=jnp.int32)[:, None] for axis in (rows, columns))
    index = lambda count: jnp.arange(count, dtype=jnp.int32)[None]
    area = (index(colors.shape[1]) < height)[:, :, None] & (index(colors.shape[2]) < width)[:, None, :]
    return jnp.where(area, jnp.maximum(colors, jnp.int8(0)), jnp.int8(PADDING))


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
        mean_loss = lambda predictor: predictor.loss(puzzle_of(observation), states.target_grid).mean()
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
