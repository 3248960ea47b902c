"""A policy for games of cells: it sees the colors of a level, and gives logits for actions and cells."""

import functools
from typing import Final, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32, Key

from jaxarc.agents.edits import neighbors
from jaxarc.agents.policy import ActorCritic, CategoricalSample, PolicyOutput, Sampler, draw, likeliest
from jaxarc.config import NetworkConfig
from jaxarc.games import GridGame
from jaxarc.games.engine import OUTSIDE
from jaxarc.nn.layers import Dense
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.types import Observation, PRNGKey

_COLORS: Final = 16
_WIDE: Final = 128  # hidden units that see the whole level
_SMALL: Final = 0.01  # scale of last layers: a fresh policy is nearly uniform


class LevelFeatures(NamedTuple):
    cells: Float32[Array, "B HW C"]
    whole: Float32[Array, "B wide"]
    inside: Bool[Array, "B HW"]


class GamePolicy(ActorCritic):
    """Chooses among a game's simple actions and clicks; RESET is left to the player of the game.

    A choice is an index: the simple actions in order, then H * W cells where the game takes clicks. Two dense layers
    see the whole level; where it has one player, shifted so that the player is in the middle. Logits of clicks are also
    those of layers on each cell and its four neighbors.
    """

    colors: Dense
    layers: tuple[Dense, ...]
    dense: tuple[Dense, Dense]
    simple_layer: Dense
    click_layers: tuple[Dense, Dense]  # from the whole level, and from each cell
    value_layer: Dense
    game: GridGame = eqx.field(static=True)

    @classmethod
    def create(cls, key: Key[Array, ""], game: GridGame, config: NetworkConfig) -> Self:
        """Make a fresh policy of a game."""
        keys = iter(jax.random.split(key, 7 + config.num_layers))
        size, (height, width) = config.hidden_size, game.shape
        seen = size * ((2 * height - 1) * (2 * width - 1) if _has_player(game) else height * width)
        return cls(
            colors=Dense(next(keys), _COLORS + 1, size, 1.0),
            layers=tuple(Dense(next(keys), 5 * size, size) for _ in range(config.num_layers - 1)),
            dense=(Dense(next(keys), seen, _WIDE, seen**-0.5), Dense(next(keys), _WIDE, _WIDE, _WIDE**-0.5)),
            simple_layer=Dense(next(keys), _WIDE, max(1, len(game.simple_actions)), _SMALL),
            click_layers=(Dense(next(keys), _WIDE, height * width, _SMALL), Dense(next(keys), size, 1, _SMALL)),
            value_layer=Dense(next(keys), _WIDE, 1, _SMALL),
            game=game,
        )

    def sample(self, key: PRNGKey, observation: Observation, shard: DataShard = UNSHARDED) -> PolicyOutput:
        batch = observation.shape[0] * shard.count
        uniform = shard.local_slice(jax.random.uniform(key, (batch,), jnp.float32))
        return self._decide(observation, lambda _, logits, allowed: draw(uniform, logits, allowed))

    def greedy(self, observation: Observation) -> Int32[Array, " B"]:
        """Return the likeliest choices."""
        return self._decide(observation, likeliest).choice

    def act(self, observation: Observation) -> Int32[Array, " B"]:
        return self.to_action(self.greedy(observation))

    def evaluate(self, observation: Observation, choice: Int32[Array, " B"]) -> PolicyOutput:
        return self._decide(observation, lambda *_: choice)

    def value(self, observation: Observation) -> Float32[Array, " B"]:
        return self.value_layer(self._encode(observation).whole)[:, 0]

    def to_action(self, choice: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        """Return the game's action of a choice; its action 0 is RESET."""
        return choice + 1

    def _encode(self, cells: Observation) -> LevelFeatures:
        batch = len(cells)
        features = self._colored(cells)
        for layer in self.layers:
            features = features + jax.nn.relu(layer(jnp.concatenate([features, *_beside(features)], -1)))
        seen = self._colored(_around(cells, self.game)) if _has_player(self.game) else features
        first, second = self.dense
        whole = jnp.tanh(second(jnp.tanh(first(seen.reshape(batch, -1)))))
        inside = (cells != OUTSIDE).reshape(batch, -1)
        return LevelFeatures(features.reshape(batch, inside.shape[1], -1), whole, inside)

    def _colored(self, cells: Observation) -> Float32[Array, "B H W C"]:
        """Describe each cell; what is background or far outside is 0, so that a dense layer sums over few cells."""
        inside = cells != OUTSIDE
        beside = functools.reduce(jnp.logical_or, neighbors(inside, fill=False))
        shown = jnp.where(inside, cells != self.game.background, beside)
        features = jax.nn.relu(self.colors(jax.nn.one_hot(cells + 1, _COLORS + 1, dtype=jnp.float32)))
        return jnp.where(shown[..., None], features, 0)

    def _decide(self, observation: Observation, sampler: Sampler) -> PolicyOutput:
        features = self._encode(observation)
        logits = self.simple_layer(features.whole)[:, : len(self.game.simple_actions)]
        allowed = jnp.ones(logits.shape, jnp.bool_)
        if self.game.clicks:
            whole, cell = self.click_layers
            clicks = whole(features.whole) + cell(features.cells)[..., 0]
            logits = jnp.concatenate([logits, clicks], 1)
            allowed = jnp.concatenate([allowed, features.inside], 1)
        choice = CategoricalSample.make(0, sampler, logits, allowed)
        value = self.value_layer(features.whole)[:, 0]
        return PolicyOutput(choice.chosen, choice.log_prob, choice.entropy, value)


def _has_player(game: GridGame) -> bool:
    return "player" in game.single


def _around(cells: Int8[Array, "B H W"], game: GridGame) -> Int8[Array, "B 2H-1 2W-1"]:
    """Shift a level so that the player is in the middle, with -1 beside the level."""
    height, width = game.shape
    place = jnp.argmax((cells == game.layers["player"]).reshape(len(cells), -1), axis=1)
    padded = jnp.pad(cells, ((0, 0), (height - 1,) * 2, (width - 1,) * 2), constant_values=OUTSIDE)

    def cut(cells: Array, place: Array) -> Array:
        return jax.lax.dynamic_slice(cells, (place // width, place % width), (2 * height - 1, 2 * width - 1))

    return jax.vmap(cut)(padded, place)


def _beside(features: Float32[Array, "B H W C"]) -> list[Float32[Array, "B H W C"]]:
    """Return the features of the cells above, below, to the left, to the right; 0 beside the array."""
    height, width = features.shape[1:3]
    padded = jnp.pad(features, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return [padded[:, y : y + height, x : x + width] for y, x in ((0, 1), (2, 1), (1, 0), (1, 2))]
