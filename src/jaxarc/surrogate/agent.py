"""An agent that takes the candidate that a surrogate likes best."""

import equinox as eqx
import jax

from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.candidates import candidates_of_canvas, require_count
from jaxarc.experts.canvas_state import canvas_of_observation, check_edits
from jaxarc.prng import as_typed_key
from jaxarc.surrogate.edit_scorer import EditScorer
from jaxarc.surrogate.scorers import CandidateScorer, CountingScorer, choose_box
from jaxarc.types import Observation, PRNGKey


class SurrogateAgent(eqx.Module):
    """Draws candidates and takes the one that a surrogate scores highest; of equals the first.

    It takes the place of a :class:`jaxarc.experts.lookahead.LookaheadAgent`, and with the same key it draws the same
    candidates. They are drawn from the target, as the expert's are, so this agent imitates a teacher and is no solver:
    observations must show what :func:`jaxarc.experts.lookahead.missing_for_lookahead` asks for.

    Raises:
        ValueError: actions are no boxes, or there are too few candidates.
    """

    model: CountingScorer | CandidateScorer | EditScorer
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
