"""Data of a dynamics model: random trajectories of the environment, and how well a model predicts them.

A model is measured twice on held-out pairs: on single steps from true grids (:func:`evaluate_steps`), and in open loop,
where it goes on from its own predictions (:func:`open_loop_error`).
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc import constants as c
from jaxarc.config import EditStepsConfig, JaxArcConfig, SurrogateNetworkConfig, SurrogateTrainingConfig, TaskConfig
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.canvas_state import canvas_of_state
from jaxarc.surrogate import TransitionModel, create_transition_train_step
from jaxarc.surrogate.candidates import describe_boxes
from jaxarc.surrogate.copying import CLIPBOARD
from jaxarc.surrogate.train_step import Model
from jaxarc.surrogate.transition_model import TransitionBatch, is_exact_grid, predict_steps
from jaxarc.training.surrogates.lookahead import describe_canvas
from jaxarc.training.surrogates.task import HELD_OUT_SEED, Step, load_params
from jaxarc.types import Observation, PRNGKey
from jaxarc.unroll import Transition, unroll

_ENV: Final = ArcEnvironment()


class StepAccuracy(NamedTuple):
    """Accuracies of the prediction of single steps; shares of 0 .. 1."""

    exact_grid_accuracy: float  # of next grids, right in every cell
    cell_accuracy: float
    exact_clipboard_accuracy: float  # of next clipboards, right in every cell
    kept_grid_accuracy: float  # of next grids that equal the grid before: the accuracy of "nothing changes"
    reward_error: float  # mean absolute error
    by_operation: dict[int, tuple[int, float, float]]  # steps, exact_grid_accuracy and kept_grid_accuracy of each

    def numbers(self) -> dict[str, float]:
        """Return the numbers of a report, by the names of its fields."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, float)}


class OpenLoopError(NamedTuple):
    """Errors of predictions that go on from predictions, after each of S steps; shares of 0 .. 1."""

    operation: int | None  # of every step of the trajectories; None where each step has another one
    exact: tuple[float, ...]  # of trajectories: every cell of the grid is right
    wrong_cells: tuple[float, ...]  # of the cells of the canvas
    kept: tuple[float, ...]  # of trajectories whose grid still equals the first one: the accuracy of "nothing changes"


class TransitionDataset:
    """Short random trajectories with any operations on any boxes; a :class:`SurrogateTask`.

    Batch i of a seed has a random key of its own.

    Attributes:
        train_params: pairs that the model learns from, and rules.
        eval_params: held-out pairs, without augmentation.
        num_left_out: pairs of the held-out data set that training holds.
    """

    metric_fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {name: f"transition_{name}" for name in ("total_loss", "exact_grids", "gradient_norm")}
    )

    def __init__(
        self,
        train_params: EnvParams,
        eval_params: EnvParams,
        config: EditStepsConfig,
        network: SurrogateNetworkConfig,
        num_left_out: int = 0,
    ):
        self.train_params = train_params
        self.eval_params = eval_params
        self.config = config
        self.network = network
        self.num_left_out = num_left_out
        self._operations = jnp.array(drawn_operations(train_params.config), jnp.int32)
        self._held_out_steps: TransitionBatch | None = None

    @classmethod
    def load(
        cls, task: TaskConfig, rules: JaxArcConfig, config: EditStepsConfig, network: SurrogateNetworkConfig
    ) -> "TransitionDataset":
        """Load both data sets.

        Raises:
            UnknownDatasetError, TaskFormatError, ValueError: see :func:`jaxarc.training.pairs.load_pairs`.
        """
        train_params, eval_params, num_left_out = load_params(task, rules)
        return cls(train_params, eval_params, config, network, num_left_out)

    def make_model(self, key: PRNGKey) -> TransitionModel:
        """Make a fresh model."""
        return eqx.filter_jit(TransitionModel)(key, self.network)

    def training_config(self, config: SurrogateTrainingConfig) -> SurrogateTrainingConfig:
        """Return the run's config with the learning rates of ``edit_steps``."""
        return config.replace(
            learning_rate=self.config.learning_rate, final_learning_rate=self.config.final_learning_rate
        )

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        """Make a step that learns next grids and rewards."""
        return create_transition_train_step(model, optimizer, config)

    def batch(self, seed: int, step: int) -> TransitionBatch:
        """Take random steps in training pairs."""
        key = jax.random.fold_in(jax.random.key(seed), step)
        return _draw_steps(
            key, self.train_params, self._operations, self.config.episode_steps, self.config.num_examples
        )

    def evaluate(self, model: Model) -> StepAccuracy:
        """Predict single steps in held-out pairs."""
        return evaluate_steps(model, self.held_out())

    def held_out(self) -> TransitionBatch:
        """Take random steps in held-out pairs, in every call the same ones."""
        if self._held_out_steps is None:
            self._held_out_steps = _draw_steps(
                jax.random.key(HELD_OUT_SEED),
                self.eval_params,
                self._operations,
                self.config.episode_steps,
                self.config.num_eval,
            )
        return self._held_out_steps

    def held_out_trajectories(self) -> Iterator[TransitionBatch]:
        """Yield trajectories in held-out pairs, in every call the same ones.

        The first batch has any operation in each step, and each of the others one operation in all steps.
        """
        # The operation is a part of the key, so leaving one out does not change the trajectories of the others.
        shape = (self.config.open_loop_steps, self.config.open_loop_trajectories)
        key_any = jax.random.key(HELD_OUT_SEED)
        indices = jax.random.randint(key_any, shape, 0, len(self._operations), jnp.int32)
        yield _draw_trajectories(key_any, self._operations[indices], self.eval_params)
        for operation in trajectory_operations(self.eval_params.config):
            key = jax.random.fold_in(key_any, operation)
            yield _draw_trajectories(key, jnp.full(shape, operation, jnp.int32), self.eval_params)

    def open_loop_errors(self, model: Model) -> list[OpenLoopError]:
        """Return the open-loop errors on held-out pairs: of mixed operations, and of each by itself."""
        return [open_loop_error(model, trajectories) for trajectories in self.held_out_trajectories()]


def trajectory_operations(config: JaxArcConfig) -> tuple[int, ...]:
    """Return the operations of random trajectories: the legal ones but the submit, which ends an episode."""
    return tuple(number for number in config.legal_operations if number < c.SUBMIT)


def drawn_operations(config: JaxArcConfig) -> tuple[int, ...]:
    """Return operations to draw from: :func:`trajectory_operations`, with copy, paste and cut five times each.

    A paste changes something only after a copy or a cut, so equal chances would hardly ever show it.
    """
    operations = trajectory_operations(config)
    return operations + 4 * tuple(number for number in operations if number in (c.COPY, c.PASTE, c.CUT))


def random_trajectories(key: PRNGKey, operations: Int32[Array, "S B"], params: EnvParams) -> TransitionBatch:
    """Take steps on boxes drawn uniformly from the whole canvas, from the starts of episodes.

    A flood fill gets a single cell: on most larger boxes it changes nothing. Compilation belongs to the caller.

    Args:
        key: random key.
        operations: of :func:`trajectory_operations`, for S steps of B trajectories.
        params: tasks and rules; actions are boxes, and an episode has at least S steps.

    Returns:
        The grids before each step of the environment, the action, the next grid and the reward: leaves [S, B, ...].

    Raises:
        ValueError: an episode has fewer steps.
    """
    # An episode that reaches its limit would stay as it is, and teach that nothing changes.
    limit = params.config.environment.max_episode_steps
    grid_shape = params.config.grid_shape
    num_steps, num_trajectories = operations.shape
    if not 1 <= num_steps <= limit:
        raise ValueError(f"a trajectory has 1 .. {limit} steps, environment.max_episode_steps, got {num_steps}")
    key_start, key_boxes = jax.random.split(key)
    states, _ = jax.vmap(_ENV.reset, (0, None))(jax.random.split(key_start, num_trajectories), params)

    def draw_boxes(
        step: tuple[PRNGKey, Int32[Array, " B"]], observation: Observation, states: ArcEnvState
    ) -> tuple[BboxAction, None]:
        key, operations = step
        key_rows, key_columns = jax.random.split(key)
        # Two corners [2, B], in any order. A flood takes its first corner twice, so its box is one cell.
        rows = jax.random.randint(key_rows, (2, num_trajectories), 0, grid_shape[0], jnp.int32)
        columns = jax.random.randint(key_columns, (2, num_trajectories), 0, grid_shape[1], jnp.int32)
        is_flood = (operations >= c.FLOOD_FILL) & (operations < c.FLOOD_FILL + c.NUM_COLORS)
        last_rows = jnp.where(is_flood, rows[0], rows[1])
        last_columns = jnp.where(is_flood, columns[0], columns[1])
        return BboxAction(operations, rows[0], columns[0], last_rows, last_columns), None

    def record(transition: Transition[ArcEnvState]) -> TransitionBatch:
        actions = transition.action
        data = _describe_states(transition.states, params)
        described = jax.vmap(lambda action: describe_boxes(action, jnp.bool_(True), grid_shape))(actions)
        after = _describe_states(transition.next_states, params).astype(jnp.int32)
        return TransitionBatch(
            data, described, actions.operation, after[..., 0], after[..., CLIPBOARD], transition.reward
        )

    steps = (jax.random.split(key_boxes, num_steps), operations)
    return unroll(_ENV, params, draw_boxes, states, steps, record)[1]


def evaluate_steps(model: Model, steps: TransitionBatch) -> StepAccuracy:
    """Predict each step by itself, and compare with the environment."""
    predicted = _predict(model, steps)
    truth = np.asarray(steps.next_grid, np.int32)
    is_right = np.asarray(predicted.grid) == truth
    is_exact = is_right.all(axis=(1, 2))
    # How good it would be to predict "nothing changes": an accuracy below this one has learned nothing.
    is_kept = (np.asarray(steps.data[..., 0]).round().astype(np.int32) == truth).all(axis=(1, 2))
    operation = np.asarray(steps.operation)
    by_operation = {}
    # Operations differ in difficulty, so each gets its own shares beside those of all steps.
    for number in np.unique(operation).tolist():
        mine = operation == number
        by_operation[number] = (int(mine.sum()), float(is_exact[mine].mean()), float(is_kept[mine].mean()))
    return StepAccuracy(
        exact_grid_accuracy=float(is_exact.mean()),
        cell_accuracy=float(is_right.mean()),
        exact_clipboard_accuracy=float(is_exact_grid(predicted.clipboard, steps.next_clipboard).mean()),
        kept_grid_accuracy=float(is_kept.mean()),
        reward_error=float(np.abs(np.asarray(predicted.reward) - np.asarray(steps.reward)).mean()),
        by_operation=by_operation,
    )


def open_loop_error(model: Model, trajectories: TransitionBatch) -> OpenLoopError:
    """Compare the model's own rollout with trajectories of the environment, from the same first grids.

    Say a trajectory has the grids a, b, c. A model that predicts b' != b after a is asked for the step from b', not
    from b; it is right after the second step only if it says c there.

    Args:
        model: of transitions.
        trajectories: leaves [S, B, ...].
    """
    # The model rolls on from its own predictions; errors add up, which single steps cannot show.
    is_right, is_kept = map(np.asarray, rollout_model(model, trajectories))
    # [S, B, N, d] -> [S]: after each step, the share of trajectories that are right in every cell.
    exact = is_right.all(axis=(2, 3)).mean(axis=1)
    wrong_cells = 1 - is_right.mean(axis=(1, 2, 3))
    kept = is_kept.mean(axis=1)
    operations = np.unique(trajectories.operation)
    operation = int(operations[0]) if len(operations) == 1 else None
    return OpenLoopError(operation, tuple(exact.tolist()), tuple(wrong_cells.tolist()), tuple(kept.tolist()))


@eqx.filter_jit
def rollout_model(model: Model, trajectories: TransitionBatch) -> tuple[Bool[Array, "S B N d"], Bool[Array, "S B"]]:
    """Let a model take the actions of trajectories from its own predictions.

    The model sees its own last grid and clipboard in place of the true ones.

    Returns:
        Which cells of each predicted grid are right, and whether the true grid still equals the first one.
    """
    first = trajectories.data[0]

    def predict_next(data: Float32[Array, "B N d 4"], step: TransitionBatch) -> tuple[Array, tuple[Array, Array]]:
        # Target and input stay the true ones.
        predicted = predict_steps(model, data, step.action)
        is_kept = (step.next_grid == first[..., 0].astype(jnp.int32)).all(axis=(1, 2))
        is_right = predicted.grid == step.next_grid
        grid, clipboard = (predicted.grid.astype(jnp.float32), predicted.clipboard.astype(jnp.float32))
        return data.at[..., 0].set(grid).at[..., CLIPBOARD].set(clipboard), (is_right, is_kept)

    return jax.lax.scan(predict_next, first, trajectories)[1]


def _describe_states(states: ArcEnvState, params: EnvParams) -> Float32[Array, "B H W 4"]:
    def describe(state: ArcEnvState) -> Float32[Array, "H W 4"]:
        grids = describe_canvas(canvas_of_state(state, params), params.config.grid_shape)
        return jnp.concatenate([grids, state.clipboard[..., None].astype(jnp.float32)], axis=-1)

    return jax.vmap(describe)(states)


@eqx.filter_jit
def _draw_steps(
    key: PRNGKey, params: EnvParams, operations: Int32[Array, " K"], num_steps: int, count: int
) -> TransitionBatch:
    """Draw ``count`` single steps: trajectories of ``num_steps`` with any operations, one after the other."""
    key_operations, key_trajectories = jax.random.split(key)
    # [S, B] operations, any in each step; the trajectories are then cut into single steps.
    indices = jax.random.randint(key_operations, (num_steps, count // num_steps), 0, len(operations), jnp.int32)
    trajectories = random_trajectories(key_trajectories, operations[indices], params)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), trajectories)


_draw_trajectories = eqx.filter_jit(random_trajectories)
_predict = eqx.filter_jit(lambda model, steps: predict_steps(model, steps.data, steps.action))
