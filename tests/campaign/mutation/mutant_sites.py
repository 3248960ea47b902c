"""Which places of a file can be broken, and how: Cosmic Ray's operators, without those that break every program."""

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec, WorkerOutcome, WorkItem, WorkResult

PACKAGE: Final = "src/jaxarc"
# Left out is what no type allows, such as ``**`` for ``+``: any call at all would kill it, which flatters the tests.
_OPERATORS: Final = re.compile(
    r"""core/(?:
    ReplaceBinaryOperator_(?:Add_Sub|Sub_Add|Mul_Add|Div_Mul|FloorDiv_Mul|Mod_FloorDiv|RShift_LShift|LShift_RShift
        |BitOr_BitAnd|BitOr_BitXor|BitAnd_BitOr|BitAnd_BitXor)
    |ReplaceComparisonOperator_(?:Eq_(?:NotEq|LtE|GtE)|NotEq_(?:Eq|Lt|Gt)|Lt_(?:LtE|NotEq|GtE)|LtE_(?:Lt|Eq|Gt)
        |Gt_(?:GtE|NotEq|LtE)|GtE_(?:Gt|Eq|Lt)|Is_IsNot|IsNot_Is)
    |ReplaceUnaryOperator_(?:USub_UAdd|Delete_USub|Delete_Invert|Delete_Not)
    |AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceAndWithOr|ReplaceOrWithAnd
    |ReplaceBreakWithContinue|ReplaceContinueWithBreak|ExceptionReplacer|NumberReplacer|RemoveDecorator
    |ZeroIterationForLoop)""",
    re.VERBOSE,
)
_CACHES: Final = ("functools.cache", "functools.lru_cache")


class Place(NamedTuple):
    """Where a mutant differs from the source."""

    file: str  # below the package
    line: int
    column: int
    operator: str
    occurrence: int


def place(item: WorkItem) -> Place:
    """Return where a mutant differs from the source."""
    change = item.mutations[0]
    name = str(change.module_path).split(f"{PACKAGE}/", 1)[1]
    return Place(name, *change.start_pos, change.operator_name.removeprefix("core/"), change.occurrence)


def list_mutants(session: WorkDB, root: Path, files: Sequence[str]) -> None:
    """Put every mutant of the files into a session, and mark those that are not to be tried as skipped."""
    init([root / PACKAGE / file for file in files], session, {})
    left_out = {root / PACKAGE / file: list(_left_out(root / PACKAGE / file)) for file in files}
    skipped = [item.job_id for item in session.work_items if not _is_to_be_tried(item.mutations[0], left_out)]
    session.set_multiple_results(skipped, WorkResult(WorkerOutcome.SKIPPED, "not to be tried"))


def mutated_code(item: WorkItem) -> tuple[str, str]:
    """Return a file as it is and as the mutant has it."""
    change = item.mutations[0]
    was = change.module_path.read_text(encoding="utf-8")
    becomes = mutate_code(was, get_operator(change.operator_name)(**change.operator_args), change.occurrence)
    if becomes is None:
        raise LookupError(f"{change.module_path} has changed since its mutants were listed; begin with --anew")
    return was, becomes


def changed_lines(was: str, becomes: str) -> str:
    """Return the lines that differ, ``- was`` and ``+ becomes``, without their indentation."""
    lines = difflib.ndiff(was.splitlines(), becomes.splitlines())
    return "\n".join(f"{line[0]} {_tidy(line[2:])}" for line in lines if line[0] in "+-")


def _tidy(line: str) -> str:
    """One space where there are several, and none behind a bracket: the tool writes one before each number."""
    return re.sub(r"(?<=[\[({]) ", "", " ".join(line.split()))


def _is_to_be_tried(change: MutationSpec, left_out: Mapping[Path, Sequence[tuple]]) -> bool:
    within = any(first <= change.start_pos <= last for first, last in left_out[change.module_path])
    return _OPERATORS.fullmatch(change.operator_name) is not None and not within


def _left_out(file: Path) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """First and last positions of what no result depends on: annotations, types that have a name, and caches."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = [node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript)]
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation) if annotation:
                nodes.append(annotation)
            case ast.FunctionDef(returns=returns) if returns:
                nodes.append(returns)
        if isinstance(node, ast.FunctionDef):
            nodes += [each for each in node.decorator_list if ast.unparse(each).startswith(_CACHES)]
    for node in nodes:  # a decorator begins at its @, one column before its name
        yield (node.lineno, max(node.col_offset - 1, 0)), (node.end_lineno or 0, node.end_col_offset or 0)
