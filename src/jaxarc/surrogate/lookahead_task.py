"""The lookahead expert as a task: a distribution over k candidate edits, in states between input and target.

Episodes start as the rules say, partly solved for example, and go on with an edit that the expert likes or, with a
small probability, with any candidate. So the examples hold fresh inputs, half painted grids, spoiled grids, and solved
ones, in which a submit is best. Candidates are drawn with the target in sight, for expert and surrogate alike.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32

from jaxarc.agents.updates import make_params
from jaxarc.config import JaxArcConfig, LookaheadConfig, TaskConfig
from jaxarc.constants import OPERATION_FAMILIES
from jaxarc.datasets import TaskSet
from jaxarc.datasets.training_pairs import left_out, load_pairs
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.candidates import candidates_of_canvas, require_count
from jaxarc.experts.canvas_state import CanvasState, canvas_of_observation, canvas_of_state, check_edits
from jaxarc.experts.lookahead import LookaheadAgent, score_candidates, soft_choice
from jaxarc.nn.update import predict
from jaxarc.prng import as_typed_key
from jaxarc.surrogate.agreement import Agreement, agreement
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidate_features import CandidateSet, describe_boxes, describe_grids
from jaxarc.surrogate.scorers import CountingScorer, choose_box
from jaxarc.surrogate.surrogate_task import HELD_OUT_SEED, ExpertBatch, SurrogateTask
from jaxarc.surrogate.train_step import Model
from jaxarc.types import Observation, PRNGKey
from jaxarc.unroll import Policy, unroll
from jaxarc.wrappers import AutoReset

_ENV: Final = AutoReset(ArcEnvironment())
_EVAL_BATCH: Final = 256  # held-out examples in a batch, or as many as one episode gives


class LookaheadExamples(NamedTuple):
    """B states, k candidate edits of each, and the expert's distribution over them."""

    data: Float32[Array, "B H W 3"]  # working grid, target and input: -1 .. 9
    probs: Float32[Array, "B k"]  # softmax of score / temperature; 0 where not real
    scores: Float32[Array, "B k"]  # similarity after the action; 2 for a right submit, -1 for a wrong one
    actions: BboxAction  # [B, k]
    is_real: Bool[Array, "B k"]  # false for an invalid action and for one that repeats an earlier one


class LookaheadTask(SurrogateTask):
    """Pairs of ARC, and the lookahead expert's distribution over candidate boxes on the way to the target.

    Batch i of a seed has a random key of its own. The accuracy of an example is the probability that the expert gives
    to the candidates of the highest score: the scores are exact, and the temperature spreads the probability. The
    regret is the score of the best candidate minus that of the surrogate's first choice.

    Attributes:
        train_params: pairs that the model learns from, and rules.
        eval_params: held-out pairs, without augmentation.
        num_left_out: pairs of the held-out data set that training holds.
    """

    def __init__(
        self,
        train_params: EnvParams,
        eval_params: EnvParams,
        config: LookaheadConfig,
        num_left_out: int = 0,
    ):
        self.train_params = train_params
        self.eval_params = eval_params
        self.config = config
        self.num_left_out = num_left_out
        self._held_out: list[LookaheadExamples] = []

    @classmethod
    def load(cls, task: TaskConfig, rules: JaxArcConfig, config: LookaheadConfig) -> "LookaheadTask":
        """Load both data sets.

        Raises:
            UnknownDatasetError, TaskFormatError, ValueError: see :func:`jaxarc.datasets.training_pairs.load_pairs`.
            ValueError: there are too few candidates.
        """
        require_count(config.num_candidates, rules)
        train_params, eval_params, num_left_out = load_params(task, rules)
        return cls(train_params, eval_params, config, num_left_out)

    def about(self, task: TaskConfig) -> list[str]:
        return [
            f"Pairs of {task.train_dataset}, sides up to {task.max_side}; measured on those of "
            f"{task.evaluation_dataset}. **The answer is visible.**{left_out(self.num_left_out)}"
        ]

    def players(self, model: Model) -> list[tuple[str, Policy, EnvParams]]:
        rules, count = self.train_params.config, self.config.num_candidates
        policies = {"surrogate": SurrogateAgent(model, rules, count), "expert": LookaheadAgent(rules, count)}
        return [(name, policy, self.eval_params) for name, policy in policies.items()]

    def make_model(self, key: PRNGKey) -> CountingScorer:
        """Make a fresh scorer; the features of a candidate are the one-hot operation."""
        return CountingScorer(key)

    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Play episodes of training pairs, and ask the expert in each state."""
        key = jax.random.fold_in(jax.random.key(seed), step)
        examples = _draw_examples(key, self.train_params, self.config)
        labeled = TrainingBatchJAX(examples.data, examples.probs, _mass_on_best(examples))
        return ExpertBatch(labeled, _describe(examples))

    def held_out(self) -> list[LookaheadExamples]:
        """Return batches of held-out examples, which do not depend on the size of the training batches."""
        if not self._held_out:
            key = jax.random.key(HELD_OUT_SEED)
            self._held_out = [
                _draw_examples(jax.random.fold_in(key, i), self.eval_params, self.config.replace(num_examples=size))
                for i, size in enumerate(eval_batch_sizes(self.config.num_eval, self.config.episode_steps))
            ]
        return self._held_out

    def evaluate(self, model: Model) -> Agreement:
        """Compare a model with the expert on held-out pairs."""
        batches = self.held_out()
        logits = np.concatenate(
            [np.asarray(predict(model, examples.data, _describe(examples))) for examples in batches]
        )
        held_out = jax.tree.map(lambda *parts: np.concatenate(parts), *batches)
        # Operations are numbered family by family, so the number of families that end at or before one is its own.
        ends = [family.stop for family in OPERATION_FAMILIES.values()]
        families = np.searchsorted(ends, held_out.actions.operation, side="right")
        names = tuple(OPERATION_FAMILIES)
        return agreement(logits, held_out.probs, held_out.is_real, held_out.scores, families, names)


def load_params(task: TaskConfig, rules: JaxArcConfig) -> tuple[EnvParams, EnvParams, int]:
    """Load the pairs to learn from, and the held-out ones, each a task of its own and without augmentation.

    Returns:
        Both with the rules, and how many pairs of the held-out data set training holds, which are left out.
    """
    pairs = load_pairs(task, rules.grid_shape, augmentation=rules.augmentation)
    held_out = TaskSet("held-out pairs", tuple(pairs.eval)[pairs.num_train :])
    plain = rules.with_fields(recolor="none", symmetries="none")
    return make_params(pairs.train, rules), make_params(held_out, plain), pairs.num_left_out


def draw_examples(key: PRNGKey, params: EnvParams, config: LookaheadConfig) -> LookaheadExamples:
    """Make a batch from fresh episodes; it depends on the key alone, and compilation belongs to the caller."""
    # 64 examples of episodes with 8 steps are 8 episodes side by side. Each state that they pass is one example.
    key_start, key_play = jax.random.split(key)
    num_episodes = config.num_examples // config.episode_steps
    states, _ = jax.vmap(_ENV.reset, (0, None))(jax.random.split(key_start, num_episodes), params)

    def ask_expert(key: PRNGKey, observation: Observation, states: ArcEnvState) -> tuple[BboxAction, LookaheadExamples]:
        keys = jax.random.split(key, num_episodes)
        # The expert labels the state and also plays on from it: its labels are the ``extras`` that the unroll records.
        examples, actions = jax.vmap(lambda key, state: _ask_expert(key, state, params, config))(keys, states)
        return actions, examples

    keys = jax.random.split(key_play, config.episode_steps)
    _, examples = unroll(_ENV, params, ask_expert, states, keys, record=lambda transition: transition.extras)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), examples)


def describe_canvas(canvas_state: CanvasState, grid_shape: tuple[int, int]) -> Float32[Array, "H W 3"]:
    """Stack working grid, target and input of a canvas state, as a model sees it."""
    flat = canvas_state.canvas.grid, canvas_state.canvas.target, canvas_state.pair_input
    return describe_grids(*(grid.reshape(grid_shape) for grid in flat))


def eval_batch_sizes(num_examples: int, episode_steps: int) -> list[int]:
    """Cut examples into batches of whole episodes; only the last one may be smaller.

    >>> eval_batch_sizes(520, 8)
    [256, 256, 8]
    """
    # With 8 steps an episode, 256 // 8 = 32 episodes make a batch of 256.
    size = max(_EVAL_BATCH // episode_steps, 1) * episode_steps
    whole, rest = divmod(num_examples, size)
    return [size] * whole + [rest] * (rest > 0)


def _ask_expert(
    key: PRNGKey, state: ArcEnvState, params: EnvParams, config: LookaheadConfig
) -> tuple[LookaheadExamples, BboxAction]:
    """Return the expert's distribution in one state, and the action with which the episode goes on."""
    key_candidates, key_any, key_choice = jax.random.split(key, 3)
    canvas_state = canvas_of_state(state, params)
    candidates = candidates_of_canvas(key_candidates, canvas_state, config.num_candidates, params.config)
    actions = candidates.actions
    if not isinstance(actions, BboxAction):
        raise TypeError(f"examples are made of boxes; set action.selection_format=bbox, got {type(actions).__name__}")
    scores = score_candidates(canvas_state, actions, params.config)
    is_real = scores.is_valid & candidates.is_distinct
    # The label is the softmax over the real candidates. The episode follows it, or now and then takes any real
    # candidate, so that states off the expert's path are learned too.
    probs = soft_choice(scores.score, is_real, config.temperature)
    takes_any = jax.random.bernoulli(key_any, jnp.float32(config.random_share))
    weights = jnp.where(takes_any, is_real.astype(jnp.float32), probs)
    # The logarithm of a weight 0 is minus infinity, which is never drawn.
    index = jax.random.categorical(key_choice, jnp.log(weights))
    data = describe_canvas(canvas_state, params.config.grid_shape)
    examples = LookaheadExamples(data, probs, scores.score, actions, is_real)
    return examples, jax.tree.map(lambda leaf: leaf[index], actions)


@eqx.filter_jit
def _draw_examples(key: PRNGKey, params: EnvParams, config: LookaheadConfig) -> LookaheadExamples:
    return draw_examples(key, params, config)


@jax.jit
def _mass_on_best(examples: LookaheadExamples) -> Float32[Array, " B"]:
    """Return the probability of the candidates of the highest score, several where they are equal."""
    scores = jnp.where(examples.is_real, examples.scores, -jnp.inf)
    is_best = scores == scores.max(axis=-1, keepdims=True)
    return jnp.minimum(jnp.where(is_best, examples.probs, jnp.float32(0)).sum(axis=-1), jnp.float32(1))


@jax.jit
def _describe(examples: LookaheadExamples) -> CandidateSet:
    _, height, width, _ = examples.data.shape
    return describe_boxes(examples.actions, examples.is_real, (height, width))


class SurrogateAgent(eqx.Module):
    """Draws candidates and takes the one that a surrogate scores highest; of equals the first.

    It takes the place of a :class:`jaxarc.experts.lookahead.LookaheadAgent`, and with the same key it draws the same
    candidates. They are drawn from the target, as the expert's are, so this agent imitates a teacher and is no solver:
    observations must show what :func:`jaxarc.experts.lookahead.missing_for_lookahead` asks for.

    Raises:
        ValueError: actions are no boxes, or there are too few candidates.
    """

    model: CountingScorer
    config: JaxArcConfig = eqx.field(static=True)
    num_candidates: int = eqx.field(static=True, default=256)

    def __check_init__(self) -> None:
        if self.config.action.selection_format != "bbox":
            raise ValueError(
                f"a surrogate scores boxes, but action.selection_format is {self.config.action.selection_format!r}; "
                "set it to 'bbox'"
            )
        require_count(self.num_candidates, self.config)

    def __call__(self, key: PRNGKey, observation: Observation) -> BboxAction:
        """Choose the action of one environment."""
        key_candidates, _ = jax.random.split(as_typed_key(key))
        canvas_state = canvas_of_observation(observation, self.config)
        actions, is_distinct = candidates_of_canvas(key_candidates, canvas_state, self.num_candidates, self.config)
        assert isinstance(actions, BboxAction)
        is_real = is_distinct & check_edits(actions, self.config).is_valid
        index = choose_box(self.model, observation, actions, is_real)
        return jax.tree.map(lambda leaf: leaf[index], actions)
