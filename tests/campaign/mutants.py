"""Change the source in one place at a time, and list the changes that no test notices.

Cosmic Ray makes the mutants; each is tried by the tests of its file, in a copy of the tree. Without the C++ library,
which would take the steps in place of the lines that are changed. A survivor is to be read: it lacks a test, or it is
equivalent to the source. Exit code 1: the tests fail without a mutant.
"""

import argparse
import ast
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec
from rich.progress import track

from campaign.summary import finish, parser_of

_ROOT: Final = Path(__file__).parents[2]
_COPIED: Final = ("src", "tests", "configs")
# Left out is what no type allows, such as ``**`` for ``+``: any call at all would find it.
_OPERATORS: Final = re.compile(
    r"""core/(?:
    ReplaceBinaryOperator_(?:Add_Sub|Sub_Add|Mul_Add|Div_Mul|FloorDiv_Mul|Mod_FloorDiv|RShift_LShift|LShift_RShift
        |BitOr_BitAnd|BitOr_BitXor|BitAnd_BitOr|BitAnd_BitXor)
    |ReplaceComparisonOperator_(?:Eq_(?:NotEq|LtE|GtE)|NotEq_(?:Eq|Lt|Gt)|Lt_(?:LtE|NotEq|GtE)|LtE_(?:Lt|Eq|Gt)
        |Gt_(?:GtE|NotEq|LtE)|GtE_(?:Gt|Eq|Lt)|Is_IsNot|IsNot_Is)
    |ReplaceUnaryOperator_(?:USub_UAdd|Delete_USub|Delete_Invert|Delete_Not)
    |AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceAndWithOr|ReplaceOrWithAnd
    |ReplaceBreakWithContinue|ReplaceContinueWithBreak|ExceptionReplacer|NumberReplacer|ZeroIterationForLoop)""",
    re.VERBOSE,
)
_FAMILIES: Final = "tests/envs/test_operation_families.py"
_CELLS: Final = "tests/envs/test_cells_and_boxes.py"
TARGETS: Final[dict[str, tuple[str, ...]]] = {  # file -> its tests, the quickest first
    "envs/canvas.py": (_CELLS, "tests/envs/test_accelerator_form.py", _FAMILIES),
    "envs/compilation.py": ("tests/envs/test_compilation.py", "tests/envs/test_compaction.py", _FAMILIES),
    "envs/operations/execute.py": (_FAMILIES,),
    "envs/operations/flood_fill.py": (_FAMILIES,),
    "envs/operations/grid_edits.py": (_FAMILIES,),
    "envs/structured_actions.py": (
        "tests/bad_input",
        "tests/envs/test_bad_input.py",
        "tests/envs/test_checked_actions.py",
        _CELLS,
    ),
    "envs/action_masks.py": ("tests/envs/test_action_masks.py", "tests/wrappers/test_flat_actions.py"),
    "envs/step.py": (
        *("tests/golden/test_golden_episodes.py", "tests/wrappers/test_trials.py"),
        *("tests/envs/test_properties.py::test_nothing_happens_after_the_end", "tests/campaign/episodes"),
    ),
    "evaluation/submission.py": ("tests/evaluation/test_submission_files.py", "tests/evaluation/test_majority_vote.py"),
}


def main() -> int:
    """Try mutants, print a summary, and return the exit code."""
    parser, began = parser_of(__doc__), time.monotonic()
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"some of: {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--sample", type=int, default=20, metavar="N", help="mutants of a file (default 20)")
    parser.add_argument("--python", default=str(_ROOT / ".venv/bin/python"), help="interpreter that runs the tests")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.files) - set(TARGETS)):
        parser.error(f"no file {unknown[0]!r}; give some of {', '.join(TARGETS)}")
    summary = {"files": {}, "survivors": []}
    with tempfile.TemporaryDirectory(prefix="jaxarc-mutants-") as folder:
        tree = Path(folder)
        for name in _COPIED:
            shutil.copytree(_ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".venv*"))
        shutil.copy2(_ROOT / "pyproject.toml", tree)
        failing = [file for file in asked.files or TARGETS if not _try_file(tree, file, asked, summary)]
    return finish(asked, began, summary, failing, ("cosmic-ray",))  # tests that fail without a mutant


def _try_file(tree: Path, file: str, asked: argparse.Namespace, summary: dict) -> bool:
    """Try a sample of a file's mutants; return whether its tests pass without any."""
    path = tree / "src/jaxarc" / file
    source = path.read_text(encoding="utf-8")
    began = time.monotonic()
    if not _passes(asked.python, tree, TARGETS[file], None):
        return False
    seconds = 60 + 4 * (time.monotonic() - began)  # a mutant that takes longer counts as noticed
    mutants = _mutants(path, source)
    chosen = random.Random(f"{asked.seed} {file}").sample(mutants, min(asked.sample, len(mutants)))
    survivors = 0
    for change in track(chosen, file):
        mutant = mutate_code(source, get_operator(change.operator_name)(**change.operator_args), change.occurrence)
        path.write_text(mutant, encoding="utf-8")
        if _passes(asked.python, tree, TARGETS[file], seconds):
            survivors += 1
            lines = difflib.unified_diff(source.splitlines(), mutant.splitlines(), file, file, lineterm="", n=0)
            summary["survivors"].append(list(lines))
    path.write_text(source, encoding="utf-8")
    summary["files"][file] = {"mutants": len(mutants), "tried": len(chosen), "survived": survivors}
    return True


def _mutants(path: Path, source: str) -> list[MutationSpec]:
    """List the changes of a file, but those of annotations, on which no result depends."""
    with tempfile.TemporaryDirectory() as folder, use_db(f"{folder}/session", WorkDB.Mode.create) as session:
        init([path], session, {})
        changes = [item.mutations[0] for item in session.work_items]
    nodes = [part for node in ast.walk(ast.parse(source)) for part in _annotations(node)]
    typed = [((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in nodes]
    return [
        change
        for change in sorted(changes, key=lambda each: (each.start_pos, each.operator_name, each.occurrence))
        if _OPERATORS.fullmatch(change.operator_name)
        and not any(first <= change.start_pos <= last for first, last in typed)
    ]


def _annotations(node: ast.AST) -> list[ast.expr]:
    return [part for name in ("annotation", "returns") if (part := getattr(node, name, None)) is not None]


def _passes(python: str, tree: Path, tests: Sequence[str], seconds: float | None) -> bool:
    variables = {
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'tests'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_PLATFORMS": "cpu",
        "CI": "1",  # the same examples every time
        "CXX": "none",
        "JAXARC_TEST_FOLDER": str(tree / "user"),
    }
    options = ("-o", "addopts=", "-x", "-q", "-p", "no:cacheprovider")
    try:
        done = subprocess.run(
            [python, "-m", "pytest", *options, *tests],
            cwd=tree,
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode > 2:
        raise ChildProcessError(f"pytest ended with {done.returncode}; run its tests by hand: {' '.join(tests)}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
