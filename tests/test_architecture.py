"""The house rules, executable: who may import whom, how large a folder may be, what is banned.

``docs/architecture.md`` says why.
"""

import ast
import functools
import graphlib
import importlib
import subprocess
import sys
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import pytest

from jaxarc.runs.kind import KINDS, Kind

SOURCE = Path(__file__).parents[1] / "src" / "jaxarc"

MOST_MEMBERS_OF_A_KIND = 6
LEAF = {
    "constants",
    "types",
    "prng",
    "notebooks",
    "errors",
    "host_arrays",
    "device_arrays",
    "extras",
    "files",
    "fusion",
    "primitives",
    "native",
    "lazy",
    "jobs",
}
NEUTRAL = {"compilation", "rows", "spaces", "interface"}  # what environments of every kind are made of
CORE = LEAF | NEUTRAL | {"config", "utils", "envs", "tasks.task", "tasks.buffer", "unroll"}
TASKS = {"tasks", "datasets"}
MAY_IMPORT = {  # folder or top-level module -> what it may import besides itself
    "constants": set(),
    "errors": set(),
    "host_arrays": {"errors"},
    "device_arrays": {"host_arrays"},
    "extras": set(),
    "files": {"errors"},
    "native": {"errors", "files"},
    "fusion": set(),
    "primitives": {"errors", "fusion", "native"},
    "lazy": {"extras", "files"},
    "jobs": {"errors", "files"},
    "notebooks": set(),
    "types": {"constants", "notebooks", "host_arrays", "device_arrays"},
    "prng": {"constants", "types", "device_arrays"},
    "config": LEAF,
    "utils": LEAF,
    "compilation": LEAF | {"utils"},
    "rows": LEAF,
    "spaces": LEAF,
    "interface": LEAF | {"compilation", "rows", "spaces"},
    "tasks": LEAF | {"config", "utils"},
    "datasets": LEAF | {"config", "tasks"},
    "envs": LEAF | NEUTRAL | {"config", "utils", "tasks.task", "tasks.buffer", "tasks.augmentation"},
    "unroll": LEAF | NEUTRAL | {"envs"},
    "parallel": CORE | TASKS,
    "wrappers": CORE | {"stoix_adapter"},
    "registration": CORE | TASKS | {"wrappers", "flax_states"},
    "display": CORE | TASKS | {"wrappers", "render"},
    "render": LEAF | {"envs.state", "envs.operations", "tasks.raw_task"},
    "io": LEAF | {"utils", "tasks.registry"},
    "games": LEAF | NEUTRAL | {"tasks.buffer"},
    "flax_states": CORE | TASKS | {"wrappers", "games"},
    "gymnasium_ids": {"constants", "datasets", "tasks"},
    "adapters": CORE | TASKS | {"wrappers", "registration", "render", "flax_states", "games", "gymnasium_ids"},
    "stoix_adapter": CORE | {"adapters", "registration"},
    "experts": CORE | {"search"},
    "nn": LEAF | {"config"},
    "traces": CORE | TASKS | {"experts", "parallel"},
    "search": {"config", "errors", "files", "jobs", "native.library", "tasks.raw_task"},
    "evaluation": CORE | TASKS | {"wrappers", "registration", "parallel", "experts", "traces", "io"},
    "runs": LEAF | {"config", "parallel"},
    "agents": CORE
    | TASKS
    | {"wrappers", "parallel", "nn", "search", "experts", "traces", "evaluation", "runs", "games", "render.actions"},
    "surrogate": CORE
    | TASKS
    | {
        "wrappers",
        "parallel",
        "io",
        "nn",
        "experts",
        "traces",
        "evaluation",
        "agents",
        "runs",
        "search",
        "render.graphs",
    },
    "testing": CORE | TASKS | {"wrappers", "adapters"},
    "play": CORE
    | TASKS
    | {"games", "registration", "experts", "traces", "agents", "evaluation", "runs", "render", "files"},
    "profiling": LEAF | {"utils"},
    "benchmarks": CORE
    | TASKS
    | {"wrappers", "registration", "parallel", "adapters", "agents", "runs", "experts", "surrogate", "profiling"},
}
MAY_IMPORT_ANYTHING = {"__init__", "__main__", "cli"}
# All that `make` and a step reach; games where flax is imported, whose serialization takes their states.
FRONT_DOOR = LEAF | NEUTRAL | {"config", "utils", "envs", "wrappers", "flax_states", "games"} | TASKS
ONLY_IN = {  # a library from outside -> the only folders that may import it
    "hydra": {"cli"},
    "omegaconf": {"cli"},
    "typer": {"cli"},
    "click": {"cli"},
    "gymnax": {"adapters"},
    "gymnasium": {"adapters", "gymnasium_ids", "traces"},
    "minari": {"traces"},
    "arcengine": {"games"},
    "arc_agi": {"games"},
    "stoa": {"adapters", "stoix_adapter"},
    "envelope": {"adapters"},
    "flax": {"flax_states", "adapters"},
    "stable_baselines3": {"adapters"},
    "optax": {"nn", "surrogate", "agents"},
    "matplotlib": {"render", "cli"},
    "rich": {"render", "cli"},
    "PIL": {"render", "cli"},
    "drawsvg": {"render", "cli"},
    "pooch": {"datasets"},
    "requests": {"datasets"},
    "filelock": {"files", "native", "datasets", "runs"},
    "urllib3": {"datasets"},
    "platformdirs": {"datasets", "traces"},
    "fsspec": {"traces"},
    "scipy": {"search"},
    "submitit": {"jobs"},
    "ray": {"jobs"},
    "yaml": {"config", "datasets", "cli"},
    "starlette": {"play"},
    "uvicorn": {"play"},
    "tensorboardX": {"runs"},
    "wandb": {"runs"},
    "jax.interpreters": {"primitives"},
    "jax._src": {"primitives"},
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
        parts = name.split(".")
        for library in {parts[0], ".".join(parts[:2])} & ONLY_IN.keys():
            if file.room in ONLY_IN[library]:
                continue
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


def file_names_stand_once(files: Sequence[SourceFile]) -> Iterator[str]:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in files:
        homes[file.where.name].append(str(file.where))
    for where in (where for name, where in homes.items() if name != "__init__.py" and len(where) > 1):
        yield f"{' and '.join(where)} have one file name; give each a name of its own"


def imports_make_no_circle(files: Sequence[SourceFile]) -> Iterator[str]:
    """Modules must not import one another in a circle: deferred imports, and what packages name, are counted."""
    modules = {file.module: file for file in files}
    imported = {name: _imported(file, modules) | _named(file, modules) for name, file in modules.items()}
    try:
        graphlib.TopologicalSorter({name: found - {name} for name, found in imported.items()}).prepare()
    except graphlib.CycleError as error:
        yield f"a circle of imports: {' -> '.join(error.args[1])}"


def the_front_door_is_light(files: Sequence[SourceFile]) -> Iterator[str]:
    """``jaxarc.make`` and a step reach the environment, tasks and datasets alone, and a drawing also what draws."""
    modules = {file.module: file for file in files}
    for start, more in (("registration", set()), ("unroll", {"unroll"}), ("display", {"render"})):
        allowed = FRONT_DOOR | more | {start}
        for module, path in _reached(f"jaxarc.{start}", modules).items():
            if module != "jaxarc" and modules[module].room not in allowed:
                yield f"{start} reaches {module}, which is behind the front door: {' -> '.join(path)}"


def _imported(file: SourceFile, modules: Container[str]) -> set[str]:
    return {found for name in file.runtime_imports() if (found := _module(name, modules)) in modules}


def _named(file: SourceFile, modules: Container[str]) -> set[str]:
    """Return the modules that a package names in strings, and imports when somebody asks for them."""
    if file.where.name != "__init__.py":
        return set()
    words = [node.value for node in file.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {name for word in words for name in (word, f"{file.module}.{word}") if name in modules}


def _reached(start: str, modules: dict[str, SourceFile]) -> dict[str, list[str]]:
    """Return each module that is loaded with one, deferred imports and packages included, with the way there."""
    ways = {start: [start]} if start in modules else {}
    todo = list(ways)
    while todo:
        name = todo.pop()
        package = name.rpartition(".")[0]
        # The root package names everything, and imports nothing of it until somebody asks.
        found = _imported(modules[name], modules) | {package} if package else set()
        for module in sorted(found & modules.keys() - ways.keys()):
            ways[module] = [*ways[name], module]
            todo.append(module)
    return ways


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
RULES_OF_THE_TREE = [
    public_classes_have_one_meaning,
    file_names_stand_once,
    imports_make_no_circle,
    the_front_door_is_light,
]


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


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_the_functions_of_the_protocol_which_are_few(name):
    members = [member for member in vars(Kind) if not member.startswith("_")]
    assert 0 < len(members) <= MOST_MEMBERS_OF_A_KIND, members
    kind = importlib.import_module(KINDS[name].module)
    assert all(callable(vars(kind)[member]) for member in members)


PLANTED = [  # rule, file, its text, what the complaint must say
    (imports_follow_the_table, "envs/grid.py", "import jaxarc.agents.ppo", "envs/grid.py:1 must not import agents.ppo"),
    (imports_follow_the_table, "envs/operations/fill.py", "from ...agents import ppo", "import agents.ppo"),
    (imports_follow_the_table, "envs/grid.py", "def f():\n    from jaxarc import wrappers", ":2 must not"),
    (imports_follow_the_table, "config/main.py", "from jaxarc.typesetting import x", "import typesetting.x"),
    (imports_follow_the_table, "agents/ppo.py", "import jaxarc", "import jaxarc"),
    (imports_follow_the_table, "agents/ppo.py", "from jaxarc import make", "import make"),
    (imports_follow_the_table, "helpers/grid.py", "", "helpers is not in the table"),
    (libraries_stay_in_their_rooms, "registration.py", "import gymnax", "imports gymnax, which only adapters may"),
    (libraries_stay_in_their_rooms, "envs/a.py", "importlib.import_module('stoa.env')", ":1 imports stoa"),
    (libraries_stay_in_their_rooms, "training/a.py", "from rich.live import Live", "only cli and render may"),
    (libraries_stay_in_their_rooms, "envs/a.py", "from jax.interpreters import mlir", "which only primitives may"),
    (nothing_prints_or_guesses_attributes, "io/state.py", "print(1)", "io/state.py:1 calls print()"),
    (nothing_prints_or_guesses_attributes, "io/state.py", "\nx = hasattr(1, 'a')", ":2 calls hasattr()"),
    (nothing_prints_or_guesses_attributes, "io/state.py", "getattr(1, 'a', None)", "getattr() with a default"),
    (no_except_catches_everything, "envs/a.py", "try:\n    pass\nexcept:\n    pass", "a.py:3 catches"),
    (no_except_catches_everything, "envs/a.py", "try:\n    1\nexcept (KeyError, BaseException):\n    2", "catches"),
    (utils_holds_error_handling_only, "utils/grids/error_handling.py", "", "utils/ holds error_handling.py only"),
    (no_step_calls_the_host, "envs/a.py", "import jax\njax.debug.print('x')", "a.py:2 uses jax.debug.print"),
    (no_step_calls_the_host, "envs/a.py", "from jax.experimental import io_callback", "io_callback"),
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


def test_two_files_of_one_name_are_found(tmp_path):
    for file in ("agents/policy.py", "agents/games/policy.py", "agents/__init__.py", "agents/games/__init__.py"):
        _plant(tmp_path, file, "")
    (found,) = violations(file_names_stand_once, parse(tmp_path))
    assert found.startswith("agents/games/policy.py and agents/policy.py have one file name")


@pytest.mark.parametrize("deferred", ["", "def f():\n    "])
def test_a_circle_of_imports_is_found(tmp_path, deferred):
    _plant(tmp_path, "io/a.py", "from jaxarc.io.b import f")
    _plant(tmp_path, "io/b.py", f"{deferred}from jaxarc.io import c")
    _plant(tmp_path, "io/c.py", "if TYPE_CHECKING:\n    from jaxarc.io.b import f\n")
    assert violations(imports_make_no_circle, parse(tmp_path)) == []
    _plant(tmp_path, "io/c.py", f"{deferred}from jaxarc.io.a import g")
    (found,) = violations(imports_make_no_circle, parse(tmp_path))
    assert all(f"jaxarc.io.{name}" in found for name in "abc")


def test_a_circle_through_a_package_is_found(tmp_path):
    _plant(tmp_path, "io/__init__.py", 'HOMES = {"f": "a"}')
    _plant(tmp_path, "io/a.py", "from jaxarc.io.b import f")
    _plant(tmp_path, "io/b.py", "")
    assert violations(imports_make_no_circle, parse(tmp_path)) == []
    _plant(tmp_path, "io/b.py", "def g():\n    from jaxarc.io import f")
    (found,) = violations(imports_make_no_circle, parse(tmp_path))
    assert all(name in found for name in ("jaxarc.io ", "jaxarc.io.a", "jaxarc.io.b"))


def test_what_stands_behind_the_front_door_is_found(tmp_path):
    _plant(tmp_path, "registration.py", "from jaxarc.datasets.a import f")
    _plant(tmp_path, "datasets/__init__.py", "")
    _plant(tmp_path, "datasets/a.py", "def f():\n    from jaxarc.tasks import g")
    assert violations(the_front_door_is_light, parse(tmp_path)) == []
    _plant(tmp_path, "datasets/__init__.py", "def f():\n    import jaxarc.cli.main")
    _plant(tmp_path, "cli/main.py", "")
    (found,) = violations(the_front_door_is_light, parse(tmp_path))
    assert found.startswith("registration reaches jaxarc.cli.main")


def test_a_fresh_process_that_makes_steps_and_draws_loads_nothing_else():
    code = """
import sys, jax, jaxarc
loaded = lambda: {name.split(".")[1] for name in sys.modules if name.startswith("jaxarc.")}
print(*loaded())
env, params = jaxarc.make("ladder_l1", reward="editing")
state, _ = env.reset(jax.random.key(0), params)
env.step(state, jaxarc.BboxAction(3, 0, 0, 1, 1), params)
print(*loaded())
assert "<svg" in jaxarc.load_tasks("arc-agi-1/training")["007bbfb7"]._repr_svg_()
assert "<svg" in state._repr_svg_()
print(*loaded())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported, made, drawn = (set(line.split()) for line in done.stdout.splitlines())
    assert imported == {"extras", "lazy", "notebooks"}
    assert made <= FRONT_DOOR | {"registration"}
    assert drawn <= FRONT_DOOR | {"registration", "display", "render"}


ALLOWED = [
    ("io/state.py", "from jaxarc.tasks.registry import task_id_of"),
    (
        "envs/operations/fill.py",
        "from jaxarc.envs.state import State\nfrom ..similarity import match\nfrom jaxarc import types",
    ),
    ("envs/reset.py", "import equinox as eqx\nx = eqx.error_if(0, False, 'no')\ny = getattr(x, 'name')"),
    ("registration.py", "from jaxarc.wrappers import FlatActions\nfrom jaxarc.datasets import catalogue"),
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


@pytest.mark.parametrize("package", ["jaxarc.adapters", "jaxarc.experts", "jaxarc.render", "jaxarc.tasks"])
def test_a_name_that_is_imported_when_asked_for_is_not_hidden_by_a_module_of_that_name(package):
    module = importlib.import_module(package)
    homes = module.__dict__["_HOMES"]
    hidden = [name for name, home in homes.items() if home == f"{package}.{name}"]
    assert not hidden, "after the first import the package's attribute is the module; call the file otherwise"
