"""Trained policies as agents, and how they are loaded from a run folder, without the rest of the training state."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from jaxarc.agents.experiment import Experiment
from jaxarc.agents.games.game_policy import GamePolicy
from jaxarc.agents.policy import ActorCritic, EditPolicy
from jaxarc.agents.predictor import Predictor, PredictorState, answer_shown_config, predict_answer, with_answer
from jaxarc.compilation import require_own_jax
from jaxarc.config import JaxArcConfig
from jaxarc.config.agent_training import Precision, WhichCheckpoint
from jaxarc.device_arrays import device_array
from jaxarc.envs.structured_actions import BboxAction, StructuredAction
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory
from jaxarc.files import locate_run
from jaxarc.games import game
from jaxarc.nn.layers import DTYPES, cast_floats, products_in, require_precision
from jaxarc.prng import keys_of_seeds
from jaxarc.runs.checkpoint import CheckpointError
from jaxarc.runs.folder import RunFolder, open_run_folder
from jaxarc.runs.kind import SavedRun
from jaxarc.types import Observation, PRNGKey

# Where they are in a training state.
_POLICY = "learner.policy"
_PREDICTOR = "predictor_state.predictor"


def policy_of(
    saved: SavedRun, seed: int | None = None, rules: JaxArcConfig | None = None, precision: Precision = "float32"
) -> tuple[Any, Predictor | None]:
    """Return the policy of one seed, and the predictor of its targets; None where the answer is shown.

    It is an :class:`EditPolicy`, or of a game a :class:`~jaxarc.agents.games.game_policy.GamePolicy`.

    Args:
        saved: a run of agents.
        seed: of the agent; None for the run's first.
        rules: what it will play by, with canvas and time limit as they please; None for those it learned by.
        precision: that its weights are cast to; logits are float32.

    Raises:
        CheckpointError: the run has no such seed, or weights that only fit the canvas that it learned on.
    """
    experiment = saved.experiment
    seeds = experiment.training.seeds
    if seed is not None and seed not in seeds:
        raise CheckpointError(f"the run {saved.path} has no seed {seed}; it has {', '.join(map(str, seeds))}")
    like = policy_shapes(experiment, rules or experiment.environment)
    if rules is not None and rules != experiment.environment:
        require_weights_fit(saved.path, experiment, like)
    # Only the policy's part of the training state is taken, for all seeds; the leading axis then gives the seed's.
    parts = {name: saved.checkpoint.load(part, within=name) for name, part in like.items()}
    index = 0 if seed is None else seeds.index(seed)
    # JAX would compile each ``[index]``.
    mine = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[index]), parts)
    mine = cast_floats(mine, DTYPES[precision])
    return mine[_POLICY], mine.get(_PREDICTOR)


def load_policy(
    folder: RunFolder,
    which: WhichCheckpoint,
    seed: int | None = None,
    rules: JaxArcConfig | None = None,
    precision: Precision = "float32",
) -> tuple[Any, Predictor | None]:
    """Load the policy of one seed from the folder of a run; see :meth:`SavedRun.open` and :func:`policy_of`."""
    return policy_of(SavedRun.open(folder, which).require_agent(), seed, rules, precision)


class EditAgent(Agent):
    """A trained :class:`EditPolicy`: the first attempt is its likeliest choice at every step, the others are drawn.

    Where the answer is hidden, the predictor makes one before the first step, and the policy edits towards it.
    """

    policy: EditPolicy
    predictor: Predictor | None = None  # None where the answer is shown

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        # The predictor takes a batch, here of one. The answer is kept in memory: it is the same at every step.
        answers = predict_answer(self.predictor, jax.tree.map(lambda x: x[None], observation))
        return spec.attempt_index, None if answers is None else answers[0]

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        attempt_index, answer = memory
        batch = jax.tree.map(lambda x: x[None], with_answer(observation, answer))
        policy = self.policy.on_canvas_of(batch)
        # Both are computed, and the number of the attempt chooses: under ``vmap`` attempts are mixed in a batch.
        likeliest = policy.greedy(batch)
        drawn = policy.sample(key, batch).choice
        edit = jax.tree.map(lambda a, b: jnp.where(attempt_index == 0, a, b), likeliest, drawn)
        return jax.tree.map(lambda x: x[0], policy.to_action(edit)), memory


class TrainedAgent(eqx.Module):
    """The agent of a run, for loops in Python: ``action = agent.act(key, observation)``.

    It acts in one environment and has no memory; ``jax.vmap(agent.act)`` acts in many. It is a policy, so rollouts,
    :func:`jaxarc.evaluate` and :func:`jaxarc.record_episode` take it as it is.
    """

    policy: EditPolicy
    config: JaxArcConfig = eqx.field(static=True)  # the rules that it plays by
    samples: bool = eqx.field(static=True)  # draws its actions; otherwise it takes the likeliest
    precision: Precision = eqx.field(static=True, default="float32")  # of the weights and of products
    predictor: Predictor | None = None  # of the answer; None where it is shown

    def act(self, key: PRNGKey, observation: Observation) -> BboxAction:
        """Return the action for the observation of one environment with the rules of ``config``."""
        require_own_jax()
        with products_in(self.precision):
            return self._act(key, observation)

    def _act(self, key: PRNGKey, observation: Observation) -> BboxAction:
        batch = jax.tree.map(lambda leaf: device_array(leaf)[None], observation)
        batch = with_answer(batch, predict_answer(self.predictor, batch))
        policy = self.policy.on_canvas_of(batch)
        edit = policy.sample(key, batch).choice if self.samples else policy.greedy(batch)
        return jax.tree.map(lambda leaf: leaf[0], policy.to_action(edit))

    def __call__(self, key: PRNGKey, observation: Observation) -> BboxAction:
        return self.act(key, observation)

    def __repr__(self) -> str:
        count = f"{sum(leaf.size for leaf in jax.tree.leaves(self)):,} weights in {self.precision}"
        canvas = "{}x{}".format(*self.config.grid_shape)
        answer = "predicts the answer" if self.predictor is not None else "sees the answer"
        return f"TrainedAgent({count}, canvas {canvas}, {answer}, samples={self.samples})"


def load_agent(
    run: str | Path,
    *,
    checkpoint: WhichCheckpoint = "best",
    seed: int | None = None,
    samples: bool = False,
    precision: Precision = "float32",
    **fields: Any,
) -> TrainedAgent:
    """Load a trained agent from the folder of a run, or the one that this package brings.

    ``agent = load_agent("ladder_l2_small")`` edits real tasks of up to 10x10 cells into the answer that it is shown;
    ``env, params = jaxarc.make("arc-agi-1/evaluation:max_side=10", agent.config)`` makes an environment that it plays.

    Args:
        run: the folder, such as ``runs/2026-01-01_12-00-00-ladder_l2_small``, or the name ``ladder_l2_small``.
        checkpoint: the one with the highest evaluation solve rate, or the newest.
        seed: of a run with several seeds: the agent of this one; None for the first.
        samples: whether it draws its actions, as in training, or takes the likeliest.
        precision: of its weights and products. ``"bfloat16"`` halves the memory of the weights, and is faster on GPUs
            since Ampere and on TPUs; ``"float16"`` is for older GPUs, ``"tensorfloat32"`` rounds products alone.
        **fields: changes of the rules that it plays by, such as ``max_grid_height=30``.

    Raises:
        NotARunError: it is not the folder of a run.
        CheckpointError: there is no agent that can be used.
        ConfigValidationError: a field is unknown, or the run is of another version.
        ValueError: the precision is unknown.
    """
    require_precision(precision, "load_agent")
    saved = SavedRun.open(open_run_folder(locate_run(Path(run))), checkpoint).require("edit")
    rules = saved.experiment.environment.with_fields(**fields)
    policy, predictor = policy_of(saved, seed, rules, precision)
    return TrainedAgent(policy, rules, samples, precision, predictor)


def require_weights_fit(run: Path, experiment: Experiment, like: dict[str, Any]) -> None:
    """Raise CheckpointError if the run's agent has weights for the cells of another canvas than ``like``'s."""
    learned = policy_shapes(experiment, experiment.environment)
    # Shapes for the canvas that it learned on, and for the one that it is to play on: equal ones mean that weights fit.
    shapes = [[leaf.shape for leaf in jax.tree.leaves(tree)] for tree in (learned, like)]
    if shapes[0] != shapes[1]:
        height, width = experiment.environment.grid_shape
        raise CheckpointError(
            f"the agent of {run} has weights for the cells of its canvas of {height}x{width}, so it plays on "
            "no other; train one with network.kind=relational, which has none"
        )


def policy_shapes(experiment: Experiment, rules: JaxArcConfig) -> dict[str, Any]:
    """Return the shapes of the parts of the policies of all seeds, by their paths in a training state."""
    train_config = experiment.train_config
    is_hidden = train_config.answer.is_hidden
    shown = answer_shown_config(rules) if is_hidden else rules

    def make_policy(key: Key[Array, ""]) -> ActorCritic:
        if experiment.kind == "game":
            return GamePolicy.create(key, game(experiment.game.name), train_config.network)
        return EditPolicy.create(key, shown, train_config.network)

    def make(key: Key[Array, ""]) -> dict[str, Any]:
        policy = {_POLICY: make_policy(key)}
        return policy | ({_PREDICTOR: PredictorState.create(key, train_config).predictor} if is_hidden else {})

    keys = keys_of_seeds(experiment.training.seeds)
    return jax.eval_shape(jax.vmap(make), keys)
