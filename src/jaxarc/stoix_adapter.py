"""What Stoix imports for its environments ``env=jaxarc/...``: a maker of two environments, and a wrapper of metrics.

Stoix calls ``make_jaxarc_env(config)``, puts the wrapper of ``config.env.wrapper`` around both environments, and around
the first ``AddRNGKey``, ``RecordEpisodeMetrics``, :class:`ExtendedMetrics` and an auto-reset of Stoa::

    python stoix/systems/ppo/anakin/ff_ppo.py env=jaxarc/default env.scenario.name=starter
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32

try:
    import stoa
    from stoa.core_wrappers.wrapper import wrapper_state_replace
    from stoa.stoa_struct import dataclass
except ImportError as error:
    raise ImportError("the environments of Stoix need stoa-env; pip install stoa-env") from error

from jaxarc.adapters.to_stoa import StoaEnvironment
from jaxarc.registration import make
from jaxarc.types import PRNGKey

_DATASETS: Final = {  # Stoix's names of data sets
    "AGI1-train": "arc-agi-1/training",
    "AGI1-eval": "arc-agi-1/evaluation",
    "AGI2-train": "arc-agi-2/training",
    "AGI2-eval": "arc-agi-2/evaluation",
}
_SHOWN: Final = {"input_grid": "include_input", "contextual": "include_step_count"}  # Stoix's observation wrappers


def make_jaxarc_env(config: Mapping[str, Any]) -> tuple[StoaEnvironment, StoaEnvironment]:
    """Make the environments that Stoix trains and evaluates on; neither resets itself.

    An observation is one array, ``layout="stacked"``, and an action one integer. ``config.env`` may have:

    - ``scenario.name``: what :func:`jaxarc.make` takes, or Stoix's names ``AGI1-train``, ``AGI1-eval``, ``AGI2-train``
      and ``AGI2-eval``;
    - ``scenario.eval_name``: the same for the evaluation, by default the data set of the training;
    - ``action.mode``: ``point`` or ``bbox``;
    - ``observation_wrappers``: ``input_grid`` adds the input of the pair, ``contextual`` the step count;
    - ``kwargs``: further arguments of :func:`jaxarc.make`, which count more than those above.

    Args:
        config: of Stoix, with the group ``env``.

    Raises:
        UnknownDatasetError, ConfigValidationError: as :func:`jaxarc.make`.
        ValueError: there are too many actions for one integer, as with boxes on 30x30.
    """
    rules = config["env"]
    shown = rules.get("observation_wrappers") or {}
    choice: dict[str, Any] = {"layout": "stacked", "flat_actions": True, "invalid_action_policy": "noop"}
    choice["selection_format"] = (rules.get("action") or {}).get("mode", "point")
    choice |= {ours: bool(shown[theirs]) for theirs, ours in _SHOWN.items() if theirs in shown}
    choice |= {name: _plain(value) for name, value in (rules.get("kwargs") or {}).items()}
    name: str = rules["scenario"]["name"]
    train, evaluation = (
        StoaEnvironment(*make(_DATASETS.get(dataset) or dataset, **choice), auto_reset=False)
        for dataset in (name, rules["scenario"].get("eval_name", name))
    )
    return train, evaluation


def _plain(value: Any) -> Any:
    """Return a list of YAML as a tuple, and other values as they are."""
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


@dataclass(custom_replace_fn=wrapper_state_replace)
class ExtendedMetricsState(stoa.WrapperState):
    """The wrapped environment's state, and what the running episode has reached."""

    best_similarity: Float32[Array, ""]
    steps_to_solve: Int32[Array, ""]  # 0 until the episode is solved


class ExtendedMetrics(stoa.Wrapper[Any]):
    """Adds metrics of ARC to ``extras["episode_metrics"]``; put it around Stoa's ``RecordEpisodeMetrics``.

    They are those of the running episode: ``solved``, ``steps_to_solve`` (0 where it is not solved),
    ``best_similarity``, ``final_similarity`` (of the grid as it is now) and ``was_truncated``. Stoix reads them where
    an episode ends.
    """

    def reset(self, rng_key: PRNGKey, env_params: Any = None) -> tuple[ExtendedMetricsState, stoa.TimeStep]:
        inner, time_step = self._env.reset(rng_key, env_params)
        return _extend(inner, time_step, jnp.float32(0), jnp.int32(0))

    def step(
        self, state: ExtendedMetricsState, action: Any, env_params: Any = None
    ) -> tuple[ExtendedMetricsState, stoa.TimeStep]:
        inner, time_step = self._env.step(state.base_env_state, action, env_params)
        return _extend(inner, time_step, state.best_similarity, state.steps_to_solve)


def _extend(
    inner: Any, time_step: stoa.TimeStep, best_similarity: Float32[Array, ""], steps_to_solve: Int32[Array, ""]
) -> tuple[ExtendedMetricsState, stoa.TimeStep]:
    extras: dict[str, Any] = dict(time_step.extras)
    best_similarity = jnp.maximum(best_similarity, extras["similarity"])
    is_first = extras["success"] & (steps_to_solve == 0)
    steps_to_solve = jnp.where(is_first, extras["step_count"], steps_to_solve)
    metrics = {
        **extras["episode_metrics"],
        "solved": extras["success"],
        "steps_to_solve": steps_to_solve,
        "best_similarity": best_similarity,
        "final_similarity": extras["similarity"],
        "was_truncated": extras["truncated"],
    }
    state = ExtendedMetricsState(base_env_state=inner, best_similarity=best_similarity, steps_to_solve=steps_to_solve)
    return state, stoa.TimeStep(
        step_type=time_step.step_type,
        reward=time_step.reward,
        discount=time_step.discount,
        observation=time_step.observation,
        extras={**extras, "episode_metrics": metrics},
    )
