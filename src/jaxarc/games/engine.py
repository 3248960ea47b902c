"""The engine: levels, RESET, WIN and GAME_OVER, budgets, undo, frames. A game says only its rule.

The contract is ARC-AGI-3's, as its engine has it: an action that is not available is counted and changes nothing; after
WIN and GAME_OVER only RESET does something; RESET starts the level again, and the whole game if no action was taken in
the level or the game is won; the last level completed is WIN.
"""

import dataclasses
import functools
from typing import Any, Final, Literal, TypeAlias, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Int8, Int32, UInt32

from jaxarc.device_arrays import with_own_arrays
from jaxarc.games import bits
from jaxarc.games.bits import Mask
from jaxarc.games.game import CLICK, UNDO, Action, Board, GameError, GridGame
from jaxarc.prng import as_typed_key, split_words, to_randint
from jaxarc.types import Info, PRNGKey

NOT_FINISHED: Final = 0
WIN: Final = 1
GAME_OVER: Final = 2
RESET: Final = 0
FRAME_SIDE: Final = 64
LETTERBOX: Final = 5
BAR_COLORS: Final = (11, 3)  # of the actions that are left, and of those that are spent
UNDO_DEPTH: Final = 16
OUTSIDE: Final = -1  # color of cells beside the level
DEFAULT_MAX_STEPS: Final = 1000


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GameParams:
    """The levels that are played. A game has one set of them; random levels come in many sets, made beforehand.

    A level is a row of words, see :func:`pack`, so that one gather fetches it.
    """

    levels: UInt32[Array, "P N words"]  # P sets of N levels; an episode plays one set
    max_steps: Int32[Array, ""]  # an episode is truncated after so many steps, RESET counted


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GameState:
    """The state of one game."""

    board: Board
    set_index: Int32[Array, ""]  # 0 .. P - 1
    levels_completed: Int32[Array, ""]  # 0 .. N
    status: Int32[Array, ""]  # NOT_FINISHED, WIN or GAME_OVER
    action_count: Int32[Array, ""]  # actions since the level began or was reset, RESET not counted
    budget: Int32[Array, ""]  # of the level; 0: no limit
    step_count: Int32[Array, ""]  # of the episode, RESET counted
    spent: Int32[
        Array, " N"
    ]  # actions in each level, as the score counts them: with RESET of a level, from 0 with one of all
    key: UInt32[Array, "2"]  # for the next episode
    history: dict[str, UInt32[Array, "depth H"]]  # boards before the last actions, latest first; what undo takes back
    history_size: Int32[Array, ""]  # 0 .. UNDO_DEPTH


Observation: TypeAlias = Int8[Array, "H W"]
GameStep: TypeAlias = tuple[GameState, Observation, Float32[Array, ""], Bool[Array, ""], Info]


@final
@dataclasses.dataclass(frozen=True)
class GameEnvironment:
    """A game as a Markov decision process, of the shape of :class:`jaxarc.ArcEnvironment`; every method is pure.

    Class data sheet:
        state: :class:`GameState`, some hundred bytes at 16x16.
        observation: ``"cells"`` int8[H, W], colors 0..15 and -1 beside the level; ``"frame"`` int8[64, 64].
        action: a number: 0 RESET, then the game's simple actions in order, then H * W cells, row by row, if the game
            takes clicks.
        reward: 1 for each level completed.
        done: WIN, GAME_OVER or ``params.max_steps`` steps.
        auto-reset: ``step_and_reset``.

    Example::

        env, params = jaxarc.games.make("crates")
        state, observation = env.reset(jax.random.key(0), params)
        state, observation, reward, done, info = env.step(state, 4, params)  # right

    Source: the contract is that of ``arcengine`` 0.9.3; ``docs/games.md``.
    """

    game: GridGame
    observation: Literal["cells", "frame"] = "cells"

    def __post_init__(self) -> None:
        if self.observation not in ("cells", "frame"):
            raise GameError(f"an observation is 'cells' or 'frame', got {self.observation!r}")

    @property
    def name(self) -> str:
        """``games/`` and the game's name."""
        return f"games/{self.game.name}"

    @property
    def num_actions(self) -> int:
        """How many actions there are, RESET counted."""
        height, width = self.game.shape
        return 1 + len(self.game.simple_actions) + (height * width if self.game.clicks else 0)

    def make_params(self, max_steps: int = DEFAULT_MAX_STEPS) -> GameParams:
        """Return the params of the game's own levels."""
        packed = [pack(self.game.board(index), level.budget, self.game) for index, level in enumerate(self.game.levels)]
        return GameParams(jnp.stack(packed)[None], jnp.int32(max_steps))

    def random_params(self, key: PRNGKey, num_sets: int, max_steps: int = DEFAULT_MAX_STEPS) -> GameParams:
        """Make sets of random levels of rising difficulty, on the device; under ``jit`` both numbers are static.

        Raises:
            GameError: the game makes no levels.
        """
        generate = self.game.generate
        if generate is None:
            raise GameError(f"game {self.game.name!r} makes no random levels; take make_params()")
        difficulties = jnp.arange(len(self.game.levels))
        keys = jax.random.split(as_typed_key(key), (num_sets, len(self.game.levels)))
        make = lambda key, difficulty: pack(generate(key, difficulty), 0, self.game)
        return GameParams(jax.vmap(jax.vmap(make), (0, None))(keys, difficulties), jnp.int32(max_steps))

    @with_own_arrays
    @functools.partial(jax.jit, static_argnums=0)
    def reset(
        self, key: PRNGKey, params: GameParams, set_index: Int[Array, ""] | int | None = None
    ) -> tuple[GameState, Observation]:
        """Start an episode at the first level of a set, drawn if none is given; equal keys give equal episodes."""
        state = self._start(jax.random.key_data(as_typed_key(key)), params, set_index)
        return state, self.observe(state)

    @with_own_arrays
    @functools.partial(jax.jit, static_argnums=0)
    def step(self, state: GameState, action: Int[Array, ""] | int, params: GameParams) -> GameStep:
        """Take an action; a state that is done stays as it is, with reward 0, but for RESET after WIN or GAME_OVER.

        Returns:
            state, observation, reward (float32[]), done (bool[]) and info: ``terminated``, ``truncated`` and
            ``invalid_action`` (bool: there is no such action or cell; it is counted and changes nothing), ``level``
            (0 .. N - 1), ``levels_completed``, ``step_count`` and ``actions_left`` (int32; -1 without a budget).
        """
        after, _, reward, info = self.play(state, action, params)
        return after, self.observe(after), reward, info["terminated"] | info["truncated"], info

    @with_own_arrays
    @functools.partial(jax.jit, static_argnums=0)
    def step_and_reset(self, state: GameState, action: Int[Array, ""] | int, params: GameParams) -> GameStep:
        """Take one step, and start the next episode where it ended.

        ``info["final_observation"]`` is the observation before any reset, on every step.
        """
        after, _, reward, info = self.play(state, action, params)
        done = info["terminated"] | info["truncated"]
        fresh = _select(done, self._start(after.key, params), after)
        info["final_observation"] = self.observe(after)
        return fresh, self.observe(fresh), reward, done, info

    def observe(self, state: GameState) -> Observation:
        """Show a state as ``reset`` and ``step`` do."""
        if self.observation == "frame":
            return self.frame(state)
        return self.cells(state.board)

    def cells(self, board: Board) -> Int8[Array, "H W"]:
        """Return the color of each cell, -1 beside the level."""
        width = self.game.shape[1]
        cells = jnp.where(bits.to_bool(board.inside, width), jnp.int8(self.game.background), jnp.int8(OUTSIDE))
        for mask, color in self.game.colored(board):
            cells = jnp.where(bits.to_bool(mask & board.inside, width), jnp.int8(color), cells)
        return cells

    @with_own_arrays
    @functools.partial(jax.jit, static_argnums=0)
    def frame(self, state: GameState) -> Int8[Array, "64 64"]:
        """Draw a state as ARC-AGI-3's camera does: the largest integer scale, centered, letterbox of color 5.

        Where the level has a budget, the last row is a bar of the actions that are left.
        """
        scale, top, start = _camera(state.board.inside)
        cells = self.cells(state.board)
        height, width = cells.shape
        rows = (jnp.arange(FRAME_SIDE) - top) // scale
        columns = (jnp.arange(FRAME_SIDE) - start) // scale
        seen = cells[jnp.clip(rows, 0, height - 1)][:, jnp.clip(columns, 0, width - 1)]
        exists = ((rows >= 0) & (rows < height))[:, None] & ((columns >= 0) & (columns < width))[None]
        frame = jnp.where(exists & (seen != OUTSIDE), seen, jnp.int8(LETTERBOX))
        left = jnp.maximum(state.budget - state.action_count, 0) * FRAME_SIDE // jnp.maximum(state.budget, 1)
        bar = jnp.where(jnp.arange(FRAME_SIDE) < left, *(jnp.int8(color) for color in BAR_COLORS))
        return frame.at[-1].set(jnp.where(state.budget > 0, bar, frame[-1]))

    def action_of(
        self, number: Int[Array, ""] | int, state: GameState, x: Int[Array, ""] | int = 0, y: Int[Array, ""] | int = 0
    ) -> Int32[Array, ""]:
        """Return the action of one of ARC-AGI-3's numbers 0 .. 7; 6 is a click on the frame's cell x, y.

        Returns:
            ``num_actions``, which is no action, where the game has no such action or the click is in the letterbox.
        """
        action = jnp.int32(self.num_actions)
        simple = (RESET, *self.game.simple_actions)
        for index, one in enumerate(simple):
            action = jnp.where(jnp.asarray(number) == one, index, action)
        if not self.game.clicks:
            return action
        scale, top, start = _camera(state.board.inside)
        row, column = (y - top) // scale, (x - start) // scale
        height, width = _size(state.board.inside)
        exists = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (jnp.asarray(number) == CLICK)
        return jnp.where(exists, len(simple) + row * self.game.shape[1] + column, action).astype(jnp.int32)

    def action_mask(self, state: GameState) -> Bool[Array, " num_actions"]:
        """Return which actions exist in a level: the game's own, and clicks on its cells."""
        simple = jnp.ones(1 + len(self.game.simple_actions), bool)
        if not self.game.clicks:
            return simple
        return jnp.concatenate([simple, bits.to_bool(state.board.inside, self.game.shape[1]).ravel()])

    def decode(self, action: Int[Array, ""] | int, inside: Mask) -> tuple[Action, Bool[Array, ""]]:
        """Return what a rule gets of an action, and whether there is such an action in the level."""
        action = jnp.asarray(action, jnp.int32)
        number = jnp.int32(0)
        for index, simple in enumerate(self.game.simple_actions, start=1):
            number = jnp.where(action == index, simple, number)
        height, width = self.game.shape
        nothing = jnp.zeros_like(inside)
        if not self.game.clicks:
            return Action(number, nothing), number > 0
        index = action - 1 - len(self.game.simple_actions)
        is_click = (index >= 0) & (index < height * width)
        cell = bits.cell(index // width, index % width, height) & inside & bits.where(is_click, ~nothing)
        return Action(jnp.where(is_click, CLICK, number), cell), (number > 0) | bits.some(cell)

    def play(
        self, state: GameState, action: Int[Array, ""] | int, params: GameParams
    ) -> tuple[GameState, GameState, Float32[Array, ""], Info]:
        """Take an action, and observe nothing.

        Returns:
            The state, the same before the next level began, reward and info. An action that completes a level has two
            frames, of the second and of the first; every other one has the first's alone.
        """
        num_levels = params.levels.shape[1]
        is_running = state.step_count < params.max_steps
        given, exists = self.decode(action, state.board.inside)
        is_reset = jnp.asarray(action, jnp.int32) == RESET
        acts = is_running & ~is_reset & (state.status == NOT_FINISHED)
        resets = is_running & is_reset

        # The rule, or undo.
        board, event = self.game.rule(state.board, given)
        board, history, history_size = self._undo(state, board, given.number, acts & exists)
        board = _select(acts & exists, board, state.board)
        wins_level = acts & exists & event.won
        action_count = state.action_count + acts.astype(jnp.int32)
        lost = acts & ~wins_level & ((exists & event.lost) | ((state.budget > 0) & (action_count >= state.budget)))

        # Levels.
        starts_again = resets & ((state.action_count == 0) | (state.status == WIN))
        completed = jnp.where(starts_again, 0, state.levels_completed + wins_level.astype(jnp.int32))
        wins = wins_level & (completed == num_levels)
        status = jnp.where(resets, NOT_FINISHED, state.status)
        status = jnp.where(wins, WIN, jnp.where(lost, GAME_OVER, status)).astype(jnp.int32)
        loads = resets | (wins_level & ~wins)
        level = jnp.minimum(completed, num_levels - 1)
        next_board, budget = unpack(params.levels[state.set_index, level], self.game)

        counted = (jnp.arange(num_levels) == jnp.minimum(state.levels_completed, num_levels - 1)) & (acts | resets)
        after = GameState(
            board=_select(loads, next_board, board),
            set_index=state.set_index,
            levels_completed=completed.astype(jnp.int32),
            status=status,
            action_count=jnp.where(loads, 0, action_count).astype(jnp.int32),
            budget=jnp.where(loads, budget, state.budget),
            step_count=state.step_count + (acts | resets).astype(jnp.int32),
            spent=jnp.where(starts_again, 0, state.spent + counted.astype(jnp.int32)),
            key=state.key,
            history=history,
            history_size=jnp.where(loads, 0, history_size).astype(jnp.int32),
        )
        left = jnp.where(after.budget > 0, after.budget - after.action_count, -1)
        terminated = status != NOT_FINISHED
        info = {
            "terminated": terminated,
            "truncated": ~terminated & (after.step_count >= params.max_steps),
            "invalid_action": ~exists & ~is_reset,
            "level": level.astype(jnp.int32),
            "levels_completed": after.levels_completed,
            "step_count": after.step_count,
            "actions_left": left,
        }
        finished = dataclasses.replace(after, board=board, action_count=action_count, budget=state.budget)
        return after, finished, wins_level.astype(jnp.float32), info

    def _undo(
        self, state: GameState, board: Board, number: Int32[Array, ""], applies: Bool[Array, ""]
    ) -> tuple[Board, dict[str, UInt32[Array, "depth H"]], Int32[Array, ""]]:
        """Take back the last action where it is undo; otherwise keep what the action replaced, if it changed anything.

        ``history`` moves by one, as a stack whose top is row 0: no index depends on data.
        """
        if not self.game.undo:
            return board, state.history, state.history_size
        before = {name: state.board.layers[name] for name in self.game.undo}
        undoes = number == UNDO
        pops = applies & undoes & (state.history_size > 0)
        changed = functools.reduce(
            jnp.logical_or, [~bits.same(before[name], board.layers[name]) for name in self.game.undo]
        )
        pushes = applies & ~undoes & changed
        history, layers = {}, dict(board.layers)
        for name, past in state.history.items():
            pushed = jnp.concatenate([before[name][None], past[:-1]])
            popped = jnp.concatenate([past[1:], jnp.zeros_like(past[:1])])
            history[name] = jnp.where(pops, popped, jnp.where(pushes, pushed, past))
            layers[name] = jnp.where(pops, past[0], jnp.where(undoes, before[name], layers[name]))
        size = jnp.minimum(state.history_size + pushes.astype(jnp.int32), UNDO_DEPTH) - pops.astype(jnp.int32)
        return dataclasses.replace(board, layers=layers), history, size

    def _start(
        self, key: UInt32[Array, "2"], params: GameParams, set_index: Int[Array, ""] | int | None = None
    ) -> GameState:
        next_key, set_words = split_words(jax.random.wrap_key_data(key, impl="threefry2x32"), 2)
        drawn = to_randint(set_words[0], jnp.int32(params.levels.shape[0])).astype(jnp.int32)
        set_index = drawn if set_index is None else jnp.asarray(set_index, jnp.int32)
        board, budget = unpack(params.levels[set_index, 0], self.game)
        zero = jnp.int32(0)
        return GameState(
            board=board,
            set_index=set_index,
            levels_completed=zero,
            status=jnp.int32(NOT_FINISHED),
            action_count=zero,
            budget=budget,
            step_count=zero,
            spent=jnp.zeros(params.levels.shape[1], jnp.int32),
            key=next_key,
            history={name: jnp.zeros((UNDO_DEPTH, self.game.shape[0]), jnp.uint32) for name in self.game.undo},
            history_size=zero,
        )


def pack(board: Board, budget: Int32[Array, ""] | int, game: GridGame) -> UInt32[Array, " words"]:
    """Write a level as one row of words: its layers, its area, its counters and its budget, in the game's order."""
    counters = [board.counters[name] for name in game.counters]
    numbers = [jnp.asarray(number, jnp.int32).astype(jnp.uint32)[None] for number in (*counters, budget)]
    return jnp.concatenate([*(board.layers[name] for name in game.layers), board.inside, *numbers])


def unpack(words: UInt32[Array, " words"], game: GridGame) -> tuple[Board, Int32[Array, ""]]:
    """Read a level and its budget from a row of words."""
    height = game.shape[0]
    layers = {name: words[index * height : (index + 1) * height] for index, name in enumerate(game.layers)}
    start = len(game.layers) * height
    numbers = words[start + height :].astype(jnp.int32)
    counters = {name: numbers[index] for index, name in enumerate(game.counters)}
    return Board(layers, counters, words[start : start + height]), numbers[-1]


def _size(inside: Mask) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
    """Rows and columns of a level; it begins in the top-left corner."""
    return (inside != 0).sum(dtype=jnp.int32), jax.lax.population_count(inside[0]).astype(jnp.int32)


def _camera(inside: Mask) -> tuple[Int32[Array, ""], Int32[Array, ""], Int32[Array, ""]]:
    """Return the side of a cell in the frame, and the frame's row and column where the level begins."""
    height, width = _size(inside)
    scale = jnp.minimum(FRAME_SIDE // height, FRAME_SIDE // width)
    return scale, (FRAME_SIDE - height * scale) // 2, (FRAME_SIDE - width * scale) // 2


def _select(condition: Bool[Array, ""], one: Any, other: Any) -> Any:
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), one, other)
