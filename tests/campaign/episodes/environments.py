"""A batch of environments under one combination of options, driven through the public functions alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from compiling import AS_USERS, QUICKLY

import jaxarc
from campaign.episodes.drawn_episodes import GENERATED_COUNTS, Actions, DrawnTasks
from campaign.episodes.episode_options import SCAN_STEPS, Setting
from jaxarc.datasets import TaskSet
from jaxarc.envs import ArcEnvironment, BboxAction, JaxArcConfig, MaskAction, PointAction
from jaxarc.envs.functional import batch_reset, batch_step
from jaxarc.tasks import RawTask, create_task
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.wrappers import AutoReset

Facts = dict[str, np.ndarray]  # by the expression that shows it, with a leading axis B

STATE_VIEWS = (
    *("working_grid", "working_grid_mask", "target_grid", "target_grid_mask", "clipboard", "selected", "grid_size"),
    *("step_count", "submission_count", "task_index", "pair_index", "solved_pairs", "is_solved", "similarity_score"),
    *("terminated", "truncated", "done", "key"),
)
RULES = ("gravity", "color-map")  # of generated tasks
BYTES_AT_ONCE = 24 * 2**20  # of what one step shows
BATCHES = {"one": 1, "few": 6, "many": 900}


class Environments:
    """Environments that play drawn tasks; `load` them first, then `reset`, then `step` or `scan`."""

    def __init__(self, setting: Setting):
        self.setting = setting
        at_once = _bytes_shown(setting) * (SCAN_STEPS if setting["entry"] == "scan" else 1)
        self.num_envs = min(BATCHES[setting["batch"]], max(12, BYTES_AT_ONCE // at_once))
        if setting["entry"] == "nested":
            self.num_envs -= self.num_envs % 3
        self.plays_guide = setting["entry"] == "guide"
        self.env = AutoReset(ArcEnvironment()) if setting["auto_reset"] else ArcEnvironment()
        self.config = JaxArcConfig().with_fields(**setting.config_fields())
        self.played: Any = None  # params, or the task of the guide API
        self.tasks: DrawnTasks | None = None
        options = AS_USERS if setting["compiled"] == "as users do" else QUICKLY
        compiled = lambda function: jax.jit(function, compiler_options=options)
        self._reset = compiled(self._reset_batch)
        self._step = compiled(self._step_batch)
        self._scan = compiled(lambda *args: jax.lax.scan(lambda s, a: self._step_batch(s, a, args[2]), *args[:2]))
        self._history = compiled(lambda states: states.action_history)
        self._info = compiled(self.env.info)
        self._facts = compiled(lambda state: {name: fact[None] for name, fact in _facts(state).items()})

    def load(self, tasks: DrawnTasks | None, seed: int) -> None:
        """Takes other tasks; None: ones that are generated."""
        self.tasks, setting = tasks, self.setting
        if tasks is None:
            sides = (2, min(setting.shape) - 1)
            generator = procedural_tasks(RULES, setting.shape, *GENERATED_COUNTS, side=sides)
            self.env_params(jaxarc.make(generator, self.config)[1])
        elif self.plays_guide:
            chosen = seed % len(tasks.train)
            task = create_task(tasks.train[chosen], tasks.test[chosen], setting.shape)
            self.played, self.tasks = task, DrawnTasks([tasks.train[chosen]], [tasks.test[chosen]], [1.0])
        else:
            pairs = zip(tasks.train, tasks.test, strict=True)
            task_set = TaskSet("drawn", tuple(RawTask(f"drawn/{i}", *both) for i, both in enumerate(pairs)))
            weights = dict(zip(task_set.task_ids, tasks.weights, strict=True))
            self.env_params(jaxarc.make(task_set, self.config, tasks=weights)[1])

    def env_params(self, params: Any) -> None:
        """Takes params, on one pair only where the setting says so."""
        self.played = params.only(pair_index=0) if self.setting["place"] == "one pair only" else params

    def reset(self, seed: int, places: tuple[np.ndarray, np.ndarray] | None) -> Facts:
        """Starts an episode in every environment.

        Args:
            seed: of their keys.
            places: task and pair of each, int32[B]; None: they are drawn.
        """
        keys = jax.random.split(jax.random.key(seed), self.num_envs)
        if self.setting["entry"] != "single":
            self.states, facts = self._reset(keys, places, self.played)
            return jax.device_get(facts)
        place = () if places is None else [int(place[0]) for place in places]
        self.states, observation = self.env.reset(keys[0], self.played, *place)
        info = self._info(self.states, self.played)
        return self._alone(_named("observation", observation) | _named("info", info))

    def step(self, actions: Actions) -> Facts:
        """Takes one step in every environment.

        Raises:
            RuntimeError: the policy is "raise" and an action is wrong; the states stay as they are.
        """
        if self.setting["entry"] != "single":
            states, facts = self._step(self.states, self._structured(actions), self.played)
            facts = jax.device_get(facts)  # here an error of the step shows, before the states are taken over
            self.states = states
            return facts
        action = self._structured(Actions(actions.operations[0], actions.selections[0]))
        self.states, observation, reward, done, info = self.env.step(self.states, action, self.played)
        return self._alone(
            {"reward": reward, "done": done, **_named("observation", observation), **_named("info", info)}
        )

    def scan(self, actions: list[Actions]) -> list[Facts]:
        """Takes several steps in one compiled scan."""
        stacked = [np.stack(field) for field in zip(*((a.operations, a.selections) for a in actions), strict=True)]
        self.states, facts = self._scan(self.states, self._structured(Actions(*stacked)), self.played)
        facts = jax.device_get(facts)
        return [{name: fact[step] for name, fact in facts.items()} for step in range(SCAN_STEPS)]

    def history(self) -> np.ndarray:
        """Returns the records of the last actions, float32[B, capacity, fields]."""
        history = np.asarray(self._history(self.states))
        return history[None] if self.setting["entry"] == "single" else history

    def _reset_batch(self, keys: Any, places: Any, played: Any) -> Any:
        if self.plays_guide:
            states, observation = batch_reset(keys, self.config, played)
            return states, {**_facts(states), **_named("observation", observation)}
        reset = jax.vmap(self.env.reset, (0, None, 0, 0) if places is not None else (0, None, None, None))
        states, observation = reset(keys, played, *(places or (None, None)))
        info = self.env.info(states, played)
        return states, {**_facts(states), **_named("observation", observation), **_named("info", info)}

    def _step_batch(self, states: Any, actions: Any, played: Any) -> Any:
        if self.plays_guide:
            after, observation, reward, done, info = batch_step(states, actions, self.config)
        elif self.setting["entry"] == "nested":
            split = lambda tree: jax.tree.map(lambda x: x.reshape(3, -1, *x.shape[1:]), tree)
            step = jax.vmap(jax.vmap(self.env.step, (0, 0, None)), (0, 0, None))
            received = step(split(states), split(actions), played)
            join = lambda x: x.reshape(-1, *x.shape[2:])
            after, observation, reward, done, info = jax.tree.map(join, received)
        else:
            step = jax.vmap(self.env.step, (0, 0, None))
            after, observation, reward, done, info = step(states, actions, played)
        named = {**_named("observation", observation), **_named("info", info)}
        return after, {**_facts(after), "reward": reward, "done": done, **named}

    def _alone(self, received: dict[str, Any]) -> Facts:
        facts = {name: np.asarray(fact)[None] for name, fact in received.items()}
        return {**jax.device_get(self._facts(self.states)), **facts}

    def _structured(self, actions: Actions) -> Any:
        operations, selections = actions.operations, actions.selections
        match self.setting["selection_format"]:
            case "point":
                return PointAction(operations, *np.moveaxis(selections, -1, 0))
            case "bbox":
                return BboxAction(operations, *np.moveaxis(selections, -1, 0))
            case _:
                return MaskAction(operations, selections)


def _facts(state: Any) -> dict[str, Any]:
    facts = {f"state.{name}": getattr(state, name) for name in STATE_VIEWS}
    for part in ("augmentation", "pairs"):
        facts |= _named(f"state.{part}", getattr(state, part))
    return facts


def _named(name: str, tree: Any) -> dict[str, Any]:
    """Returns the leaves of a tree by the expressions that show them."""
    return {name + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def step_cost(setting: Setting) -> float:
    """Returns about how many microseconds a step of one environment of many takes, comparison included."""
    cells = setting.shape[0] * setting.shape[1]
    return 50 + _bytes_shown(setting) / 100 + cells * (5 if setting["compiled"] == "quickly" else 0.1)


def _bytes_shown(setting: Setting) -> int:
    """Returns about how many bytes one environment shows in a step."""
    cells = setting.shape[0] * setting.shape[1]
    per_cell = {"planes": 1, "one_hot": 11, "tokens": 4}[setting["grid_format"]]
    most_train = {"one pair": 1, "few pairs": 5, "generated": 3}.get(setting["tasks"], 31)
    grids = 3 + (2 * most_train if setting["include_demonstrations"] else 0)
    finals = 2 if setting["auto_reset"] else 1
    fields = cells if setting["selection_format"] == "mask" else 4
    return cells * (grids * per_cell * finals + 6) + 4 * fields * setting.history_capacity
