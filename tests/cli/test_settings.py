import pytest
from hydra.errors import HydraException

from jaxarc.cli.config_folder import config_folder
from jaxarc.cli.settings import TOPICS, experiment_of, read_experiment, topics_of
from jaxarc.config import ConfigValidationError


def test_every_topic_has_a_folder_of_files_and_every_file_makes_a_valid_topic():
    for topic in TOPICS:
        names = [path.stem for path in (config_folder() / topic).glob("*.yaml")]
        assert "default" in names
    assert {path.name for path in config_folder().iterdir() if path.is_dir()} == set(TOPICS)


@pytest.mark.parametrize("choice", ["reward=default", "episode=default", "history=default", "ppo=default"])
def test_another_file_of_a_topic_can_be_chosen(choice):
    topic, _, _ = choice.partition("=")
    assert topics_of(read_experiment([choice]))[topic] == topics_of_default(topic)


def topics_of_default(topic):
    experiment = read_experiment([])
    defaults = {name: kind() for name, kind in TOPICS.items()}
    return {**topics_of(experiment), topic: defaults[topic].__dict__}[topic]


def test_an_override_reaches_fields_that_no_file_mentions():
    experiment = read_experiment(["ppo.learning_rate=1e-3", "training.seed=4", "reward.step_penalty=-0.5"])
    assert experiment.ppo.learning_rate == 1e-3
    assert experiment.training.seed == 4
    assert experiment.environment.reward.step_penalty == -0.5


def test_what_is_printed_makes_the_same_experiment_again():
    experiment = read_experiment(["environment.max_episode_steps=7"])
    assert experiment_of(topics_of(experiment)) == experiment


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("ppo.learning_rte=1", r"PPOConfig: no field 'learning_rte'; known fields: num_envs, .*'learning_rate'\?"),
        ("pppo.learning_rate=1", r"no field 'pppo'; known fields: environment, .* Did you mean 'ppo'\?"),
        ("seed=1", "'seed' is a field, not a topic; write training.seed=1"),
        ("ppo.learning_rate=fast", "learning_rate must be float, got 'fast'"),
        ("ppo.num_minibatches=7", "num_minibatches must divide num_envs.* got 7 and 256"),
        ("learn", "'learn' is not an override; write topic.field=value"),
        ("observation.reveal_target=false", r"observation\.reveal_target must be True, got False"),
    ],
)
def test_a_wrong_override_is_refused_with_what_is_known(override, complaint):
    with pytest.raises(ConfigValidationError, match=complaint):
        read_experiment([override])


@pytest.mark.parametrize("override", ["ppo=fast", "ppo.seed=[1"])
def test_what_hydra_cannot_read_is_its_own_kind_of_error(override):
    with pytest.raises(HydraException):
        read_experiment([override])


def test_an_installed_package_finds_the_files_inside_itself(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "jaxarc"
    (package / "configs").mkdir(parents=True)
    monkeypatch.setattr("jaxarc.__file__", str(package / "__init__.py"))
    with pytest.raises(FileNotFoundError, match=r"no configs folder at .*jaxarc/configs"):
        config_folder()
    (package / "configs" / "train.yaml").write_text("defaults: []\n")
    assert config_folder() == package / "configs"
