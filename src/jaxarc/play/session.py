"""One environment for a person: reset to a pair, step with an action, view the state as NumPy arrays."""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Int8, Int32

from jaxarc import constants as c
from jaxarc.datasets import TaskSet
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import actions_of
from jaxarc.experts import Action, ActionFormat
from jaxarc.experts.host_canvas import FULL_CANVAS
from jaxarc.interface import Environment
from jaxarc.registration import make
from jaxarc.tasks.raw_task import crop_padding
from jaxarc.traces import PairId
from jaxarc.types import Info

MOST_STEPS: Final = 1000  # of an episode: long enough that no person reaches it
_ANY_SELECTION: Final[dict[str, Action]] = {"point": (0, 0), "bbox": (0, 0, 0, 0), "mask": ()}


class StateView(NamedTuple):
    """The visible part of a state, on the host."""

    canvas: Int8[np.ndarray, "H W"]  # 0 .. 9, -1 outside the active area
    clipboard: Int8[np.ndarray, "H W"]  # -1 where the clipboard is empty
    selected: Bool[np.ndarray, "H W"]  # cells that the last action used
    step_count: Int32[np.ndarray, ""]
    terminated: Bool[np.ndarray, ""]
    truncated: Bool[np.ndarray, ""]

    @property
    def grid(self) -> Int8[np.ndarray, "h w"]:
        """The active area."""
        return crop_padding(self.canvas)

    @property
    def clipboard_box(self) -> Int8[np.ndarray, "h w"] | None:
        """The smallest box around the cells in the clipboard; None if it is empty."""
        cells = np.argwhere(self.clipboard > c.PADDING)
        if not len(cells):
            return None
        bottom, right = cells.max(axis=0)
        return self.clipboard[: bottom + 1, : right + 1]


class StepResult(NamedTuple):
    """State and outcome after a reset or a step."""

    state: ArcEnvState
    reward: float
    similarity: float | None  # 0 .. 1; None where the target is hidden
    is_solved: bool


class Session:
    """The environment on the full canvas, compiled once for all pairs of some tasks."""

    def __init__(self, tasks: TaskSet, action_format: ActionFormat):
        """Compile reset and step."""
        self.tasks = tasks
        self.action_format: ActionFormat = action_format
        # One compiled program for both kinds of pairs: demonstrations show the similarity, tests hide it.
        self._env, self._params = make(
            tasks,
            selection_format=action_format,
            mode="trials",
            score_on_submit=True,
            max_episode_steps=MOST_STEPS,
            max_grid_height=FULL_CANVAS[0],
            max_grid_width=FULL_CANVAS[1],
            history_enabled=False,
            invalid_action_policy="noop",
        )
        self.step(self.reset(PairId(tasks.task_ids[0], "train", 0)).state, (c.COPY, *_ANY_SELECTION[action_format]))

    def reset(self, pair_id: PairId) -> StepResult:
        """Start an episode on a pair of the tasks."""
        pair_index = pair_id.pair_index
        if pair_id.split == "test":  # the environment counts tests after demonstrations: of 3 + 1 pairs test 0 is 3
            pair_index += len(self.tasks.raw_task(pair_id.task_id).train)
        task_index = self.tasks.index_of(pair_id.task_id)
        return self._result(self._env.reset(jax.random.key(0), self._params, task_index, pair_index)[0], 0.0)

    def step(self, state: ArcEnvState, action: Action) -> StepResult:
        """Take a step with an action that :func:`jaxarc.experts.host_canvas.check_action` accepts."""
        one = jax.tree.map(lambda leaf: leaf[0], actions_of([action], self.action_format, FULL_CANVAS))
        state, _, reward, _, _ = self._env.step(state, one, self._params)
        return self._result(state, float(reward))

    def view(self, state: ArcEnvState) -> StateView:
        """Copy the visible part of a state to the host."""
        return StateView(*map(np.asarray, _visible(state)))

    def _result(self, state: ArcEnvState, reward: float) -> StepResult:
        info = _info(self._env, state, self._params)
        hidden = int(state.pair_index) >= len(self.tasks.tasks[int(state.task_index)].train)
        return StepResult(state, reward, None if hidden else float(info["similarity"]), bool(info["success"]))


@eqx.filter_jit
def _info(env: Environment[ArcEnvState, EnvParams], state: ArcEnvState, params: EnvParams) -> Info:
    return env.info(state, params)


@jax.jit
def _visible(state: ArcEnvState) -> tuple[jax.Array, ...]:
    grids = (state.working_grid, state.clipboard, state.selected)
    return (*grids, state.step_count, state.terminated, state.truncated)
