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
from jax.core import Tracer
from jaxtyping import Array, Bool, Float32, Int, Int8, Int32, UInt32

from jaxarc.errors import whole_number
from jaxarc.games import bits
from jaxarc.games.bits import Mask
from jaxarc.games.game import CLICK, HEX_COLORS, UNDO, Action, Board, GameError, GridGame
from jaxarc.interface import Environment
from jaxarc.prng import as_typed_key, from_key_data, split_words, to_randint, to_uniform
from jaxarc.spaces import Box, Discrete
from jaxarc.tasks.buffer import sample_task_index
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
    game: str = dataclasses.field(default="", metadata={"static": True})  # whose levels they are; "": not said
    # How often a reset draws each task, relative to their sum; set i is of task i % T. None: each set is a task.
    weights: Float32[Array, " T"] | None = None

    @property
    def num_tasks(self) -> int:
        """T, the sets of levels where there are no weights."""
        return self.levels.shape[0] if self.weights is None else self.weights.shape[0]

    def require_index(self, task_index: Any, pair_index: Any) -> None:
        """Raise when a task that is given does not exist, or a pair is given; values inside ``jit`` pass.

        Raises:
            GameError: naming what there is.
        """
        if pair_index is not None:
            raise GameError(f"a game has no pairs, got pair_index={pair_index}; leave it out")
        if task_index is None:
            return
        task_index = _index(task_index, "task_index")
        if not isinstance(task_index, Tracer) and not 0 <= int(task_index) < self.num_tasks:
            raise GameError(
                f"task_index is 0 .. {self.num_tasks - 1}, got {task_index}; each is one set of levels or more"
            )


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
    # Actions in each level, as the score counts them: with RESET of a level, from 0 with one of all.
    spent: Int32[Array, " N"]
    key: UInt32[Array, "2"]  # for the next episode
    history: dict[str, UInt32[Array, "depth H"]]  # boards before the last actions, latest first; what undo takes back
    history_size: Int32[Array, ""]  # 0 .. UNDO_DEPTH


Observation: TypeAlias = Int8[Array, "H W"]
GameStep: TypeAlias = tuple[GameState, Observation, Float32[Array, ""], Bool[Array, ""], Info]


@final
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GameEnvironment(Environment[GameState, GameParams]):
    """A game as a Markov decision process, as :class:`jaxarc.ArcEnvironment` is one; every method is pure.

    Class data sheet:
        state: :class:`GameState`, some hundred bytes at 16x16.
        observation: ``"cells"`` int8[H, W], colors 0..15 and -1 beside the level; ``"frame"`` int8[64, 64].
        action: a number: 0 RESET, then the game's simple actions in order, then H * W cells, row by row, if the game
            takes clicks.
        reward: 1 for each level completed.
        done: WIN, GAME_OVER or ``params.max_steps`` steps.
        auto-reset: ``step_and_reset``, or :class:`jaxarc.wrappers.AutoReset`.

    Example::

        env, params = jaxarc.games.make("crates")
        state, observation = env.reset(jax.random.key(0), params)
        state, observation, reward, done, info = env.step(state, 4, params)  # right

    Source: the contract is that of ``arcengine`` 0.9.3; ``docs/games.md``.
    """

    game: GridGame = dataclasses.field(metadata={"static": True})
    observation: Literal["cells", "frame"] = dataclasses.field(default="cells", metadata={"static": True})

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
        """Return the params of the game's own levels.

        Raises:
            GameError: ``max_steps`` is no whole number from 1 on.
        """
        max_steps = _count(max_steps, "max_steps")
        packed = [pack(self.game.board(index), level.budget, self.game) for index, level in enumerate(self.game.levels)]
        return GameParams(jnp.stack(packed)[None], jnp.int32(max_steps), self.game.name)

    def random_params(self, key: PRNGKey, num_sets: int, max_steps: int = DEFAULT_MAX_STEPS) -> GameParams:
        """Make sets of random levels of rising difficulty, on the device; under ``jit`` both numbers are static.

        Raises:
            GameError: the game makes no levels, or a number is no whole number from 1 on.
        """
        num_sets, max_steps = _count(num_sets, "num_sets"), _count(max_steps, "max_steps")
        generate = self.game.generate
        if generate is None:
            raise GameError(f"game {self.game.name!r} makes no random levels; take make_params()")
        difficulties = jnp.arange(len(self.game.levels))
        keys = jax.random.split(as_typed_key(key), (num_sets, len(self.game.levels)))
        make = lambda key, difficulty: pack(generate(key, difficulty), 0, self.game)
        levels = jax.vmap(jax.vmap(make), (0, None))(keys, difficulties)
        return GameParams(levels, jnp.int32(max_steps), self.game.name)

    def reset(
        self,
        key: PRNGKey,
        params: GameParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[GameState, Observation]:
        """Start an episode at the first level of a set of a task, drawn if none is given; equal keys draw equal ones.

        Raises:
            GameError: there is no such task, or the params are of another game. Values inside ``jit`` pass.
        """
        self.require(params)
        params.require_index(task_index, pair_index)
        return _reset(self, key, params, task_index)

    def reset_next(self, state: GameState, params: GameParams) -> tuple[GameState, Observation]:
        self.require(params, state)
        return _reset(self, state.key, params, None)

    def step(self, state: GameState, action: Int[Array, ""] | int, params: GameParams) -> GameStep:
        """Take an action; a state that is done stays as it is, with reward 0, but for RESET after WIN or GAME_OVER.

        Returns:
            state, observation, reward (float32[]), done (bool[]) and info: ``terminated``, ``truncated``, ``success``
            (bool: WIN), ``discount`` (float32: 0 where terminated, else 1), ``invalid_action`` (bool: there is no such
            action or cell; it is counted and changes nothing), ``task_index``, ``level`` (0 .. N - 1),
            ``levels_completed``, ``step_count`` and ``actions_left`` (int32; -1 without a budget).

        Raises:
            GameError: the action is no whole number, or state or params are of another game.
        """
        self.require(params, state)
        return _step(self, state, self._action(action), params)

    def step_and_reset(self, state: GameState, action: Int[Array, ""] | int, params: GameParams) -> GameStep:
        """Take one step, and start the next episode where it ended.

        ``info["final_observation"]`` is the observation before any reset, on every step.

        Raises:
            GameError: as of ``step``.
        """
        self.require(params, state)
        return _step_and_reset(self, state, self._action(action), params)

    def observe(self, state: GameState, params: GameParams | None = None) -> Observation:
        """Show a state, or a batch of states, as ``reset`` and ``step`` do; the params change nothing."""
        show = self.frame if self.observation == "frame" else lambda state: self.cells(state.board)
        for _ in range(state.status.ndim):
            show = jax.vmap(show)
        return show(state)

    def info(self, state: GameState, params: GameParams) -> Info:
        terminated = state.status != NOT_FINISHED
        return {
            "terminated": terminated,
            "truncated": ~terminated & (state.step_count >= params.max_steps),
            "success": state.status == WIN,
            "discount": jnp.where(terminated, jnp.float32(0), jnp.float32(1)),
            "invalid_action": jnp.zeros_like(terminated),
            "task_index": state.set_index % params.num_tasks,
            "level": jnp.minimum(state.levels_completed, params.levels.shape[1] - 1),
            "levels_completed": state.levels_completed,
            "step_count": state.step_count,
            "actions_left": jnp.where(state.budget > 0, state.budget - state.action_count, -1),
        }

    def action_space(self, params: GameParams) -> Discrete:
        self.require(params)
        return Discrete(self.num_actions)

    def observation_space(self, params: GameParams) -> Box:
        self.require(params)
        is_frame = self.observation == "frame"
        shape = (FRAME_SIDE, FRAME_SIDE) if is_frame else self.game.shape
        return Box(0 if is_frame else OUTSIDE, len(HEX_COLORS) - 1, shape, jnp.int8)

    def cells(self, board: Board) -> Int8[Array, "H W"]:
        """Return the color of each cell, -1 beside the level."""
        width = self.game.shape[1]
        cells = jnp.where(bits.to_bool(board.inside, width), jnp.int8(self.game.background), jnp.int8(OUTSIDE))
        for mask, color in self.game.colored(board):
            cells = jnp.where(bits.to_bool(mask & board.inside, width), jnp.int8(color), cells)
        return cells

    def frame(self, state: GameState) -> Int8[Array, "64 64"]:
        """Draw a state as ARC-AGI-3's camera does: the largest integer scale, centered, letterbox of color 5.

        Where the level has a budget, the last row is a bar of the actions that are left.
        """
        return _frame(self, state)

    def action_of(
        self, number: Int[Array, ""] | int, state: GameState, x: Int[Array, ""] | int = 0, y: Int[Array, ""] | int = 0
    ) -> Int32[Array, ""]:
        """Return the action of one of ARC-AGI-3's numbers 0 .. 7; 6 is a click on the frame's cell x, y.

        Returns:
            ``num_actions``, which is no action, where the game has no such action or the click is in the letterbox.

        Raises:
            GameError: one of the three is no whole number.
        """
        number, x, y = (_index(value, name) for value, name in ((number, "an action"), (x, "x"), (y, "y")))
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

        Raises:
            GameError: as of ``step``.
        """
        self.require(params, state)
        action = self._action(action)
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
        info = {**self.info(after, params), "invalid_action": ~exists & ~is_reset}
        finished = dataclasses.replace(after, board=board, action_count=action_count, budget=state.budget)
        return after, finished, wins_level.astype(jnp.float32), info

    def _action(self, action: Any) -> Int[Array, ""] | int:
        """Return an action as it is, and a number of the host that is none, which may be of any size, as the next."""
        number = _index(action, "an action")
        return self.num_actions if isinstance(number, int) and not 0 <= number < self.num_actions else number

    def require(self, params: GameParams, state: GameState | None = None) -> None:
        """Refuse params and states of another game, by what is known of them also while tracing.

        Raises:
            GameError: the params, or the state, are of another game.
        """
        name = self.game.name
        if not isinstance(params, GameParams):
            raise GameError(f"params are what jaxarc.games.make({name!r}) returns, got {type(params).__name__}")
        words = (len(self.game.layers) + 1) * self.game.shape[0] + len(self.game.counters) + 1
        if params.game not in ("", name) or params.levels.shape[-1:] != (words,) or not params.levels.size:
            raise GameError(
                f"the params are not of the game {name!r}: they have {params.game!r} and levels of shape "
                f"{params.levels.shape}, not [sets, levels, {words}]; take env.make_params()"
            )
        if state is not None and (
            not isinstance(state, GameState)
            or state.board.layers.keys() != self.game.layers.keys()
            or state.board.inside.shape != self.game.shape[:1]
        ):
            raise GameError(
                f"the state is not one of the game {name!r}; take what env.reset returns, by jax.vmap for a batch"
            )

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

    def start(
        self, key: UInt32[Array, "2"], params: GameParams, task_index: Int[Array, ""] | int | None = None
    ) -> GameState:
        """Return the state at the start of an episode, of the words of a key; see ``reset``."""
        next_key, words = split_words(from_key_data(key), 2)
        num_sets, num_tasks = params.levels.shape[0], params.num_tasks
        if params.weights is None:
            set_index = to_randint(words[0], jnp.int32(num_sets)) if task_index is None else jnp.asarray(task_index)
        else:  # a task, then one of its sets
            drawn, (next_key, _) = next_key, split_words(from_key_data(words), 2)
            task = sample_task_index(to_uniform(drawn[0]), params.weights) if task_index is None else task_index
            set_index = to_randint(drawn[1], jnp.int32(num_sets // num_tasks)) * num_tasks + task
        set_index = set_index.astype(jnp.int32)
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


@functools.partial(jax.jit, static_argnums=0)
def _reset(
    env: GameEnvironment, key: PRNGKey, params: GameParams, task_index: Int[Array, ""] | int | None
) -> tuple[GameState, Observation]:
    state = env.start(jax.random.key_data(as_typed_key(key)), params, task_index)
    return state, env.observe(state)


@functools.partial(jax.jit, static_argnums=0)
def _step(env: GameEnvironment, state: GameState, action: Int[Array, ""] | int, params: GameParams) -> GameStep:
    after, _, reward, info = env.play(state, action, params)
    return after, env.observe(after), reward, info["terminated"] | info["truncated"], info


@functools.partial(jax.jit, static_argnums=0)
def _step_and_reset(
    env: GameEnvironment, state: GameState, action: Int[Array, ""] | int, params: GameParams
) -> GameStep:
    after, _, reward, info = env.play(state, action, params)
    done = info["terminated"] | info["truncated"]
    fresh = _select(done, env.start(after.key, params), after)
    info["final_observation"] = env.observe(after)
    return fresh, env.observe(fresh), reward, done, info


@functools.partial(jax.jit, static_argnums=0)
def _frame(env: GameEnvironment, state: GameState) -> Int8[Array, "64 64"]:
    scale, top, start = _camera(state.board.inside)
    cells = env.cells(state.board)
    height, width = cells.shape
    rows = (jnp.arange(FRAME_SIDE) - top) // scale
    columns = (jnp.arange(FRAME_SIDE) - start) // scale
    seen = cells[jnp.clip(rows, 0, height - 1)][:, jnp.clip(columns, 0, width - 1)]
    exists = ((rows >= 0) & (rows < height))[:, None] & ((columns >= 0) & (columns < width))[None]
    frame = jnp.where(exists & (seen != OUTSIDE), seen, jnp.int8(LETTERBOX))
    left = jnp.maximum(state.budget - state.action_count, 0) * FRAME_SIDE // jnp.maximum(state.budget, 1)
    bar = jnp.where(jnp.arange(FRAME_SIDE) < left, *(jnp.int8(color) for color in BAR_COLORS))
    return frame.at[-1].set(jnp.where(state.budget > 0, bar, frame[-1]))


def _index(value: Any, name: str) -> Int[Array, ""] | int:
    """Return one whole number; an array of JAX, which may be traced, stays as it is."""
    if not isinstance(value, jax.Array):
        return whole_number(value, name, GameError)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise GameError(
            f"{name} is one whole number, got {value.dtype}{list(value.shape)}; pass an int32, by jax.vmap for a batch"
        )
    return value


def _count(value: Any, name: str) -> int:
    number = whole_number(value, name, GameError)
    if not 1 <= number < 2**31:
        raise GameError(f"{name} is a whole number 1 .. {2**31 - 1}, got {number}")
    return number


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
