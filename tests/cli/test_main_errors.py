import pytest

from jaxarc.cli.main import main


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    output = capsys.readouterr()
    return exit_info.value.code, output.out, output.err


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["train", "ppo.learning_rte=1"], 2, "Did you mean 'learning_rate'?"),
        (["train", "ppo=fast"], 2, "Could not find 'ppo/fast' Available options in 'ppo': default"),
        (["train", "ppo.seed=[1"], 2, "no viable alternative"),
        (["train", "training.train_dataset=arc-agi-1/trainig"], 1, "did you mean 'arc-agi-1/training'"),
        (["train", "training.max_side=1"], 2, "the smallest of the 400 tasks needs max_side=3"),
        (["train", "training.evaluation_dataset=arc-agi-2/evaluation"], 2, "leaves no task of 'arc-agi-2/evaluation'"),
        (["train", "training.run_root=/dev/null/runs"], 1, "/dev/null"),
        (["rollout", "--dataset", "arc-agi-3"], 1, "no dataset, file or folder 'arc-agi-3'"),
        (["rollout", "--format", "boxes"], 2, "selection_format must be one of"),
        (["tasks", "show", "nothing"], 1, "no task 'nothing'"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_an_exit_code(capsys, arguments, code, complaint):
    actual_code, out, err = run(capsys, *arguments)
    assert actual_code == code
    assert complaint in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["train", "rollout", "tasks"]),
        (["train"], ["ppo.learning_rate=1e-3", "answer is visible", "learning_curve.png", "Ctrl-C", "entropy_weight"]),
        (["rollout"], ["--dataset", "--format", "--num-envs", "--steps", "--seed", "--max-steps"]),
        (["tasks"], ["list", "show", "stats"]),
    ],
)
def test_every_command_explains_itself(capsys, monkeypatch, arguments, words):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(capsys, *arguments, "--help")
    assert code == 0
    assert not [word for word in words if word not in out]


def test_show_prints_every_value_with_the_overrides_in_place(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "train", "--show", "ppo.learning_rate=0.5")
    assert code == 0
    assert "learning_rate: 0.5\n" in out
    assert "recolor: all\n" in out
    assert not list(tmp_path.iterdir())
