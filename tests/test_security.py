"""No file, config or name makes this package run code: neither by pickle nor by a config that names a function."""

import ast
import io
import json
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxarc.cli.settings import read_experiment, topics_of
from jaxarc.config import ConfigValidationError
from jaxarc.datasets.archives import MAX_FILE_BYTES, SkippedFilesWarning, read_zip
from jaxarc.tasks import TaskFormatError

ROOT = Path(__file__).parents[1]
PLACES = ("src", "examples", "docs")
# A process gets its work from its parent, through a pipe that nobody else has; no file is read.
ITS_OWN_PARENT = {"src/jaxarc/jobs/local.py"}
# jaxarc traces record --expert module:name; games, rewards, networks and solvers as file.py:NAME or module:NAME
NAMED_ON_THE_COMMAND_LINE = {"src/jaxarc/experts/expert.py", "src/jaxarc/lazy.py"}
RUNS_A_PAGE = {ROOT / "docs" / "make_starter.py"}  # the code of a page of this repository, for its curve
OUR_OWN = {"src/jaxarc/runs/kind.py", "src/jaxarc/extras.py"}  # modules and libraries that the package itself names
RUNS_CODE = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "jsonpickle",
    "torch",
}
CALLS = {"eval", "exec", "compile", "__import__", "instantiate", "get_class", "get_method", "get_object", "unsafe_load"}


def dangers(where: str, text: str) -> Iterator[str]:
    """Name what could run code that a file brings."""
    for node in ast.walk(ast.parse(text)):
        told = f"{where}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            names = {name.split(".")[0] for name in modules} & RUNS_CODE
            if names and where not in ITS_OWN_PARENT:
                yield f"{told} imports {names.pop()}"
            if any(name.startswith("jax.experimental.serialize_executable") for name in modules):
                yield f"{told} reads compiled programs, which are pickled"
        if isinstance(node, ast.Call):
            owner, _, called = _dotted(node.func).rpartition(".")
            options = {option.arg: ast.unparse(option.value) for option in node.keywords}
            if called in CALLS and not (called == "compile" and not isinstance(node.func, ast.Name)):
                yield f"{told} calls {called}"
            if called in {"load", "load_all"} and owner == "yaml" and options.get("Loader") not in {"yaml.BaseLoader"}:
                yield f"{told} loads YAML with another loader than yaml.BaseLoader"
            if called == "load" and owner in {"np", "numpy", "jnp"} and options.get("allow_pickle") != "False":
                yield f"{told} loads arrays without allow_pickle=False"
            if options.get("allow_pickle") == "True" or options.get("shell") == "True" or called in {"system", "popen"}:
                yield f"{told} allows pickle, or runs a shell"
            if (
                called == "import_module"
                and where.startswith("src/jaxarc/")
                and where not in NAMED_ON_THE_COMMAND_LINE | OUR_OWN
            ):
                yield from (f"{told} imports what a variable names" for _ in _not_our_own(node, text))


def _not_our_own(call: ast.Call, text: str) -> Iterator[None]:
    """A name that is written there, of this package, or from a table of the same file, is no danger."""
    (argument,) = call.args[:1]
    written = ast.unparse(argument)
    own = isinstance(argument, ast.Constant) or written.startswith(("f'jaxarc.", "_HOMES[")) or "_EXTRAS" in text
    if not own:
        yield None


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def test_nothing_reads_pickle_and_nothing_runs_what_a_file_says():
    # Scripts of clients run other people's training loops, torch and all, and read no file.
    files = [file for place in PLACES for file in sorted((ROOT / place).rglob("*.py")) if ".venv" not in str(file)]
    files = [file for file in files if file.parent != ROOT / "examples" / "clients" and file not in RUNS_A_PAGE]
    assert len(files) > 200
    found = [danger for file in files for danger in dangers(file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import load",
        "import torch.serialization",
        "eval(text)",
        "exec(compile(text, '', 'exec'))",
        "__import__(name)",
        "import importlib\nimportlib.import_module(name)",
        "from hydra.utils import instantiate\ninstantiate(config)",
        "import hydra\nhydra.utils.get_class(name)",
        "import yaml\nyaml.load(text, Loader=yaml.Loader)",
        "import yaml\nyaml.unsafe_load(text)",
        "np.load(file)",
        "np.load(file, allow_pickle=True)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "from jax.experimental.serialize_executable import deserialize_and_load",
    ],
)
def test_the_search_finds_what_runs_code(line):
    assert len(list(dangers("src/jaxarc/io/state.py", line))) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "action:\n  _target_: os.system\n  command: touch ran\n",
        '_target_: builtins.exec\n_args_: [\'open("ran", "w")\']\n',
        "action: !!python/object/apply:os.system ['touch ran']\n",
        "action: !!python/name:os.system\n",
        "action:\n  selection_format: ${oc.env:HOME}\n",
        "action: &a {selection_format: bbox}\nreward: *a\n",
        "a: " + "[" * 50 + "]" * 50,
        "hydra:\n  launcher:\n    _target_: os.system\n",
    ],
    ids=["target", "root", "python object", "python name", "environment", "alias", "nested", "launcher"],
)
def test_a_config_file_is_data_and_nothing_else(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigValidationError, match=r"jaxarc train|no field"):
        read_experiment([], file)
    assert not (tmp_path / "ran").exists()


def test_a_config_file_of_millions_of_bytes_is_not_read(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("# " + "x" * 2**20)
    with pytest.raises(ConfigValidationError, match="which no config needs"):
        read_experiment([], file)


@pytest.mark.parametrize(
    "override",
    [
        "action._target_=os.system",
        "+action._target_=os.system",
        "_target_=os.system",
        "+_target_=os.system",
        "hydra.launcher._target_=os.system",
        "action={_target_:os.system,command:ls}",
        "logging.wandb={_target_:os.system}",
    ],
)
def test_an_override_names_no_function(override):
    with pytest.raises(ConfigValidationError):
        read_experiment([override])


def test_what_show_prints_is_read_again(tmp_path):
    experiment, file = read_experiment([]), tmp_path / "config.json"
    file.write_text(json.dumps(topics_of(experiment)))
    assert read_experiment([], file) == experiment


def archive_of(path: Path, name: str, content: bytes, mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, content)
    return path


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text('{"train": [{"input": [[1]], "output": [[1]]}], "test": [{"input": [[1]], "output": [[1]]}]}')
    path = archive_of(tmp_path / "a.zip", "task.json", str(secret).encode(), stat.S_IFLNK | 0o777)
    with pytest.raises(TaskFormatError, match=r"task\.json: not JSON"):
        read_zip(path)


def test_an_archive_that_lies_about_its_sizes_is_read_no_further_than_they_may_be(tmp_path):
    path = archive_of(tmp_path / "a.zip", "task.json", b"0" * (8 * MAX_FILE_BYTES))
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = content.index(mark) + place
        content[start : start + 4] = (10).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(TaskFormatError):
        read_zip(path)


def test_an_archive_in_an_archive_is_not_unpacked(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("task.json", "{}")
    outer = archive_of(tmp_path / "a.zip", "inner.zip", inner.getvalue())
    with pytest.warns(SkippedFilesWarning, match=r"inner\.zip"), pytest.raises(TaskFormatError, match="no task found"):
        read_zip(outer)


def test_names_of_code_are_taken_from_the_command_line_only():
    users = [
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "src").rglob("*.py")
        if "find_expert(" in file.read_text("utf-8") and "def find_expert(" not in file.read_text("utf-8")
    ]
    assert sorted(users) == ["src/jaxarc/cli/trace_options.py", "src/jaxarc/traces/recording.py"]
