"""A network that predicts the answer of a task from its demonstrations, for rules that it never saw.

It learns how to tell a rule; the rule itself is fitted anew for each task:

1. Each grid is read in many ways (``readings.py``), and each reading in two: as it is, and with the colors that its
   colors become in the other demonstrations. The few that explain the demonstrations best are the task's *sources*.
2. The score of a color at a cell is a weighted sum: of the sources that have the color there, and of features that a
   small network makes of these and of what is known of the cell.
3. The weights are those of a ridge regression on the cells of the demonstrations: they are the rule.

Training adjusts the network, and the weights from which a regression starts, so that rules fitted to three
demonstrations are right on a fourth pair. All ten colors are alike to it, and all canvases.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32, Key

from jaxarc.agents.readings import read
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.nn.layers import Dense

_PLAIN: Final = 16  # sources that are readings as they are
_RECOLORED: Final = 12  # sources that are recolored readings
_SOURCES: Final = _PLAIN + _RECOLORED
_STATISTICS: Final = 6  # of a source
_IDENTITY: Final = 12  # numbers that are learned for each source
_KINDS: Final = 3  # of colors: none, black, others
_CELLS: Final = 40  # of each grid in a loss, as neighbors say much the same
_COLORS: Final = 5  # that a loss knows, black and the commonest; more are more work, and all colors are alike
_INSIDE: Final = 1.5  # how much likelier a cell of a grid is drawn than one outside, in nats
_AT_ONCE: Final = 8  # puzzles; one of four grids of 30x30 takes about 5 MB
_OUTSIDE: Final = 0.3  # how much a cell counts outside of both grids
_SMALL: Final = 1e-3


class Puzzle(NamedTuple):
    """The visible part of a task: its demonstrations, and the input whose answer is wanted."""

    inputs: Int8[Array, "*B P H W"]  # of the demonstrations, -1 outside
    outputs: Int8[Array, "*B P H W"]
    shown: Bool[Array, "*B P"]  # slots that hold a demonstration
    grid: Int8[Array, "*B H W"]  # the input whose answer is wanted


class _Sources(NamedTuple):
    """The S readings of a task's G = P + 1 grids of N cells that explain the demonstrations best.

    The first are taken as they are; of the R others each color becomes others by a table.
    """

    colors: Int8[Array, "G S N"]
    tables: Float32[Array, "R G C C"]  # how often a color is which one in the outputs of the other demonstrations
    statistics: Float32[Array, "S 6"]
    identity: Int32[Array, " S"]  # the number of the reading; that of a recolored one comes after those of all others


class AnswerPredictor(eqx.Module):
    """From demonstrations and an input to the answer."""

    identity: Float32[Array, "I 12"]
    source_layer: Dense
    source_weights: Dense  # of each source: to all hidden units, and its first weight in a regression, and its scale
    task_layer: Dense
    cell_layer: Dense
    kind_layer: Dense
    hidden_layer: Dense
    feature_layer: Dense
    first_weights: Float32[Array, " F"]  # of features in a regression
    log_ridge: Float32[Array, ""]
    log_sharpness: Float32[Array, ""]  # of the softmax over colors
    log_change: Float32[Array, ""]  # how much more a cell counts that changes

    def __init__(self, key: Key[Array, ""], hidden_size: int):
        """Draw the weights; ``hidden_size`` is twice the number of features."""
        keys = jax.random.split(key, 8)
        reading = jax.eval_shape(read, jax.ShapeDtypeStruct((3, 3), jnp.int8))
        num_readings, num_numbers = reading.colors.shape[0], reading.cells.shape[-1]
        layer = lambda place, inputs, outputs, gain=1.0: Dense(keys[place], inputs, outputs, gain * inputs**-0.5)
        self.identity = 0.3 * jax.random.normal(keys[0], (2 * num_readings, _IDENTITY), jnp.float32)
        self.source_layer = layer(1, _IDENTITY + _STATISTICS, hidden_size)
        self.source_weights = layer(2, hidden_size, hidden_size + 2, 0.5)
        self.task_layer = layer(3, hidden_size, hidden_size, 0.5)
        self.cell_layer = layer(4, num_numbers, hidden_size)
        self.kind_layer = layer(5, _KINDS, hidden_size)
        self.hidden_layer = layer(6, hidden_size, hidden_size)
        self.feature_layer = layer(7, hidden_size, hidden_size // 2)
        self.first_weights = jnp.zeros(hidden_size // 2 + _KINDS - 1, jnp.float32)
        self.log_ridge, self.log_change = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.float32)
        self.log_sharpness = jnp.log(jnp.float32(5.0))

    def predict(self, puzzle: Puzzle) -> Int8[Array, "B H W"]:
        """Return the likeliest answers of a batch of puzzles, each a grid."""

        def likeliest(one: Puzzle) -> Int8[Array, "H W"]:
            colors = jnp.argmax(self._scores(one)[0], axis=-1).astype(jnp.int8) + jnp.int8(PADDING)
            return as_grid(colors.reshape(one.grid.shape))

        # The first puzzles again fill the last group: lax.map would compile a smaller one anew.
        count = len(puzzle.grid)
        at_once = min(_AT_ONCE, count)
        rows = (jnp.arange(-(-count // at_once) * at_once) % count).reshape(-1, at_once)
        answers = jax.lax.map(lambda some: jax.vmap(likeliest)(jax.tree.map(lambda part: part[some], puzzle)), rows)
        return answers.reshape(-1, *puzzle.grid.shape[1:])[:count]

    def loss(self, puzzle: Puzzle, answer: Int8[Array, "H W"], key: Key[Array, ""]) -> Float32[Array, ""]:
        """Return the negative log-likelihood of the answer of one puzzle, the mean over some cells.

        Args:
            puzzle: without an axis B.
            answer: what is wanted.
            key: draws the cells; those of the puzzle's rarest colors count nothing if there are many.
        """
        puzzle, answer = _with_common_colors(puzzle, answer)
        scores, cells = self._scores(puzzle, key, _COLORS)
        likelihood = jax.nn.log_softmax(scores, axis=-1) * _one_hot(answer.reshape(-1)[cells], _COLORS)
        return -likelihood.sum(axis=-1).mean()

    def _scores(
        self, puzzle: Puzzle, key: Key[Array, ""] | None = None, num_colors: int = NUM_COLORS
    ) -> tuple[Float32[Array, "n C"], Int32[Array, " n"]]:
        """Score no color and each color at cells of the answer, which come second; without a key all cells."""
        num_shown, num_cells = len(puzzle.shown), puzzle.grid.size
        flat = lambda grids: grids.reshape(len(grids), num_cells)
        before = flat(jnp.concatenate([puzzle.inputs, puzzle.grid[None]]))
        reading = jax.vmap(read)(before.reshape(-1, *puzzle.grid.shape))
        colors = reading.colors.reshape(num_shown + 1, -1, num_cells)
        sources = _find_sources(colors, before[:-1], flat(puzzle.outputs), puzzle.shown, num_colors)

        after = jnp.concatenate([flat(puzzle.outputs), before[-1:]])  # of the answer nothing is known
        inside = (before > PADDING) | (after > PADDING)
        if key is None:
            cells = jnp.broadcast_to(jnp.arange(num_cells, dtype=jnp.int32), before.shape)
        else:
            drawn = jax.random.gumbel(key, before.shape, jnp.float32) + _INSIDE * inside.astype(jnp.float32)
            cells = jax.lax.top_k(drawn, min(_CELLS, num_cells))[1]
        pick = lambda part: jnp.take_along_axis(part, cells, axis=1)
        before, after, inside = pick(before), pick(after), pick(inside)
        numbers = jnp.take_along_axis(reading.cells.reshape(num_shown + 1, num_cells, -1), cells[..., None], axis=1)

        features, first = self._features(_have_color(sources, cells, num_colors), numbers, sources)
        # Rows of a table: all colors of all cells of all grids, the wanted answer last.
        seen = num_shown * cells.shape[1] * (num_colors + 1)
        expected = features @ first
        weight = jnp.where(puzzle.shown[:, None], jnp.where(inside[:-1], 1.0, _OUTSIDE), 0.0)
        changes = (before != after)[:-1]
        share = jnp.where(changes, weight, 0.0).sum() / jnp.maximum(weight.sum(), 1.0)
        rarity = jnp.clip(share, 0.02, 1.0) ** -jax.nn.sigmoid(self.log_change)
        weight = jnp.where(changes, rarity * weight, weight)
        weight = jnp.repeat(weight.reshape(-1), num_colors + 1)
        missed = _one_hot(after[:-1], num_colors).reshape(-1) - expected[:seen]
        weighted = (features[:seen] * weight[:, None]).T
        ridge = (jnp.exp(self.log_ridge) + 0.1) * jnp.eye(len(first), dtype=jnp.float32)
        # This solver's gradient uses the factors again; that of a factorization takes thirty times as long on a CPU.
        rule = jax.scipy.linalg.solve(weighted @ features[:seen] + ridge, weighted @ missed, assume_a="pos")
        scores = expected[seen:] + features[seen:] @ rule
        return jnp.exp(self.log_sharpness) * scores.reshape(-1, num_colors + 1), cells[-1]

    def _features(
        self, have_color: Float32[Array, "G n C S"], numbers: Float32[Array, "G n f"], sources: _Sources
    ) -> tuple[Float32[Array, "GnC F"], Float32[Array, " F"]]:
        """Return the features of each color at each cell, and the weights from which a regression starts."""
        source = jnp.concatenate([self.identity[sources.identity], sources.statistics], axis=-1)
        source = jax.nn.relu(self.source_layer(source))
        weights = self.source_weights(source)
        to_hidden, first = weights[:, :-2], 0.3 * weights[:, -2]
        scale = jnp.exp(2 * jnp.tanh(weights[:, -1] / 2))
        kinds = jnp.minimum(jnp.arange(have_color.shape[2], dtype=jnp.int32), _KINDS - 1)
        kind = jax.nn.one_hot(kinds, _KINDS, dtype=jnp.float32)
        of_task = self.task_layer(source.mean(axis=0))
        about = (self.cell_layer(numbers) + of_task[None, None])[:, :, None] + self.kind_layer(kind)[None, None]
        rows = have_color.reshape(-1, _SOURCES)
        hidden = jax.nn.relu(rows @ (to_hidden * (2 * _SOURCES**-0.5)) + about.reshape(len(rows), -1))
        hidden = hidden + jax.nn.relu(self.hidden_layer(hidden))
        kinds_of_rows = jnp.broadcast_to(kind[None, None, :, :-1], (*have_color.shape[:3], _KINDS - 1)).reshape(
            len(rows), -1
        )
        features = jnp.concatenate([rows * scale[None], self.feature_layer(hidden), kinds_of_rows], axis=-1)
        return features, jnp.concatenate([first / scale, self.first_weights])


def _with_common_colors(puzzle: Puzzle, answer: Int8[Array, "H W"]) -> tuple[Puzzle, Int8[Array, "H W"]]:
    """Rename all colors but black by how common they are: if most cells are 7 and some 3, these become 1 and 2."""
    if_shown = lambda grids: jnp.where(puzzle.shown[:, None, None], grids, jnp.int8(PADDING))
    grids = Puzzle(if_shown(puzzle.inputs), if_shown(puzzle.outputs), answer, puzzle.grid)
    cells = jnp.concatenate([grid.reshape(-1) for grid in grids])
    counts = (cells[:, None] == jnp.arange(1, NUM_COLORS, dtype=jnp.int8)[None]).sum(axis=0, dtype=jnp.int32)
    rank = jnp.argsort(jnp.argsort(-counts)).astype(jnp.int8) + jnp.int8(1)
    names = jnp.concatenate([jnp.zeros(1, jnp.int8), rank, jnp.full(1, PADDING, jnp.int8)])  # of -1 the last one
    renamed = jax.tree.map(lambda grid: names[grid], grids)
    return renamed._replace(shown=puzzle.shown), renamed.shown


def _one_hot(colors: Int8[Array, "*B"], num_colors: int) -> Float32[Array, "*B C"]:
    """Mark none, or a color, by a 1 among C = ``num_colors`` + 1 numbers; further colors have no mark."""
    each = jnp.arange(PADDING, num_colors, dtype=jnp.int8).reshape(*[1] * colors.ndim, -1)
    return (colors[..., None] == each).astype(jnp.float32)


def _have_color(sources: _Sources, cells: Int32[Array, "G n"], num_colors: int) -> Float32[Array, "G n C S"]:
    """Say how surely each source has each color at some cells."""
    colors = jnp.take_along_axis(sources.colors, cells[:, None], axis=2)
    plain = _one_hot(colors[:, :_PLAIN], num_colors)
    recolored = jnp.einsum("grnc,rgcd->grnd", _one_hot(colors[:, _PLAIN:], num_colors), sources.tables)
    return jnp.moveaxis(jnp.concatenate([plain, recolored], axis=1), 1, -1)


def _find_sources(
    colors: Int8[Array, "G K N"],
    inputs: Int8[Array, "P N"],
    outputs: Int8[Array, "P N"],
    shown: Bool[Array, " P"],
    num_colors: int,
) -> _Sources:
    """Choose readings by how well they explain the demonstrations, and recolored ones by the tables of the others.

    From a reading ``1 1 2`` of one demonstration and ``1 3`` of another, with the outputs ``5 5 2`` and ``5 5``, the
    first gets the table 1 -> 5, 3 -> 5 of the second, the second 1 -> 5, 2 -> 2 of the first, and the wanted answer
    that of both.
    """
    num_readings, demonstrated = colors.shape[1], colors[:-1]
    weight = shown.astype(jnp.float32)[:, None]
    mean = lambda share: (share * weight).sum(axis=0) / jnp.maximum(weight.sum(), 1)
    least = lambda share: jnp.where(shown[:, None], share, 1.0).min(axis=0)

    # How much of the cells, of those that change, and of what the reading says other than the input, is right.
    inside = ((inputs > PADDING) | (outputs > PADDING))[:, None]
    is_right = demonstrated == outputs[:, None]
    says = (demonstrated > PADDING) & (demonstrated != inputs[:, None])
    count = lambda cells: cells.sum(axis=-1, dtype=jnp.int32).astype(jnp.float32)
    share = lambda cells: count(is_right & cells) / (count(cells) + _SMALL)
    of_all, of_changed, of_said = share(inside), share((inputs != outputs)[:, None]), share(says)
    whole = mean((of_all > 0.99).astype(jnp.float32))
    plain = [mean(of_all), least(of_all), mean(of_changed), least(of_changed), mean(of_said), whole]
    best = jax.lax.top_k(mean(of_all) + mean(of_changed) + 0.5 * mean(of_said), _PLAIN)[1]

    # How often a color of a reading stands where the output has which color: in each demonstration, and in the others.
    counted = jnp.where((inside[:, 0] & shown[:, None])[..., None], _one_hot(outputs, num_colors), 0.0)
    changed = jnp.where((inputs != outputs)[..., None], counted, 0.0)
    both = jnp.concatenate([counted, changed], axis=-1)
    both = jnp.einsum("pknc,pnd->pkcd", _one_hot(demonstrated, num_colors), both)
    counts, changes = jnp.split(both, 2, axis=-1)
    total = counts.sum(axis=0, keepdims=True)
    of_others = jnp.concatenate([total - counts, total])
    tables = of_others / jnp.maximum(of_others.sum(axis=-1, keepdims=True), 1)
    known = tables[:-1]
    likeliest = ((known == known.max(axis=-1, keepdims=True)) & (known > 0)).astype(jnp.float32)
    by_table = lambda counts, table: (counts * table).sum(axis=(-1, -2)) / (counts.sum(axis=(-1, -2)) + _SMALL)
    of_all, in_shares, of_changed = by_table(counts, likeliest), by_table(counts, known), by_table(changes, likeliest)
    whole = mean((of_all > 0.99).astype(jnp.float32))
    recolored = [mean(of_all), least(of_all), mean(in_shares), least(in_shares), whole, mean(of_changed)]
    best_tables = jax.lax.top_k(mean(of_all) + least(of_all) + mean(of_changed), _RECOLORED)[1]

    both = jnp.concatenate([best, best_tables])
    return _Sources(
        colors=colors[:, both],
        tables=jnp.moveaxis(tables[:, best_tables], 0, 1),
        statistics=jnp.concatenate([jnp.stack(plain, -1)[best], jnp.stack(recolored, -1)[best_tables]]),
        identity=jnp.concatenate([best, best_tables + num_readings]),
    )


def as_grid(colors: Int8[Array, "H W"]) -> Int8[Array, "H W"]:
    """Make a rectangle of ragged colors: as many rows and columns as hold a color; gaps are black.

    The predicted rows ``5 . 3`` and ``. . 2``, where a point is outside, become ``5 0`` and ``0 0``: two rows and two
    columns, 0 and 2, hold a color, so the grid is 2x2, and its cells are those at the top left.
    """
    inside = colors > PADDING
    height, width = (inside.any(axis=axis).sum(dtype=jnp.int32) for axis in (1, 0))
    row, column = jnp.indices(colors.shape, dtype=jnp.int32)
    return jnp.where((row < height) & (column < width), jnp.maximum(colors, jnp.int8(0)), jnp.int8(PADDING))
