"""The house rules, executable: who may import whom, how large a folder may be, what is banned.

``docs/architecture.md`` says why.
"""

import ast
import functools
import graphlib
import importlib
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "jaxarc"

LEAF = {"constants", "types", "prng", "notebooks", "errors", "files", "fusion", "native"}
CORE = LEAF | {"config", "utils", "envs", "tasks.task", "tasks.buffer", "unroll"}
TASKS = {"tasks", "datasets"}
MAY_IMPORT = {  # folder or top-level module -> what it may import besides itself
    "constants": set(),
    "errors": set(),
    "files": {"errors"},
    "native": {"errors", "files"},
    "fusion": set(),
    "notebooks": set(),
    "types": {"constants", "notebooks"},
    "prng": {"constants", "types"},
    "config": LEAF,
    "utils": LEAF,
    "tasks": LEAF | {"config", "utils"},
    "datasets": LEAF | {"config", "tasks"},
    "envs": LEAF | {"config", "utils", "tasks.task", "tasks.buffer", "tasks.sampling", "tasks.augmentation"},
    "unroll": LEAF | {"envs"},
    "parallel": CORE | TASKS,
    "wrappers": CORE | {"stoix_adapter"},
    "render": LEAF | {"envs.state", "envs.operations", "tasks.raw_task"},
    "io": LEAF | {"utils", "tasks.registry"},
    "adapters": CORE | TASKS | {"wrappers", "registration", "render"},
    "stoix_adapter": CORE | {"adapters", "registration"},
    "experts": CORE | TASKS | {"parallel", "io", "search"},
    "nn": LEAF | {"config"},
    "surrogate": CORE | {"experts", "parallel", "io", "nn"},
    "search": {"config", "errors", "native.library", "tasks.raw_task"},
    "evaluation": CORE | TASKS | {"wrappers", "parallel", "experts", "io"},
    "runs": LEAF | {"config", "parallel"},
    "agents": CORE
    | TASKS
    | {"wrappers", "parallel", "nn", "search", "experts", "evaluation", "runs", "training.pairs"},
    "training": CORE | TASKS | {"wrappers", "parallel", "nn", "agents", "surrogate", "experts", "evaluation", "runs"},
    "testing": CORE | TASKS | {"wrappers", "adapters"},
    "play": CORE | TASKS | {"registration", "experts", "agents", "evaluation", "training.pairs", "runs", "render"},
    "profiling": LEAF | {"utils"},
    "benchmarks": CORE
    | TASKS
    | {"wrappers", "registration", "parallel", "adapters", "agents", "runs", "experts", "surrogate", "profiling"}
    | {"training.pairs"},
}
MAY_IMPORT_ANYTHING = {"__init__", "__main__", "registration", "display", "cli"}
ONLY_IN = {  # a library from outside -> the only folders that may import it
    "hydra": {"cli"},
    "omegaconf": {"cli"},
    "typer": {"cli"},
    "click": {"cli"},
    "gymnax": {"adapters"},
    "gymnasium": {"adapters"},
    "stoa": {"adapters", "stoix_adapter"},
    "flax": {"adapters"},
    "stable_baselines3": {"adapters"},
    "optax": {"nn", "surrogate", "agents", "training"},
    "matplotlib": {"render", "cli"},
    "rich": {"render", "cli"},
    "PIL": {"render", "cli"},
    "drawsvg": {"render", "cli"},
    "pooch": {"datasets"},
    "orjson": {"datasets"},
    "requests": {"datasets"},
    "filelock": {"files", "native", "datasets", "runs"},
    "urllib3": {"datasets"},
    "platformdirs": {"datasets", "experts"},
    "networkx": {"experts"},
    "scipy": {"search"},
    "yaml": {"datasets", "cli"},
    "starlette": {"play"},
    "uvicorn": {"play"},
    "tensorboardX": {"runs"},
    "wandb": {"runs"},
}
IN_A_STEP = {"envs", "wrappers"}  # what runs inside a step never calls back to the host
HOST_CALLBACKS = ("pure_callback", "io_callback", "debug.callback", "debug.print", "debug.breakpoint", "host_callback")


class SourceFile:
    """One parsed file, known by its path below the package."""

    def __init__(self, root: Path, path: Path):
        self.where = path.relative_to(root)
        self.room = self.where.parts[0].removesuffix(".py")
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, str(path))
        self.nodes = list(ast.walk(self.tree))
        self.module = ".".join(["jaxarc", *self.where.with_suffix("").parts]).removesuffix(".__init__")

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full dotted name of everything imported, relative, deferred and typing-only imports too."""
        package = ["jaxarc", *self.where.parent.parts]
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join([*above, *filter(None, [node.module])])
                yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Call) and _dotted(node.func).split(".")[-1] in {"import_module", "__import__"}:
                names = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
                yield from ((node.lineno, str(name)) for name in names)

    def runtime_imports(self) -> Iterator[str]:
        """Dotted names of what is imported, without what only type checkers import."""
        checks = [node for node in self.nodes if isinstance(node, ast.If) and _dotted(node.test) == "TYPE_CHECKING"]
        lines = {
            inner.lineno
            for check in checks
            for outer in check.body
            for inner in ast.walk(outer)
            if isinstance(inner, ast.stmt)
        }
        yield from (name for line, name in self.imports() if line not in lines)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def _within(name: str, places: set[str] | tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(place + ".") for place in places)


def imports_follow_the_table(file: SourceFile) -> Iterator[str]:
    if file.room in MAY_IMPORT_ANYTHING:
        return
    if file.room not in MAY_IMPORT:
        yield f"{file.where}: {file.room} is not in the table of who may import whom; add it there, with a reason"
        return
    for line, name in file.imports():
        target = name.removeprefix("jaxarc.")
        ours = target != name or name == "jaxarc"
        if ours and not _within(target, MAY_IMPORT[file.room] | {file.room}):
            yield f"{file.where}:{line} must not import {target}"


def libraries_stay_in_their_rooms(file: SourceFile) -> Iterator[str]:
    for line, name in file.imports():
        library = name.split(".")[0]
        if library in ONLY_IN and file.room not in ONLY_IN[library]:
            yield f"{file.where}:{line} imports {library}, which only {' and '.join(sorted(ONLY_IN[library]))} may"


def nothing_prints_or_guesses_attributes(file: SourceFile) -> Iterator[str]:
    if file.room == "cli":
        return
    for node in file.nodes:
        called = _dotted(node.func) if isinstance(node, ast.Call) else ""
        if called in {"print", "hasattr"}:
            yield f"{file.where}:{node.lineno} calls {called}()"
        elif called == "getattr" and len(node.args) == 3:
            yield f"{file.where}:{node.lineno} calls getattr() with a default"


def no_except_catches_everything(file: SourceFile) -> Iterator[str]:
    for node in file.nodes:
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or _dotted(kind) in {"Exception", "BaseException"} for kind in caught):
                yield f"{file.where}:{node.lineno} catches everything"


def utils_holds_error_handling_only(file: SourceFile) -> Iterator[str]:
    if file.room == "utils" and file.where.parts[1:] not in {("__init__.py",), ("error_handling.py",)}:
        yield f"{file.where}: utils/ holds error_handling.py only; give this file the name of what it is about"


def no_step_calls_the_host(file: SourceFile) -> Iterator[str]:
    if file.room not in IN_A_STEP:
        return
    used = [(node.lineno, _dotted(node)) for node in file.nodes if isinstance(node, ast.Attribute)]
    for line, name in [*used, *file.imports()]:
        if f".{name}".endswith(tuple(f".{callback}" for callback in HOST_CALLBACKS)):
            yield f"{file.where}:{line} uses {name}, a call back to the host"


def public_classes_have_one_meaning(files: Sequence[SourceFile]) -> Iterator[str]:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(file.where))
    for name, where in homes.items():
        if len(where) > 1:
            yield f"{' and '.join(where)} define a public class {name}; give each a name of its own"


def imports_make_no_circle(files: Sequence[SourceFile]) -> Iterator[str]:
    """Modules must not import one another in a circle, deferred imports included; "if TYPE_CHECKING" is not."""
    modules = {file.module: file for file in files if file.where.name != "__init__.py"}
    imported = {name: {_module(found, modules) for found in file.runtime_imports()} for name, file in modules.items()}
    try:
        graphlib.TopologicalSorter({name: found & set(modules) for name, found in imported.items()}).prepare()
    except graphlib.CycleError as error:
        yield f"a circle of imports: {' -> '.join(error.args[1])}"


def _module(name: str, modules: Container[str]) -> str:
    """The module of a dotted name: the name itself, or what it is imported from."""
    return name if name in modules else name.rpartition(".")[0]


RULES = [
    imports_follow_the_table,
    libraries_stay_in_their_rooms,
    nothing_prints_or_guesses_attributes,
    no_except_catches_everything,
    utils_holds_error_handling_only,
    no_step_calls_the_host,
]
RULES_OF_THE_TREE = [public_classes_have_one_meaning, imports_make_no_circle]


def parse(root: Path) -> list[SourceFile]:
    return [SourceFile(root, path) for path in sorted(root.rglob("*.py"))]


def violations(rule, files: Sequence[SourceFile]) -> list[str]:
    if rule in RULES_OF_THE_TREE:
        return list(rule(files))
    return [found for file in files for found in rule(file)]


@functools.cache
def source() -> list[SourceFile]:
    """Each file of the package, parsed once."""
    return parse(SOURCE)


@pytest.mark.parametrize("rule", [*RULES, *RULES_OF_THE_TREE], ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule):
    assert source(), f"no source below {SOURCE}"
    found = violations(rule, source())
    assert not found, "\n" + "\n".join(found)


PLANTED = [  # rule, file, its text, what the complaint must say
    (imports_follow_the_table, "envs/grid.py", "import jaxarc.agents.ppo", "envs/grid.py:1 must not import agents.ppo"),
    (imports_follow_the_table, "envs/grid.py", "from jaxarc.datasets import download", "import datasets.download"),
    (imports_follow_the_table, "envs/operations/fill.py", "from ...agents import ppo", "import agents.ppo"),
    (
        imports_follow_the_table,
        "envs/grid.py",
        "def f():\n    from jaxarc import wrappers",
        ":2 must not import wrappers",
    ),
    (imports_follow_the_table, "config/main.py", "from jaxarc.typesetting import x", "import typesetting.x"),
    (imports_follow_the_table, "io/state.py", "from jaxarc.datasets import catalogue", "import datasets.catalogue"),
    (imports_follow_the_table, "agents/ppo.py", "import jaxarc", "import jaxarc"),
    (imports_follow_the_table, "agents/ppo.py", "from jaxarc import make", "import make"),
    (imports_follow_the_table, "agents/ppo.py", "from jaxarc.registration import make", "import registration.make"),
    (imports_follow_the_table, "helpers/grid.py", "", "helpers is not in the table"),
    (libraries_stay_in_their_rooms, "config/main.py", "from omegaconf import DictConfig", "imports omegaconf"),
    (libraries_stay_in_their_rooms, "registration.py", "import gymnax", "imports gymnax, which only adapters may"),
    (
        libraries_stay_in_their_rooms,
        "envs/a.py",
        "import importlib\nimportlib.import_module('stoa.env')",
        ":2 imports stoa",
    ),
    (libraries_stay_in_their_rooms, "evaluation/a.py", "import optax", "imports optax"),
    (libraries_stay_in_their_rooms, "training/a.py", "import matplotlib.pyplot as plt", "imports matplotlib"),
    (libraries_stay_in_their_rooms, "training/a.py", "from rich.live import Live", "only cli and render may"),
    (nothing_prints_or_guesses_attributes, "io/state.py", "print(1)", "io/state.py:1 calls print()"),
    (nothing_prints_or_guesses_attributes, "io/state.py", "\nx = hasattr(1, 'a')", ":2 calls hasattr()"),
    (nothing_prints_or_guesses_attributes, "io/state.py", "getattr(1, 'a', None)", "getattr() with a default"),
    (no_except_catches_everything, "cli/main.py", "try:\n    pass\nexcept Exception:\n    pass", "main.py:3 catches"),
    (no_except_catches_everything, "envs/a.py", "try:\n    pass\nexcept:\n    pass", "a.py:3 catches"),
    (
        no_except_catches_everything,
        "envs/a.py",
        "try:\n    pass\nexcept (KeyError, BaseException):\n    pass",
        "catches",
    ),
    (utils_holds_error_handling_only, "utils/grids.py", "", "utils/ holds error_handling.py only"),
    (utils_holds_error_handling_only, "utils/grids/error_handling.py", "", "utils/ holds error_handling.py only"),
    (no_step_calls_the_host, "envs/a.py", "import jax\njax.debug.print('x')", "a.py:2 uses jax.debug.print"),
    (no_step_calls_the_host, "envs/a.py", "from jax.experimental import io_callback", "io_callback"),
    (no_step_calls_the_host, "wrappers/a.py", "import jax\njax.pure_callback(f, x)", "jax.pure_callback"),
    (no_step_calls_the_host, "envs/a.py", "from jax.debug import callback as look", "jax.debug.callback"),
]


@pytest.mark.parametrize(("rule", "file", "text", "complaint"), PLANTED, ids=[case[3] for case in PLANTED])
def test_the_checker_finds_a_planted_violation(tmp_path, rule, file, text, complaint):
    _plant(tmp_path, file, text)
    found = violations(rule, parse(tmp_path))
    assert len(found) == 1
    assert complaint in found[0]


def test_two_public_classes_of_one_name_are_found(tmp_path):
    _plant(tmp_path, "envs/a.py", "class Frame:\n    pass\n\nclass _Hidden:\n    pass")
    _plant(tmp_path, "render/b.py", "class Frame:\n    pass\n\nclass _Hidden:\n    pass")
    (found,) = violations(public_classes_have_one_meaning, parse(tmp_path))
    assert "class Frame" in found


@pytest.mark.parametrize("deferred", ["", "def f():\n    "])
def test_a_circle_of_imports_is_found(tmp_path, deferred):
    _plant(tmp_path, "io/a.py", "from jaxarc.io.b import f")
    _plant(tmp_path, "io/b.py", f"{deferred}from jaxarc.io import c")
    _plant(tmp_path, "io/c.py", "if TYPE_CHECKING:\n    from jaxarc.io.b import f\n")
    assert violations(imports_make_no_circle, parse(tmp_path)) == []
    _plant(tmp_path, "io/c.py", f"{deferred}from jaxarc.io.a import g")
    (found,) = violations(imports_make_no_circle, parse(tmp_path))
    assert all(f"jaxarc.io.{name}" in found for name in "abc")


ALLOWED = [
    ("io/state.py", "from jaxarc.tasks.registry import task_id_of"),
    (
        "envs/operations/fill.py",
        "from jaxarc.envs.state import State\nfrom ..similarity import match\nfrom jaxarc import types",
    ),
    ("envs/reset.py", "import equinox as eqx\nx = eqx.error_if(0, False, 'no')\ny = getattr(x, 'name')"),
    ("registration.py", "from jaxarc.adapters import to_gymnax\nfrom jaxarc.datasets import catalogue"),
    ("cli/main.py", "import hydra, rich, typer\nfrom jaxarc.runs import loop\nprint(hasattr(loop, 'run'))"),
    ("render/grid.py", "import matplotlib.pyplot as plt\nfrom jaxarc.envs.state import State"),
    ("agents/loop.py", "import optax\ntry:\n    pass\nexcept KeyboardInterrupt:\n    pass"),
    ("experts/search.py", "import jax\njax.pure_callback(f, x)"),
]


@pytest.mark.parametrize(("file", "text"), ALLOWED, ids=[case[0] for case in ALLOWED])
def test_the_checker_lets_allowed_code_pass(tmp_path, file, text):
    _plant(tmp_path, file, text)
    assert [found for rule in [*RULES, *RULES_OF_THE_TREE] for found in violations(rule, parse(tmp_path))] == []


def _plant(root: Path, file: str, text: str) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("package", ["jaxarc", "jaxarc.adapters", "jaxarc.experts"])
def test_a_name_that_is_imported_when_asked_for_is_not_hidden_by_a_module_of_that_name(package):
    module = importlib.import_module(package)
    homes = module.__dict__["_HOMES"]
    hidden = [name for name, home in homes.items() if home == f"{package}.{name}"]
    assert not hidden, "after the first import the package's attribute is the module; call the file otherwise"
