import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import EXECUTORS
from typer.core import TyperGroup

import jaxarc
from jaxarc.cli.main import COMMANDS, load_command, main, subcommands
from jaxarc.native.library import native_library


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    output = capsys.readouterr()
    return exit_info.value.code, output.out, output.err


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["train", "schedule.learning_rte=1"], 2, "Did you mean 'learning_rate'?"),
        (["train", "agent=fast"], 2, "no agent 'fast'; known: ppo"),
        (["train", "agent.seed=[1"], 2, "no field 'seed'"),
        (["train", "training.seed=[1"], 2, "seed must be int, got '[1'"),
        (["train", ":max_side=10"], 2, "':max_side=10' is not an override"),
        (["train", "=1"], 2, "'=1' is not an override"),
        (["train", "+"], 2, "'+' is not an override"),
        (["train", "schedule.learning_rate=é"], 2, "learning_rate must be float, got 'é'"),
        (["train", "task.train_dataset=~/né"], 2, "né'"),
        (["train", "--config", "no\x1b[31m\nfile.yaml"], 2, r"no\x1b[31m\nfile.yaml: No such file"),
        (["tasks", "stats", "no\x1b[31m\nfile.json"], 2, r"no\x1b[31m\nfile.json"),
        (["train", "task.train_dataset=arc-agi-1/trainig"], 2, "did you mean 'arc-agi-1/training'"),
        (["train", "task.max_side=1"], 2, "the smallest of the 400 tasks needs max_side=3"),
        (
            ["train", "task.max_side=5", "task.evaluation_dataset=arc-agi-2/evaluation"],
            2,
            "leaves no task of 'arc-agi-2/evaluation'",
        ),
        (["train", "logging.run_root=/dev/null/runs"], 1, "/dev/null"),
        (["train", "experiment=small"], 2, "no experiment 'small'; known: "),
        (["train", "--multirun", "training.seed=1"], 2, "--multirun needs a field with several values"),
        (["train", "--multirun", "training.seed=0,-1"], 2, "seed must be in [0, 2147483647], got -1"),
        (["train", "--multirun", "logging.run_root=a,b"], 2, "a sweep has one logging.run_root, got a, b"),
        (["train", "--config", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["compare", "nowhere"], 2, "nowhere is no run folder"),
        (["rollout", "arc-agi-3"], 2, "no dataset, file or folder 'arc-agi-3'"),
        (["rollout", "--format", "boxes"], 2, "selection_format must be one of"),
        (["tasks", "show", "nothing"], 2, "no task 'nothing'"),
        (["trian"], 2, "Did you mean 'train'?"),
        (["tasks", "shw"], 2, "Did you mean 'show'?"),
        (["tasks", "show"], 2, "'name'. See: jaxarc tasks show --help"),
        (["replay", "nowhere"], 2, "human. See: jaxarc replay --help"),
        (["rollout", "--num-env", "3"], 2, "--num-envs"),
        (["rollout", "--num-envs", "0"], 2, "--num-envs"),
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
        (
            ["train"],
            ["schedule.learning_rate=1e-3", "answer is visible", "learning_curve.png", "Ctrl-C", "training.num_seeds"],
        ),
        (["compare"], ["--output", "--metric", "steps|seconds", "percentile bootstrap"]),
        (["rollout"], ["DATASET", "--format", "--num-envs", "--steps", "--seed", "--max-steps"]),
        (["tasks"], ["list", "show", "stats"]),
    ],
)
def test_every_command_explains_itself(capsys, monkeypatch, arguments, words):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(capsys, *arguments, "--help")
    assert code == 0
    printed = " ".join(out.split())
    assert not [word for word in words if word not in printed]


def all_commands():
    for name in COMMANDS:
        yield from subcommands(load_command(name))


def test_a_command_is_asked_for_help_in_three_ways(capsys):
    explained = {
        run(capsys, *words)
        for words in (["tasks", "show", "--help"], ["tasks", "show", "-h"], ["help", "tasks", "show"])
    }
    assert len(explained) == 1
    (code, out, err), *_ = explained
    assert (code, err) == (0, "")
    assert "jaxarc tasks show" in out
    assert run(capsys, "help") == run(capsys, "--help") == run(capsys, "-h")


def test_the_version_is_that_of_the_package(capsys):
    assert run(capsys, "--version") == (0, f"jaxarc {jaxarc.__version__}\n", "")


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "jaxarc", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"jaxarc {jaxarc.__version__}\n"


def complete(shell, *words):
    """Return what is offered for the last word."""
    line = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": " ".join(words)}
    setting = {**line, "_JAXARC_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [sys.executable, "-m", "jaxarc"], env={**os.environ, **setting}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_shell_completes_commands_and_their_options():
    commands = complete("bash", "jaxarc", "ro")
    assert "rollout" in commands
    assert "train" not in commands
    assert "--num-envs" in complete("zsh", "jaxarc", "rollout", "--num-e")
    assert "verify" in complete("fish", "jaxarc", "tasks", "ver")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_the_command(shell):
    setting = {"_JAXARC_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-m", "jaxarc"], env={**os.environ, **setting}, capture_output=True, text=True, check=True
    )
    assert f"_JAXARC_COMPLETE=complete_{shell}" in done.stdout


def test_help_joins_the_lines_of_a_paragraph():
    long_lines = [
        f"{command.name}: {line}"
        for command in all_commands()
        for line in (command.help or "").splitlines()
        if line and not line.startswith(" ") and line[0].islower()
    ]
    assert not long_lines, "a line that goes on in the middle of a sentence"


def leaves():
    for name in COMMANDS:
        yield from _leaves(name, load_command(name))


def _leaves(path, command):
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield from _leaves(f"{path} {name}", below)
    else:
        yield path, command


def test_every_command_has_examples_that_can_be_typed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "submission.json").touch()
    for path, command in leaves():
        examples = [line.strip() for line in command.help.partition("Examples:")[2].splitlines()]
        own = [shlex.split(line) for line in examples if line.startswith(f"jaxarc {path}")]
        assert own, path
        for words in own:
            rest = words[1 + len(path.split()) :]
            command.make_context(path, rest[: rest.index(">")] if ">" in rest else rest)


def test_the_page_on_the_command_line_has_every_command():
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
    assert not [path for path, _ in leaves() if f"| `jaxarc {path}` |" not in page]


def test_quiet_and_json_are_the_same_in_every_command():
    for name in ("--json", "--quiet", "--output", "--format"):
        spelled = {param.opts[0] for _, command in leaves() for param in command.params if name in param.opts}
        assert spelled == {name}


def test_info_names_versions_folders_and_missing_extras(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path))
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    (tmp_path / "file").write_bytes(b"12345")
    code, out, _ = run(capsys, "info", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["versions"]["jaxarc"] == jaxarc.__version__
    assert facts["folders"]["data"] == {"path": str(tmp_path), "bytes": 5}
    assert facts["extras"]["play"] == ["uvicorn"]
    assert facts["executor"] == EXECUTORS[0]
    known = native_library()
    assert facts["library"] == (known and str(known.path))
    assert "pip install uvicorn" in run(capsys, "info")[1]


def test_show_prints_every_value_with_the_overrides_in_place(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "train", "--show", "schedule.learning_rate=0.5")
    assert code == 0
    assert "learning_rate: 0.5\n" in out
    assert "recolor: all\n" in out
    assert not list(tmp_path.iterdir())


def test_help_loads_no_jax_and_no_command():
    program = (
        "import sys\n"
        "from jaxarc.cli.main import COMMANDS, main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "modules = {entry.module for entry in COMMANDS.values()}\n"
        "loaded = [name for name in sys.modules if name.partition('.')[0] in ('jax', 'numpy', 'hydra', 'matplotlib')]\n"
        "loaded += [name for name in sys.modules if name.removeprefix('jaxarc.cli.') in modules]\n"
        "print('loaded:', loaded)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("loaded: []")
    assert "benchmark" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_loaded(name):
    command = load_command(name)
    assert command.name == name
    assert command.help or command.get_short_help_str()
