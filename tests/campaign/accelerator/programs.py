"""The programs that are looked at: rollouts, resets, the guide's steps, an update of training, an evaluation."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
from surrogate_rows import WORKLOADS
from surrogate_workload import Learner

import jaxarc
from jaxarc.agents.train import run_updates_in_place
from jaxarc.agents.updates import make_params, measure, start_training
from jaxarc.cli.settings import read_experiment
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import load_tasks
from jaxarc.envs import MaskAction, batch_reset, batch_step
from jaxarc.prng import keys_of_seeds
from jaxarc.surrogate import create_jax_surrogate_train_step, kl_divergence_loss_jax
from jaxarc.tasks import create_task
from jaxarc.unroll import RandomPolicy, unroll, vectorize
from jaxarc.wrappers import AutoReset

Parts = tuple[Any, tuple[Any, ...], dict[str, Any]]  # a jitted function, its arrays or their shapes, its statics
ROLLOUT_STEPS: Final = 64
NUM_ENVS: Final = 65_536
TRAINED_ENVS: Final = 4_096
EVALUATED_ENVS: Final = 256  # slots that play side by side
SIDES: Final = (5, 10, 30)
SURROGATES: Final = ("sets-128",)
FORMATS: Final = ("point", "bbox", "mask")


@dataclass(frozen=True)
class Program:
    """What is compiled."""

    name: str
    what: str
    num_envs: int  # that a unit of work advances; bytes are told for each
    in_loop: bool  # a unit is a turn of the longest loop, else the whole program
    build: Callable[[], Parts]
    steps_of_each: int = 1  # steps of each environment in a unit
    backend: str = "gpu"  # or "tpu"

    @property
    def steps(self) -> int:
        """Steps of environments in a unit."""
        return self.num_envs * self.steps_of_each


def programs() -> list[Program]:
    """List all programs."""
    rollouts = [
        Program(
            f"rollout-{selection}-{side}",
            f"a step of a rollout, {side}x{side}, {selection} actions",
            NUM_ENVS,
            True,
            functools.partial(_rollout, side, selection),
        )
        for side in SIDES
        for selection in FORMATS
    ]
    return [
        *rollouts,
        Program(
            "rollout-bbox-5-v5e",
            "the step of rollout-bbox-5 on a TPU v5e",
            NUM_ENVS,
            True,
            functools.partial(_rollout, 5, "bbox"),
            backend="tpu",
        ),
        Program("reset-30", "resets, 30x30", NUM_ENVS, False, _reset),
        Program("batch-step-30", "the guide's batch_step, 30x30, mask actions", NUM_ENVS, False, _guide_step),
        Program("update-ladder_l2", "a PPO update, ladder_l2", TRAINED_ENVS, False, _update, 16),
        Program("measure-ladder_l2", "a step of an evaluation, ladder_l2", EVALUATED_ENVS, True, _measure),
        *(
            Program(f"surrogate-{name}", "a step of a surrogate", WORKLOADS[name].num_examples, False, build)
            for name in SURROGATES
            for build in [functools.partial(_surrogate, name)]
        ),
    ]


def _make(side: int, selection: str, policy: str = "noop") -> tuple[Any, Any]:
    fits = {} if side == 30 else {"max_grid_height": side, "max_grid_width": side, "too_large": "skip"}
    return jaxarc.make(
        "arc-agi-1/training",
        selection_format=selection,
        max_episode_steps=100,
        invalid_action_policy=policy,
        history_enabled=False,
        **fits,
    )


def _rollout(side: int, selection: str) -> Parts:
    env, params = _make(side, selection)
    env = AutoReset(env)
    policy = vectorize(RandomPolicy(env.action_space(params)))

    @functools.partial(jax.jit, donate_argnums=0)
    def roll(states: Any, key: Any, params: Any) -> Any:
        record = lambda transition: (transition.reward.sum(), transition.done.sum())

        def step(states: Any, key: Any) -> Any:
            keys = jax.random.split(key, NUM_ENVS)[None]
            states, facts = unroll(env, params, policy, states, keys, record)
            return states, jax.tree.map(lambda x: x[0], facts)

        return jax.lax.scan(step, states, jax.random.split(key, ROLLOUT_STEPS))

    key = jax.random.key(0)
    keys = jax.ShapeDtypeStruct((NUM_ENVS,), key.dtype)
    states = jax.eval_shape(lambda keys, params: jax.vmap(env.reset, (0, None))(keys, params)[0], keys, params)
    return roll, (states, key, params), {}


def _reset() -> Parts:
    env, params = _make(30, "bbox")
    keys = jax.ShapeDtypeStruct((NUM_ENVS,), jax.random.key(0).dtype)
    return jax.jit(jax.vmap(env.reset, (0, None))), (keys, params), {}


def _guide_step() -> Parts:
    config = JaxArcConfig().with_fields(history_enabled=False)  # as it is by default otherwise: mask actions, "raise"
    raw = load_tasks("arc-agi-1/training")[0]
    task = create_task(raw.train, raw.test, config.grid_shape)
    keys = jax.ShapeDtypeStruct((NUM_ENVS,), jax.random.key(0).dtype)
    states = jax.eval_shape(lambda keys, task: batch_reset(keys, config, task)[0], keys, task)
    height, width = config.grid_shape
    cells = jax.ShapeDtypeStruct((NUM_ENVS, height, width), jnp.bool_)
    actions = jax.eval_shape(MaskAction, jax.ShapeDtypeStruct((NUM_ENVS,), jnp.int32), cells)
    return jax.jit(lambda states, actions: batch_step(states, actions, config)), (states, actions), {}


def _update() -> Parts:
    experiment, params, state = training_parts()
    statics = {"train_config": experiment.train_config, "length": 1}
    return run_updates_in_place, (state, params), statics


def _measure() -> Parts:
    _, params, state = training_parts()
    return measure, (state.players, params), {}


def _surrogate(name: str) -> Parts:
    learner = Learner(WORKLOADS[name], create_jax_surrogate_train_step, kl_divergence_loss_jax)
    arrays, static = eqx.partition((learner.model, learner.state), eqx.is_array)

    def update(arrays: Any, batch: Any, candidates: Any) -> Any:
        model, state = eqx.combine(arrays, static)
        return eqx.filter(learner.step(model, state, batch, candidates), eqx.is_array)

    return jax.jit(update, donate_argnums=0), (arrays, learner.batch, learner.candidates), {}


def training_parts(num_envs: int = TRAINED_ENVS) -> tuple[Any, Any, Any]:
    """Return the experiment, its params, and the shapes of its first state."""
    experiment = read_experiment(["experiment=ladder_l2", f"agent.num_envs={num_envs}"])
    params = make_params(load_tasks(experiment.task.train_dataset), experiment.environment)
    start = lambda keys, params: start_training(keys, params, experiment.train_config, experiment.curriculum)
    return experiment, params, jax.eval_shape(start, keys_of_seeds([0]), params)
