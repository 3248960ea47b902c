"""Episodes of one environment on NumPy arrays: the C++ library steps them, without JAX in between.

What they show has the bits that the compiled programs give, but for the reward, which may differ from theirs by
rounding, within 1e-6. A reset by a seed or an option is a compiled program, and so is one that makes or changes its
task, or that shows more of it than its grids; the steps that follow edit its arrays in place.
"""

import ctypes
import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Int8, Shaped, UInt32

from jaxarc import constants as c
from jaxarc.adapters.gymnasium_conversion import require_action, to_gymnasium_observation
from jaxarc.adapters.packing import Packed, pack
from jaxarc.config import JaxArcConfig, RewardConfig
from jaxarc.envs.action_masks import FlatActionCodec, applicable_operations
from jaxarc.envs.action_space import COORDINATES
from jaxarc.envs.canvas import CLIPBOARD_HEIGHT
from jaxarc.envs.environment import ArcEnvironment, Environment
from jaxarc.envs.executor import LEFT_ALONE, form_numbers, reset_numbers, resets_natively, step_numbers
from jaxarc.envs.observations import entry_slices, grid_form, joined_value
from jaxarc.envs.pairs import pairs_in_play
from jaxarc.envs.params import EnvParams, declared_params
from jaxarc.envs.state import PAIR, SOLVED, STEP, SUBMISSION, TASK, ArcEnvState
from jaxarc.native.host import INVALID, NEWLY_SOLVED, RUNNING, WRONG_SUBMISSION, host_call
from jaxarc.primitives import choose_executor
from jaxarc.tasks.buffer import cumulative_weights
from jaxarc.wrappers.flat_actions import FlatActions

_INTEGERS: Final = (int, np.int64, np.int32)


def plays_on_host(env: Environment[Any, Any], params: EnvParams) -> bool:
    """Whether :class:`HostEpisodes` gives what the compiled programs of an environment give."""
    config = params.config
    inner = env.env if isinstance(env, FlatActions) else env
    return (
        isinstance(inner, ArcEnvironment)
        and choose_executor(config.environment.executor) == "native"
        and not config.action.mask_in_info
        and not (config.episode.switches_pairs and shows_more_than_the_canvas(config))
    )


class _Start(NamedTuple):
    """What the compiled program of a reset returns; later on NumPy arrays, which the library edits."""

    state: ArcEnvState
    order: Any  # of the pairs, or None; see PairSource
    colors: Any
    rows: Any  # the first row of the pairs, how many there are, and how many are not hidden
    observation: Any


class HostEpisodes:
    """Plays one environment, of which :func:`plays_on_host` is true.

    Args:
        env: our environment, or :class:`~jaxarc.wrappers.FlatActions` around it.
        params: tasks and rules; the policy for invalid actions is not ``"raise"``.
        space: Gymnasium's of the actions.
    """

    def __init__(self, env: Environment[Any, Any], params: EnvParams, space: spaces.Space):
        params = declared_params(params)
        config = params.config
        self._env = env
        self._params = params
        self._space = space
        self._mode = config.episode.mode
        self._is_scored = config.reward.score_on_submit
        self._weight = config.reward.similarity_weight
        self._gamma = config.reward.gamma
        self._terms = [_reward_terms(config.reward, hidden) for hidden in (False, True)]
        self._legal = config.legal_operations
        self._boxes = FlatActionCodec.of(config).selections if isinstance(env, FlatActions) else None
        self._limits = space.nvec.tolist() if isinstance(space, spaces.MultiDiscrete) else []
        self._mask = np.zeros(config.grid_shape, np.uint8)  # 0 or 1, of an action in the mask format
        self._action: Any = (ctypes.c_int32 * (1 + len(COORDINATES[config.action.selection_format])))()
        self._facts: Any = ctypes.c_int32()  # of the step
        tasks = (params, jax.jit(cumulative_weights)(params.weights))
        self._tasks = jax.tree.map(np.asarray, tasks)  # as a reset reads them
        self._held: Any = None  # the _Start of the episode
        self._bytes: Any = None  # of which its arrays are views, where a compiled program returned them
        self._form: Any = None  # what reads them

    def __getstate__(self) -> dict[str, Any]:
        """For copies: addresses belong to this object alone."""
        return {"args": (self._env, self._params, self._space), "held": self._held}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        HostEpisodes.__init__(self, *kept["args"])
        if kept["held"] is not None:
            self._hold(kept["held"])

    @property
    def is_playing(self) -> bool:
        """Whether an episode was started."""
        return self._held is not None

    @property
    def state(self) -> ArcEnvState:
        """A copy of the state of the episode."""
        return jax.tree.map(np.copy, self._held.state)

    def start(self, key: UInt32[np.ndarray, " 2"], chosen: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Start the episode of a key, on a task and a pair if they are given; return observation and info."""
        return self._begin(_start(self._env, key, self._params, chosen))

    def start_next(self) -> tuple[Any, dict[str, Any]]:
        """Start the episode that follows; return observation and info."""
        if not self._resets:
            return self._begin(_start_next(self._env, self.state, self._params))
        if fault := self._reset():
            raise _refused(fault)
        self._rows[:] = self._places[self._held.state.counts.item(TASK)]
        return self._observations.show(), self._info(0, False)[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step.

        Raises:
            ValueError: the action is not in the action space.
        """
        self._read(action)
        state = self._held.state
        before = state.similarity_score.item()
        if fault := self._step():
            raise _refused(fault)
        facts = self._facts.value
        terminated, truncated = state.endings.tolist()
        info, hidden = self._info(facts, terminated)
        reward = self._terms[hidden][facts]
        if facts & RUNNING and not hidden:
            reward += self._weight * (self._gamma * info["similarity"] - before)
        return self._observations.show(), reward, terminated, truncated, info

    def _begin(self, packed: Packed) -> tuple[Any, dict[str, Any]]:
        form = (packed.structure, packed.layout)
        if form == self._form:  # the arrays stay, and so do their addresses and all that shows them
            self._bytes[...] = packed.data
        else:
            self._bytes = np.array(packed.data)
            self._form = form
            self._hold(packed.unpack(self._bytes))
        return self._observations.show(), self._info(0, False)[0]

    def _hold(self, start: _Start) -> None:
        """Play on from here. The arrays are taken as they are, and their addresses given to the library."""
        self._held = start
        self._rows: Any = (ctypes.c_int32 * 3).from_buffer(start.rows)  # the same numbers, written faster
        state: Any = start.state
        params, config = self._params, self._params.config
        actions: list[Any] = [*np.frombuffer(self._action, np.int32).reshape(-1, 1)]
        if config.action.selection_format == "mask":
            actions.append(self._mask[None].view(np.bool_))
        first_row, pair_count, num_open = start.rows.reshape(-1, 1)
        options = [*_batch_of_one((start.order, start.colors)), num_open if self._mode == "trials" else None]
        place = jax.tree.leaves([first_row, pair_count, *options])
        table = self._tasks[0].tasks if state.pairs is None else state.pairs
        states = _batch_of_one(jax.tree.leaves(dataclasses.replace(state, **dict.fromkeys(LEFT_ALONE))))
        numbers = [*form_numbers(config), *(option is not None for option in options)]
        numbers += step_numbers(config, self._mode == "test")
        arguments = [*states, *actions, *place, table.inputs, table.outputs]
        self._step = host_call("step", numbers, arguments, [*states, np.frombuffer(self._facts, np.int32)])
        self._resets = not shows_more_than_the_canvas(config) and resets_natively(state, params)
        if self._resets:
            states = _batch_of_one(jax.tree.leaves(state))
            tasks = [np.ones(1, np.bool_), *jax.tree.leaves(self._tasks)]
            numbers = [*form_numbers(config), *reset_numbers(params)]
            self._reset = host_call("reset", numbers, [*states, *tasks], states)
            self._places = _places(self._tasks[0].tasks, self._mode)
        self._observations = HostObservations(config, state, start.observation)

    def _read(self, action: Any) -> None:
        """Give an action to the library: as Gymnasium's clients pass it, or as whatever fits the space."""
        legal = self._legal
        if self._boxes is not None:
            assert isinstance(self._space, spaces.Discrete)
            fits = type(action) in _INTEGERS and 0 <= action < self._space.n
            operation, box = divmod(int(action if fits else require_action(self._space, action)), len(self._boxes))
            self._action[:] = (legal[operation], *self._boxes[box].tolist()[: len(self._action) - 1])
        elif self._limits:
            is_vector = type(action) is np.ndarray and action.dtype == np.int64 and action.ndim == 1
            numbers = action.tolist() if is_vector else []
            fits = len(numbers) == len(self._limits) and all(
                0 <= number < limit for number, limit in zip(numbers, self._limits, strict=True)
            )
            operation, *corners = numbers if fits else require_action(self._space, action).tolist()
            self._action[:] = (legal[operation], *corners)
        else:
            fields = action if self._fits_masks(action) else require_action(self._space, action)
            self._action[0] = legal[int(fields["operation"])]
            self._mask[...] = fields["selection"]

    def _fits_masks(self, action: Any) -> bool:
        """Whether an action is what the space of masks draws; what else it contains takes longer to find out."""
        if type(action) is not dict or action.keys() != {"operation", "selection"}:
            return False
        operation, cells = action["operation"], action["selection"]
        is_operation = type(operation) in _INTEGERS and 0 <= operation < len(self._legal)
        is_mask = type(cells) is np.ndarray and cells.dtype == np.int8 and cells.shape == self._mask.shape
        return is_operation and is_mask and bool((cells.view(np.uint8) <= 1).all())

    def _info(self, facts: int, terminated: bool) -> tuple[dict[str, Any], bool]:
        """The info of a step or a reset, as ``make_info`` has it, and whether the pair that is played is hidden."""
        state = self._held.state
        counts = state.counts.tolist()
        hidden = counts[PAIR] >= self._rows[2] if self._mode == "trials" else self._mode == "test"
        info = {
            "discount": 0.0 if terminated else 1.0,
            "invalid_action": facts & (INVALID | RUNNING) == INVALID | RUNNING,
            "pair_index": counts[PAIR],
            "similarity": 0.0 if hidden else state.similarity_score.item(),
            "step_count": counts[STEP],
            "submission_count": counts[SUBMISSION],
            "success": counts[SOLVED] != 0 and (not hidden or self._is_scored),
            "task_index": counts[TASK],
        }
        return info, hidden


def _reward_terms(rule: RewardConfig, hidden: bool) -> list[float]:
    """Return what a reward has beside its shaping, by the facts of a step; ``compute_reward`` has the rules."""
    is_scored = not hidden or rule.score_on_submit
    terms = {
        RUNNING: rule.step_penalty,
        NEWLY_SOLVED: rule.success_bonus * is_scored,
        WRONG_SUBMISSION: rule.unsolved_submission_penalty * is_scored,
        INVALID: rule.invalid_action_penalty,
    }
    sum_of = lambda facts: sum((term for fact, term in terms.items() if facts & fact), 0.0)
    return [sum_of(facts) if facts & RUNNING else 0.0 for facts in range(16)]


def _batch_of_one(arrays: Iterable[Any]) -> list[Any]:
    """Give arrays the leading axis of a batch; they stay the same bytes."""
    return [None if array is None else array[None] for array in arrays]


def _refused(fault: bytes) -> TypeError:
    return TypeError(f"{fault.decode()}; keep the dtypes and shapes of what made the arrays")


def _places(tasks: Any, mode: str) -> list[list[int]]:
    """List the rows of a :class:`_Start` for each task, as ``pairs_in_play`` has them."""
    first, num_train, num_test = tasks.first_pair, tasks.num_train, tasks.num_test
    rows = {
        "train": (first, num_train, num_train),
        "test": (first + num_train, num_test, num_test),
        "trials": (first, num_train + num_test, num_train),
    }
    return np.stack(rows[mode], axis=1).tolist()


@jax.jit
def _start(env: Environment[Any, Any], key: Any, params: EnvParams, chosen: dict[str, Any]) -> Packed:
    return _pack_start(*env.reset(key, params, **chosen), params)


@jax.jit
def _start_next(env: Environment[Any, Any], state: Any, params: EnvParams) -> Packed:
    return _pack_start(*env.reset_next(state, params), params)


def _pack_start(state: ArcEnvState, observation: Any, params: EnvParams) -> Packed:
    mode = params.config.episode.mode
    source = pairs_in_play(params.tasks, state.pairs, state.task_index, state.augmentation, mode)
    num_open = source.count if source.num_open is None else source.num_open
    rows = jnp.stack([source.first_row, source.count, num_open])
    return pack(_Start(state, source.order, source.colors, rows, observation))


_HOT: Final = np.eye(c.NUM_COLORS + 1, dtype=np.int8)  # row 2 is color 2; row -1, the last one, is padding


def shows_more_than_the_canvas(config: JaxArcConfig) -> bool:
    """Whether an observation has entries that stay as they are until the pair changes."""
    return config.observation.include_input or config.observation.include_demonstrations


class HostObservations:
    """Shows one state again and again, as :func:`jaxarc.envs.observations.observe` does.

    Args:
        config: says what is shown.
        state: of NumPy arrays, which are edited in place.
        first: what the compiled program shows of the state in which the episode begins, as NumPy arrays.
    """

    def __init__(self, config: JaxArcConfig, state: ArcEnvState, first: Any):
        self._config = config
        self._is_joined = config.observation.layout != "dict"
        has_tokens = config.observation.grid_format == "tokens"
        self._dtype = np.int32 if has_tokens and config.observation.layout == "stacked" else np.float32
        self._makers = self._entry_makers(state)
        self._slices: list[tuple[slice, Callable[[], np.ndarray]]] = []
        if self._is_joined:
            demonstrations = state.demonstrations
            slices = entry_slices(config, 0 if demonstrations is None else demonstrations.inputs.shape[0])
            self._slices = [(slices[name], make) for name, make in self._makers.items()]
        self._first = first
        is_dict = not self._is_joined and isinstance(first, dict)
        constant = {name: value for name, value in first.items() if name not in self._makers} if is_dict else {}
        self._constant = to_gymnasium_observation(constant)
        self._names = sorted([*self._constant, *self._makers])

    def show(self) -> Any:
        """Return the observation of the state as it is now, in arrays of its own."""
        if self._is_joined:
            return self._join()
        if len(self._names) == 1:
            return self._makers["working_grid"]()
        makers = self._makers
        return {
            name: makers[name]() if name in makers else jax.tree.map(np.copy, self._constant[name])
            for name in self._names
        }

    def _join(self) -> np.ndarray:
        where, make = self._slices[0]
        if len(self._slices) == 1 and where == slice(0, self._first.shape[-1]):
            return make().reshape(self._first.shape)
        joined = self._first.copy()
        for where, make in self._slices:
            part = joined[..., where]
            value = make()
            # An entry has a value for each cell, in both layouts, or one for all cells.
            part[...] = value.reshape(part.shape) if value.size == part.size else value.reshape(-1)
        return joined

    def _entry_makers(self, state: Any) -> dict[str, Callable[[], np.ndarray]]:
        rule = self._config.observation
        canvas = state.canvas
        limits = self._config.environment
        makers = {
            "working_grid": (True, self._grid_maker(canvas.grid)),
            "target_grid": (rule.reveal_target, self._grid_maker(canvas.target)),
            "clipboard": (rule.include_clipboard, self._grid_maker(canvas.clipboard)),
            "selection": (rule.include_selection, self._selection_maker(canvas.selection)),
            "operations": (rule.include_operations, self._operations_maker(canvas.sizes)),
        }
        makers = {name: make for name, (is_shown, make) in makers.items() if is_shown}
        if rule.include_step_count:
            makers["step_count"] = self._number_maker(state.counts, STEP, limits.max_episode_steps)
        if rule.include_submission_count:
            makers["submission_count"] = self._number_maker(state.counts, SUBMISSION, limits.max_submissions)
        return makers

    def _grid_maker(self, grid: Int8[np.ndarray, " HW"]) -> Callable[[], np.ndarray]:
        form = grid_form(self._config)
        shape = self._config.grid_shape
        if form == "tokens":
            return lambda: (grid + np.int8(1)).astype(self._dtype if self._is_joined else np.int32)
        if form == "planes":
            return lambda: grid.reshape(shape).copy()
        hot = _HOT.astype(self._dtype) if self._is_joined else _HOT
        cells = grid.reshape(shape)
        return lambda: hot.take(cells, axis=0, mode="wrap")

    def _selection_maker(self, stored: np.ndarray) -> Callable[[], np.ndarray]:
        shape = self._config.grid_shape
        rows = np.arange(shape[0], dtype=np.uint32)[:, None]

        def of_box() -> np.ndarray:
            selected = np.zeros(shape, np.int8)
            top, left, bottom, right = stored.tolist()
            selected[top : bottom + 1, left : right + 1] = 1
            return selected

        def of_words() -> np.ndarray:  # bit r of a column's word is row r
            return ((stored >> rows) & np.uint32(1)).astype(np.int8)

        return of_words if self._config.action.selection_format == "mask" else of_box

    def _operations_maker(self, sizes: Int8[np.ndarray, " 6"]) -> Callable[[], np.ndarray]:
        masks = [mask.astype(np.int8) for mask in applicable_operations(self._config)]
        return lambda: masks[int(sizes[CLIPBOARD_HEIGHT] > 0)].copy()

    def _number_maker(self, counts: np.ndarray, index: int, high: int) -> Callable[[], np.ndarray]:
        if not self._is_joined:
            return lambda: counts[index : index + 1].copy()
        values = _joined_values(high, self._config)
        return lambda: values[counts[index], None]


@functools.cache
def _joined_values(high: int, config: JaxArcConfig) -> Shaped[np.ndarray, " values"]:
    """Every value that a number can have in a joined observation, divided as a compiled program divides it."""
    numbers = np.arange(high + 1, dtype=np.int32)
    return np.asarray(jax.jit(joined_value, static_argnums=(1, 2))(numbers, high, config))
