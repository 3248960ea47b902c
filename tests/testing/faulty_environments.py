"""A toy that keeps the contract, one that resets itself, and a subclass of them for each way to break it."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jaxtyping import Array

from jaxarc.constants import SUBMIT
from jaxarc.envs import Environment, EnvParams
from jaxarc.envs.action_space import action_space
from jaxarc.primitives import with_batch_rule
from jaxarc.spaces import Box
from jaxarc.wrappers.wrapper import Wrapper

KEPT = []  # what a faulty environment holds back


class ToyState(eqx.Module):
    key: Array
    grid: Array
    answer: Array
    task_index: Array
    step_count: Array
    terminated: Array
    truncated: Array


class Toy(Environment[ToyState, EnvParams]):
    """Fills cells with colors: pays 1 for color 1, ends with a submit or after ``max_episode_steps``."""

    def reset(self, key, params, task_index=None, pair_index=None):
        key_task, key_state = jax.random.split(key)
        task = jax.random.categorical(key_task, jnp.log(params.weights)).astype(jnp.int32)
        state = self.start(key_state, task, params)
        return state, self.observe(state, params)

    def start(self, key, task, params):
        row = params.tasks.first_pair[task]
        grid = params.tasks.inputs[row].reshape(params.tasks.grid_shape)
        answer = params.tasks.outputs[row + params.tasks.num_train[task]]
        no = jnp.bool_(False)
        return ToyState(key, grid, answer, task, jnp.int32(0), no, no)

    def reset_next(self, state, params):
        return self.reset(state.key, params)

    def step(self, state, action, params):
        done = state.terminated | state.truncated
        after = self.change(state, action, params)
        after = jax.tree.map(lambda old, new: jnp.where(done, old, new), state, after)
        reward = jnp.where(done, 0, (action.operation == 1).astype(jnp.float32))
        return after, self.observe(after, params), reward, after.terminated | after.truncated, self.info(after, params)

    def change(self, state, action, params):
        submits = action.operation == SUBMIT
        color = jnp.where(submits, state.grid[action.row, action.col].astype(jnp.int32), action.operation % 10)
        step_count = state.step_count + 1
        limit = params.config.environment.max_episode_steps
        return dataclasses.replace(
            state,
            grid=state.grid.at[action.row, action.col].set(color.astype(jnp.int8)),
            step_count=step_count,
            terminated=submits,
            truncated=~submits & (step_count >= limit),
        )

    def observe(self, state, params):
        return state.grid

    def action_space(self, params):
        return action_space(params.config)

    def observation_space(self, params):
        return Box(-1, 9, params.config.grid_shape, jnp.int8)

    def info(self, state, params):
        return {
            "terminated": state.terminated,
            "truncated": state.truncated,
            "discount": jnp.where(state.terminated, jnp.float32(0), jnp.float32(1)),
            "task_index": state.task_index,
        }


class ToyAutoReset(Wrapper[ToyState]):
    """Resets a toy in the step that ends an episode."""

    def __init__(self, env):
        self.env = env

    def step(self, state, action, params):
        ended, last, reward, done, info = self.env.step(state, action, params)
        after = jax.tree.map(lambda new, old: jnp.where(done, new, old), self.env.reset_next(ended, params)[0], ended)
        return after, self.env.observe(after, params), reward, done, {**info, "final_observation": last}

    def info(self, state, params):
        return {**self.env.info(state, params), "final_observation": self.env.observe(state, params)}


# Types.
class ReturnsAnotherStateDtype(Toy):
    def change(self, state, action, params):
        after = super().change(state, action, params)
        return dataclasses.replace(after, step_count=after.step_count.astype(jnp.float32))

    def step(self, state, action, params):
        state = dataclasses.replace(state, step_count=state.step_count.astype(jnp.float32))
        return super().step(state, action, params)


class ForgetsDiscount(Toy):
    def info(self, state, params):
        return {name: value for name, value in super().info(state, params).items() if name != "discount"}


class BranchesOnValues(Toy):
    def change(self, state, action, params):
        return super().change(state, action, params) if action.operation == SUBMIT else state


class RefusesBatches(Toy):
    def change(self, state, action, params):
        io_callback(lambda step: None, None, state.step_count, ordered=True)
        return super().change(state, action, params)


# Values.
class LeavesItsSpace(Toy):
    def observe(self, state, params):
        return jnp.where(state.step_count == 2, state.grid + jnp.int8(20), state.grid)


class DividesByZero(Toy):
    def info(self, state, params):
        return {**super().info(state, params), "mean": 1 / state.step_count.astype(jnp.float32)}


class ShowsTheStateBefore(Toy):
    def step(self, state, action, params):
        after, _, *rest = super().step(state, action, params)
        return after, self.observe(state, params), *rest


class EndsTwice(Toy):
    def change(self, state, action, params):
        after = super().change(state, action, params)
        return dataclasses.replace(after, truncated=after.truncated | after.terminated)


class GoesOnAfterTheEnd(Toy):
    def step(self, state, action, params):
        after = self.change(state, action, params)
        reward = jnp.float32(1)
        return after, self.observe(after, params), reward, after.terminated | after.truncated, self.info(after, params)


class PaysNothingWhereItGoesOn(Toy):
    def step_and_reset(self, state, action, params):
        after, observation, reward, *rest = super().step_and_reset(state, action, params)
        return after, observation, jnp.zeros_like(reward), *rest


class BranchesWhereItGoesOn(Toy):
    def step_and_reset(self, state, action, params):
        after, observation, reward, done, info = super().step_and_reset(state, action, params)
        return after, observation, reward if done else -reward, done, info


# Calls.
class CountingState(ToyState):
    count: int = eqx.field(static=True, default=0)


class CountsInStaticField(Toy):
    """Each reset_next changes the type of the state, through a counter that lives in Python."""

    restarts = itertools.count(1)

    def start(self, key, task, params):
        return CountingState(**vars(super().start(key, task, params)))

    def reset_next(self, state, params):
        state, observation = super().reset_next(state, params)
        return dataclasses.replace(state, count=next(self.restarts)), observation


class DrawsFromNumpy(Toy):
    """Compiled, the draw is a constant; called from Python it is new each time."""

    def change(self, state, action, params):
        after = super().change(state, action, params)
        noise = jnp.asarray(np.random.default_rng().integers(0, 2**31 - 1, dtype=np.int32))
        return dataclasses.replace(after, task_index=state.task_index + noise % 100_003)


class ChangesItsArguments(Toy):
    def step(self, state, action, params):
        result = super().step(state, action, params)
        object.__setattr__(state, "grid", state.grid + jnp.int8(1))
        return result


class RemembersCalls(Toy):
    """Reads a counter on the host that every call moves on."""

    def change(self, state, action, params):
        after = super().change(state, action, params)
        count = jax.pure_callback(self.count, jax.ShapeDtypeStruct((), jnp.int32), vmap_method="sequential")
        return dataclasses.replace(after, task_index=count)

    def count(self):
        KEPT.append(0)
        return np.int32(len(KEPT))


class LooksAtNeighbors(Toy):
    def change(self, state, action, params):
        after = super().change(state, action, params)
        place = with_batch_rule(lambda rows, _: jnp.cumsum(rows, axis=0, dtype=jnp.int32))
        return dataclasses.replace(after, task_index=place(after.step_count, ()))


# Secrets.
class HintsInInfo(Toy):
    def info(self, state, params):
        return {**super().info(state, params), "hint": state.answer[0]}


class CountsTheAnswersCells(Toy):
    def info(self, state, params):
        return {**super().info(state, params), "size": (state.answer >= 0).sum(dtype=jnp.int32)}


class SizesAnArrayByTheAnswers(Toy):
    """Made from params; its info has an entry for each cell of the hidden answers."""

    def __init__(self, params):
        rows = params.tasks.first_pair + params.tasks.num_train
        self.num_cells = int((params.tasks.outputs[rows] >= 0).sum())

    def info(self, state, params):
        return {**super().info(state, params), "seen": jnp.zeros(self.num_cells, jnp.bool_)}


class SaysWhetherASubmitIsRight(Toy):
    def info(self, state, params):
        right = state.terminated & (state.grid.reshape(-1) == state.answer).all()
        return {**super().info(state, params), "right": right}


class ShowsTheLastAnswer(Toy):
    def reset_next(self, state, params):
        after, _ = super().reset_next(state, params)
        after = dataclasses.replace(after, grid=state.answer.reshape(after.grid.shape))
        return after, self.observe(after, params)
