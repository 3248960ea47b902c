import contextlib
import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from compiling import EXECUTORS
from run_command import run_command
from typer.core import TyperGroup

import jaxarc
from jaxarc.cli import info
from jaxarc.cli.main import COMMANDS, load_command, subcommands
from jaxarc.native.library import native_library
from jaxarc.profiling import NumericsReport


def run(*arguments):
    result = run_command(*arguments)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["train", "schedule.learning_rte=1"], 2, "'learning_rate'?"),
        (["train", "schedule.learning_rate=é"], 2, "'é'"),
        (["train", "--config", "no\x1b[31m\nfile.yaml"], 2, r"no\x1b[31m\nfile.yaml"),
        (["train", "task.train_dataset=arc-agi-1/trainig"], 2, "'arc-agi-1/training'"),
        (["train", "task.max_side=1"], 2, "max_side=3"),
        (["train", "agent.num_envs=8", "agent.num_minibatches=3"], 2, "num_minibatches"),
        (["train", "logging.run_root=/dev/null/runs"], 1, "/dev/null"),
        (["train", "--multirun", "training.seed=1"], 2, "--multirun"),
        (["train", "--multirun", "logging.run_root=a,b"], 2, "a, b"),
        (["compare", "nowhere"], 2, "nowhere"),
        (["compare", ".", "-o", "curves.pdf"], 2, "'curves.pdf'"),
        (["rollout", "--format", "boxes"], 2, "boxes"),
        (["rollout", "--cores", "99999"], 2, "--cores"),
        (["tasks", "stats", "no\x1b[31m\nfile.json"], 2, r"no\x1b[31m\nfile.json"),
        (["tasks", "verify"], 2, "--all"),
        (["tasks", "download"], 2, "--all"),
        (["tasks", "import", "nothing"], 2, "nothing"),
        (["trian"], 2, "'train'?"),
        (["tasks", "shw"], 2, "'show'?"),
        (["tasks", "show"], 2, "'name'. See: jaxarc tasks show --help"),
        (["replay", "nowhere"], 2, "nowhere"),
        (["rollout", "--num-env", "3"], 2, "--num-envs"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_an_exit_code(arguments, code, complaint):
    actual_code, out, err = run(*arguments)
    assert actual_code == code
    assert complaint in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert out == ""


def all_commands():
    for name in COMMANDS:
        yield from subcommands(load_command(name))


def test_the_package_is_the_command():
    done = subprocess.run([sys.executable, "-m", "jaxarc", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"jaxarc {jaxarc.__version__}\n"


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
            with contextlib.suppress(typer.Exit):  # of an option that prints and ends, as --functions
                command.make_context(path, rest[: rest.index(">")] if ">" in rest else rest)


def test_the_page_on_the_command_line_has_every_command():
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
    assert not [path for path, _ in leaves() if f"| `jaxarc {path}` |" not in page]


def test_quiet_and_json_are_the_same_in_every_command():
    for name in ("--json", "--quiet", "--output", "--format"):
        spelled = {param.opts[0] for _, command in leaves() for param in command.params if name in param.opts}
        assert spelled == {name}


def test_info_names_versions_folders_and_missing_extras(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path))
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    (tmp_path / "file").write_bytes(b"12345")
    code, out, _ = run("info", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["versions"]["jaxarc"] == jaxarc.__version__
    assert facts["folders"]["data"] == {"path": str(tmp_path), "bytes": 5}
    assert facts["extras"]["play"] == ["uvicorn"]
    assert facts["executor"] == EXECUTORS[0]
    known = native_library()
    assert facts["library"] == (known and str(known.path))
    assert facts["wrong_numbers"] == {}
    assert "pip install uvicorn" in run("info")[1]


def test_info_names_the_programs_whose_numbers_are_wrong(monkeypatch):
    wrong = NumericsReport({"attention": "1 of 9 values are wrong"}, num_programs=9, seconds=0.1)
    monkeypatch.setattr(info, "check_numerics", lambda: wrong)
    assert "attention: 1 of 9 values are wrong" in run("info")[1]


def test_help_loads_no_jax_and_no_command():
    program = (
        "import sys\n"
        "from jaxarc.cli.main import COMMANDS, main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "modules = {module for module, *_ in COMMANDS.values()}\n"
        "loaded = [name for name in sys.modules if name.partition('.')[0] in ('jax', 'numpy', 'hydra', 'matplotlib')]\n"
        "loaded += [name for name in sys.modules if name.removeprefix('jaxarc.cli.') in modules]\n"
        "print('loaded:', loaded)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("loaded: []")
    assert "benchmark" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [["search", "--functions"], ["--help"]])
def test_a_full_standard_output_is_named(words):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "jaxarc", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "error: standard output: No space left on device; free some space there, or name another place\n"
    )
