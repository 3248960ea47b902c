"""A network that predicts a task's answer: for each cell, where its color comes from.

It never writes a color of its own: it weighs candidates (turned copies of the input, readings of its rows and columns,
the colors that a color always becomes in the demonstrations, black, outside), so all ten colors are alike to it. How
well each candidate explains the demonstrations tells it which rule is at work.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Key

from jaxarc.agents.answers.candidates import (
    NUM_COPIES,
    NUM_TABLES,
    color_tables,
    enclosed_cells,
    line_readings,
    recolored,
    symmetric_copies,
)
from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.nn.layers import Dense

_EXPLAINING: Final = NUM_COPIES + NUM_TABLES  # candidates that the demonstrations speak for or against
NUM_CANDIDATES: Final = _EXPLAINING + 2  # and black, and outside
_STATISTICS: Final = 3
_LOCAL: Final = 12  # numbers that describe a cell of the input


class Puzzle(NamedTuple):
    """What is known of the answer."""

    inputs: Int8[Array, "B P H W"]  # of the demonstrations, -1 outside
    outputs: Int8[Array, "B P H W"]
    shown: Bool[Array, "B P"]  # which slots hold a demonstration
    grid: Int8[Array, "B H W"]  # the input whose answer is wanted


class AnswerPredictor(eqx.Module):
    """From demonstrations and an input to the answer."""

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
        candidates, weights = _candidates_of(puzzle.grid, tables), self._weights(puzzle, tables)
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
        """How much each candidate counts at each cell."""
        evidence = self.choice_evidence(_evidence(puzzle, tables))
        hidden = jax.nn.silu(self.choice_cell(_describe_cells(puzzle.grid)) + evidence[:, None, None])
        hidden = jax.nn.silu(self.choice_layer(hidden))  # silu: no unit dies
        return jax.nn.softmax(self.choice_last(hidden), axis=-1)


def _candidates_of(grids: Int8[Array, "N H W"], tables: Int8[Array, "N 2 10"]) -> Int8[Array, "N K H W"]:
    """Where the colors of an answer may come from."""
    constants = [jnp.full_like(grids, constant)[:, None] for constant in (0, PADDING)]
    return jnp.concatenate(
        [symmetric_copies(grids), line_readings(grids), recolored(grids, tables), *constants], axis=1
    )


def _explained(candidates: Int8[Array, "N K H W"], answer: Int8[Array, "N H W"]) -> Float32[Array, "N H W K"]:
    """Which candidates have the color of the answer."""
    return jnp.moveaxis((candidates == answer[:, None]).astype(jnp.float32), 1, -1)


def _evidence(puzzle: Puzzle, tables: Int8[Array, "B 2 10"]) -> Float32[Array, "B E"]:
    """How well each candidate explains the demonstrations: all cells, those that change, whole grids."""
    batch, slots = puzzle.shown.shape
    flat = lambda grids: grids.reshape(batch * slots, *grids.shape[2:])
    inputs, outputs = flat(puzzle.inputs), flat(puzzle.outputs)
    candidates = _candidates_of(inputs, jnp.repeat(tables, slots, axis=0))
    explained = _explained(candidates[:, :_EXPLAINING], outputs)
    cells = ((inputs > PADDING) | (outputs > PADDING)).astype(jnp.float32)[..., None]
    changed = cells * (inputs != outputs).astype(jnp.float32)[..., None]
    mean = lambda weight: (explained * weight).sum(axis=(1, 2)) / (weight.sum(axis=(1, 2)) + 1e-6)
    whole = (mean(cells) > 0.99).astype(jnp.float32)
    statistics = jnp.concatenate([mean(cells), mean(changed), whole], axis=-1).reshape(batch, slots, -1)
    shown = puzzle.shown.astype(jnp.float32)[..., None]
    return (statistics * shown).sum(axis=1) / jnp.maximum(shown.sum(axis=1), 1)


def _describe_cells(grids: Int8[Array, "N H W"]) -> Float32[Array, "N H W 12"]:
    """Inside, black, colored, enclosed; and for each neighbor: inside, of the same color."""
    inside = grids > PADDING
    around = _neighbors(grids.astype(jnp.float32)[..., None] + 1)
    sides = [(neighbor[..., 0] > 0) for neighbor in around]
    alike = [(neighbor[..., 0] == grids.astype(jnp.float32) + 1) & inside for neighbor in around]
    parts = [inside, grids == 0, grids > 0, enclosed_cells(grids), *sides, *alike]
    return jnp.stack(parts, axis=-1).astype(jnp.float32)


def _neighbors(state: Float32[Array, "N H W C"]) -> list[Float32[Array, "N H W C"]]:
    """The state moved so that each cell sees those above, below, to the left and to the right; 0 beyond the canvas."""
    height, width = state.shape[1:3]
    padded = jnp.pad(state, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return [padded[:, y : y + height, x : x + width] for y, x in ((0, 1), (2, 1), (1, 0), (1, 2))]


def _as_grid(colors: Int8[Array, "B H W"]) -> Int8[Array, "B H W"]:
    """Make a rectangle of what may have ragged edges: as many rows and columns as hold a color; gaps are black."""
    inside = colors > PADDING
    rows, columns = inside.any(axis=2), inside.any(axis=1)
    height, width = (axis.sum(axis=1, dtype=jnp.int32)[:, None] for axis in (rows, columns))
    place = lambda count: jnp.arange(count, dtype=jnp.int32)[None]
    area = (place(colors.shape[1]) < height)[:, :, None] & (place(colors.shape[2]) < width)[:, None, :]
    return jnp.where(area, jnp.maximum(colors, jnp.int8(0)), jnp.int8(PADDING))
