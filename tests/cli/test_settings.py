import dataclasses
import json
from pathlib import Path

import pytest
import yaml

from jaxarc.agents import Experiment
from jaxarc.cli.settings import experiment_of, read_experiment, topics_in, topics_of
from jaxarc.cli.train_command import expand
from jaxarc.config import ConfigValidationError, HistoryConfig, build
from jaxarc.config.choices import EXPERIMENT, SURROGATE, choices_of, config_folder
from jaxarc.runs import create_run_folder


def test_every_choice_changes_fields_that_its_topic_has():
    topics = topics_in(EXPERIMENT) | topics_in(SURROGATE)
    for topic, choices in yaml.safe_load((config_folder() / "choices.yaml").read_text()).items():
        for fields in choices.values():
            made = build(topics[topic], fields).as_dict()
            assert {
                name: list(made[name]) if isinstance(value, list) else made[name] for name, value in fields.items()
            } == fields
    assert {file.parent.name for file in config_folder().glob("*/*.yaml")} == {EXPERIMENT, SURROGATE}


def test_an_empty_mapping_is_the_default_experiment():
    assert experiment_of({}) == Experiment()
    assert experiment_of({"history": {"max_history_length": 3}}).environment.action == Experiment().environment.action


@pytest.mark.parametrize("name", choices_of(EXPERIMENT))
def test_every_experiment_is_a_valid_one_and_says_what_it_is(name):
    experiment = read_experiment([f"experiment={name}"])
    assert experiment_of(topics_of(experiment)) == experiment
    assert (config_folder() / EXPERIMENT / f"{name}.yaml").read_text().splitlines()[1].startswith("# ")


def test_a_run_without_overrides_is_the_experiment_of_make_train():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert "jaxarc train $(ARGS)" in makefile
    assert read_experiment([]) == read_experiment(["experiment=ladder_l2_small"])


def test_what_the_command_line_says_wins_over_the_experiment():
    experiment = read_experiment(["history=default", "experiment=ladder_l2_small", "environment.max_episode_steps=9"])
    assert experiment.environment.history == HistoryConfig()
    assert experiment.environment.environment.max_episode_steps == 9
    assert experiment.environment.reward == read_experiment([]).environment.reward


@pytest.mark.parametrize("choice", ["reward=default", "episode=default", "history=default", "agent=ppo"])
def test_another_file_of_a_topic_can_be_chosen(choice):
    topic, _, _ = choice.partition("=")
    experiment = read_experiment([choice, "experiment=small_grids", "training.total_steps=1000"])
    assert topics_of(experiment)[topic] == dataclasses.asdict(topics_in(EXPERIMENT)[topic]())


def test_the_config_of_a_run_folder_makes_the_same_experiment_again(tmp_path):
    experiment = read_experiment(["environment.max_episode_steps=7", f"logging.run_root={tmp_path}"])
    assert read_experiment([], create_run_folder(experiment).config) == experiment


def test_a_file_that_show_printed_can_be_changed_by_fields(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(topics_of(read_experiment(["training.total_steps=77"]))))
    changed = read_experiment(["schedule.learning_rate=1e-3", "logging.run_name='a, b'"], file)
    assert changed.schedule.learning_rate == 1e-3
    assert changed.logging.run_name == "a, b"
    assert changed.training.total_steps == 77


@pytest.mark.parametrize(
    ("text", "override", "complaint"),
    [
        ("- 1", "training.seed=1", "is no config"),
        ("a: [", "training.seed=1", "is not YAML"),
        ("{training: {seed: 1}}", "reward=editing", "'reward=editing' .*--config"),
        ("{training: {sed: 1}}", "training.seed=1", r"no field 'sed'; did you mean 'seed'\? Known fields: seed,"),
        ("{treaning: {seed: 1}}", "training.seed=1", "no field 'treaning'"),
    ],
)
def test_a_config_file_that_cannot_be_run_is_refused(tmp_path, text, override, complaint):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigValidationError, match=complaint):
        read_experiment([override], file)


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        ("schedule.learning_rte=1", r"ScheduleConfig: no field 'learning_rte'; did you mean 'learning_rate'\?"),
        ("shedule.decay=cosine", r"'shedule'; did you mean 'schedule'\?"),
        ("seed=1", r"'seed' .*training\.seed=1"),
        ("schedule.learning_rate=fast", "learning_rate .*'fast'"),
        ("experiment=small_grid", r"'small_grid'; did you mean 'small_grids'\?"),
        ("experiment.seed=1", "no field 'experiment'"),
        ("agent=[ppo]", r"no agent '\[ppo\]'.* ppo, .*reinforce"),
        ("surrogate.problem=graphs", "surrogate=lookahead"),
        ("training.seed=${nowhere}", "nowhere"),
        ("surrogate=parents", r"'parents'; did you mean 'parent_sets'\?"),
        ("surrogate=lookahead agent.num_envs=8", "no field 'agent'"),
        ("surrogate=parent_sets structural_models.num_variables=10", "num_variables .* 10; use surrogate=graphs"),
        ("surrogate=lookahead task.max_side=11", "task.max_side .* 10x10, got 11"),
        ("surrogate=lookahead observation.reveal_target=false", "observation.reveal_target"),
        ("experiment=games_ice game.name=chess", "chess"),
        ("experiment=games_ice game.num_sets=4", "num_sets"),
        ("experiment=games_ice game.max_steps=0", "max_steps"),
        ("experiment=games_ice network.kind=relational", "residual_cnn"),
        ("experiment=games_ice answer=predicted", "answer.source"),
        ("experiment=games_ice cloning=painter", "cloning"),
    ],
)
def test_a_wrong_override_is_refused_with_what_is_known(overrides, complaint):
    with pytest.raises(ConfigValidationError, match=complaint):
        read_experiment(overrides.split())


@pytest.mark.parametrize(
    "override",
    [
        *("training.seed=1,2", "learn", "=1", "é=1", "reward@:x=1", "a\nb=1", "+", "~", ".a=1", "agent..a=1"),
        *("agent.clip_range~=1", "~agent.none", "task.train_dataset=${"),
    ],
)
def test_what_is_no_override_is_an_error_in_one_line_without_words_of_the_parser(override):
    with pytest.raises(ConfigValidationError) as caught:
        read_experiment([override])
    message = str(caught.value)
    assert message.startswith("jaxarc train: ")
    assert not any(word in message for word in ("\n", "Lexer", "input '", "hydra", "++t"))


@pytest.mark.parametrize("value", ["~/tasks", "mini-arc:max_side=10", "a;b", "it's é", "C:\\é\\", "é\\'", "[a", "a\nb"])
def test_a_text_needs_no_quotation_marks_of_hydra(value, tmp_path):
    override = f"task.train_dataset={value}"
    assert read_experiment([override]).task.train_dataset == value
    file = tmp_path / "mine.yaml"
    file.write_text("{training: {seed: 1}}")
    assert read_experiment([override], file).task.train_dataset == value
    assert [read_experiment(one).task.train_dataset for one in expand([override, "training.seed=1,2"])] == [value] * 2


def test_an_installed_package_finds_the_files_inside_itself(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "jaxarc"
    (package / "configs").mkdir(parents=True)
    monkeypatch.setattr("jaxarc.config.choices.__file__", str(package / "config" / "choices.py"))
    with pytest.raises(FileNotFoundError, match=r"no configs folder at .*jaxarc/configs"):
        config_folder()
    (package / "configs" / "choices.yaml").write_text("{}\n")
    assert config_folder() == package / "configs"
