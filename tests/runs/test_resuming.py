import pytest
from small_run import LEARNABLE

from jaxarc.agents import Experiment
from jaxarc.config import CheckpointConfig, LoggingConfig, ScheduleConfig, TrainingConfig
from jaxarc.runs import IncompatibleRunError, OtherVersionsWarning
from jaxarc.runs.run_state import require_same_choices, warn_of_other_versions

SAVED = Experiment(LEARNABLE).as_dict()


def test_what_does_not_change_the_results_may_change():
    wished = Experiment(
        LEARNABLE,
        training=TrainingConfig(max_seconds=5.0, compilation_cache=True),
        logging=LoggingConfig(run_name="other"),
        checkpoint=CheckpointConfig(keep_last=5),
    )
    require_same_choices(SAVED, wished.as_dict())


def test_everything_else_is_listed_with_both_values():
    wished = Experiment(
        LEARNABLE.with_fields(max_episode_steps=9),
        training=TrainingConfig(total_steps=2_000_000, max_seconds=5.0),
        schedule=ScheduleConfig(learning_rate=1e-3),
    )
    with pytest.raises(IncompatibleRunError) as error:
        require_same_choices(SAVED, wished.as_dict())
    for words in (
        "environment.max_episode_steps is 100 in the run, but 9 now",
        "schedule.learning_rate is 0.004 in the run, but 0.001 now",
        "training.total_steps is 1000000 in the run, but 2000000 now",
        "what may change: logging.*, checkpoint.*, parallel.*, training.compilation_cache, training.max_seconds",
    ):
        assert words in str(error.value)
    assert "max_seconds is" not in str(error.value)


def test_a_field_that_only_one_version_knows_is_a_difference():
    old = {**SAVED, "agent": {**SAVED["agent"], "ancient": 1}}
    with pytest.raises(IncompatibleRunError, match=r"agent\.ancient.*1"):
        require_same_choices(old, SAVED)


def test_other_versions_are_warned_of():
    with pytest.warns(OtherVersionsWarning, match=r"jax 1\.0 -> 1\.1"):
        warn_of_other_versions({"jax": "1.0", "numpy": "2"}, {"jax": "1.1", "numpy": "2"})
    warn_of_other_versions({"jax": "1.0"}, {"jax": "1.0"})
