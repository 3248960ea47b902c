"""Print the figures by which the shape of the source is watched.

    python benchmarks/house_figures.py            # a second: the files as they are
    python benchmarks/house_figures.py --flows    # a minute: the files that one step and one update run through, too

A figure is something to look at, not a limit. Counted the same way, packages that are easy to read have, in median
lines of a file / whole-line comments and import lines per 1,000 lines: mctx 182 / 123 / 23, pgx 141 / 88 / 27, equinox
133 / 50 / 57. Without the license at the head of each file mctx has 61 comment lines and pgx 57; our files have none.
Worked examples that stand in docstrings do not count.
"""

import argparse
import ast
import collections
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# A step and a small training run, each in a fresh process that notes which functions of the package run.
_STEP = """
import jax, jaxarc
env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox", executor="compact")
state, _ = env.reset(jax.random.key(0), params)
action = jaxarc.BboxAction(3, 0, 0, 1, 1)
flow = watch(lambda: env.step(state, action, params))
"""
_UPDATE = """
import contextlib, importlib, pkgutil
import jaxarc
from jaxarc.cli.main import main
# What runs while a module is imported is no part of the flow.
for module in pkgutil.walk_packages(jaxarc.__path__, "jaxarc."):
    with contextlib.suppress(ImportError):  # a library of an extra
        importlib.import_module(module.name)
choices = ["experiment=small_grids", "agent.num_envs=8", "agent.rollout_steps=4", "agent.num_minibatches=2",
    "task.max_side=3", "dataset.max_grid_height=3", "dataset.max_grid_width=3", "environment.max_episode_steps=3",
    "training.total_steps=64", "training.updates_per_report=1", "logging.run_root={folder}"]
def run():
    try:
        main(["train", *choices])
    except SystemExit as end:
        assert not end.code, end.code
flow = watch(run)
"""
_WATCH = """
import sys, threading
from pathlib import Path
PACKAGE = {package!r}
def watch(call):
    ran, deepest = set(), 0
    def note(frame, event, _):
        nonlocal deepest
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name == "<module>":
            return
        ran.add((code.co_filename, code.co_qualname))
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_filename.startswith(PACKAGE)
            frame = frame.f_back
        deepest = max(deepest, depth)
    threading.setprofile(note)
    sys.setprofile(note)
    call()
    sys.setprofile(None)
    threading.setprofile(None)
    return len({{file for file, _ in ran}}), len(ran), deepest
{code}
print("flow", *flow)
"""


def shape_of(folder: Path) -> str:
    """Return one line on the Python files below a folder, and a line for each class name with two homes."""
    lines: list[int] = []
    comments = 0
    imports = 0
    homes: dict[str, set[str]] = collections.defaultdict(set)
    for path in sorted(folder.rglob("*.py")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # an environment of a campaign
        text = path.read_text(encoding="utf-8")
        rows = text.splitlines()
        lines.append(len(rows))
        comments += sum(row.lstrip().startswith("#") for row in rows)
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports += (node.end_lineno or node.lineno) - node.lineno + 1
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(str(path.relative_to(folder)))
    total = sum(lines)
    twice = {name: sorted(where) for name, where in homes.items() if len(where) > 1}
    short = sum(count < 60 for count in lines)
    median = statistics.median(lines)
    per_thousand = 1000 / total
    facts = [
        f"{len(lines)} files, {total:,} lines, median {median:.0f} lines a file, {short} files under 60",
        f"per 1,000 lines {per_thousand * comments:.1f} whole-line comments, {per_thousand * imports:.0f} import lines",
        f"{len(twice)} public class names in two or more modules",
    ]
    return "\n".join(["; ".join(facts), *(f"  {name}: {', '.join(where)}" for name, where in sorted(twice.items()))])


def flow_of(code: str) -> str:
    """Run code in a fresh process and return how many files and functions of the package ran, and how deep."""
    package = str(ROOT / "src" / "jaxarc")
    with tempfile.TemporaryDirectory() as folder:
        script = _WATCH.format(package=package, code=code.replace("{folder}", folder))
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
        )
    if done.returncode != 0:
        raise SystemExit(f"house_figures: the watched process failed:\n{done.stderr}")
    files, functions, depth = done.stdout.splitlines()[-1].split()[1:]
    return f"{files} files, {functions} functions, {depth} deep"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flows", action="store_true", help="count the files of a step and a training run, too")
    choices = parser.parse_args()
    for name in ("src/jaxarc", "tests"):
        print(f"{name}: {shape_of(ROOT / name)}")
    if choices.flows:
        print(f"one step: {flow_of(_STEP)}")
        print(f"one training run, from the command to its printed lines: {flow_of(_UPDATE)}")


if __name__ == "__main__":
    main()
