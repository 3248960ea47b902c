"""Read the text of a compiled program: its instructions, what they call, and which line of source made them."""

import functools
import re
from typing import Final, NamedTuple

_MODULE: Final = re.compile(r"HloModule ([^\s,]+)")
_COMPUTATION: Final = re.compile(r"(?:ENTRY )?%?([^\s(]+) \(.*\{$")
_INSTRUCTION: Final = re.compile(r"\s+(?:ROOT )?%?([^\s=]+) = (.+)$")
_OPCODE: Final = re.compile(r"\s*([\w\-]+)\(")
_CALLED: Final = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([^\s,)}]+)")
_BRANCHES: Final = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")
_OP_NAME: Final = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME: Final = re.compile(r"stack_frame_id=(\d+)")
_FILE_AND_LINE: Final = re.compile(r'source_file="([^"]*)" source_line=(\d+)')
_TABLE_ROW: Final = re.compile(r"(\d+) (.+)$")
_TABLES: Final = ("FileNames", "FileLocations", "StackFrames")


class Instruction(NamedTuple):
    """One instruction of a compiled program."""

    name: str
    shape: str
    opcode: str
    called: tuple[str, ...]  # computations: the body of a loop, the branches of a conditional, what a fusion holds
    op_name: str  # the path of JAX operations that it comes from, or ""
    source_line: str  # "file.py:12", or ""


class HloModule(NamedTuple):
    """A compiled program."""

    name: str
    instructions: dict[str, Instruction]  # by name, which is unique in the program
    computations: dict[str, list[str]]  # name of a computation -> its instructions


def parse_hlo(text: str) -> HloModule:
    """Read what ``compiled.as_text()`` returns.

    Raises:
        ValueError: it is not the text of a compiled program.
    """
    header = _MODULE.match(text)
    if header is None:
        raise ValueError(f"not the text of a compiled program: it starts with {text[:40]!r}; pass compiled.as_text()")
    instructions: dict[str, Instruction] = {}
    computations: dict[str, list[str]] = {}
    source_line = functools.partial(_source_line, _tables(text))
    members: list[str] = []
    for line in text.splitlines():
        if found := _INSTRUCTION.match(line):
            instruction = _instruction(found[1], found[2], source_line(found[2]))
            instructions[instruction.name] = instruction
            members.append(instruction.name)
        elif found := _COMPUTATION.match(line):
            members = computations[found[1]] = []
    return HloModule(header[1], instructions, computations)


def instructions_within(module: HloModule, instruction: Instruction) -> set[str]:
    """Return the names of all instructions that an instruction calls, and of those that they call."""
    found: set[str] = set()
    waiting = list(instruction.called)
    while waiting:
        new = [name for name in module.computations.get(waiting.pop(), []) if name not in found]
        found.update(new)
        waiting.extend(called for name in new for called in module.instructions[name].called)
    return found


def described(module: HloModule, instruction: Instruction) -> Instruction:
    """Return the instruction, with the source of the last one it calls where it has none itself."""
    if instruction.op_name:
        return instruction
    inner = [module.instructions[name] for called in instruction.called for name in module.computations.get(called, [])]
    known = [one for one in inner if one.op_name and one.opcode != "parameter"]
    return instruction._replace(op_name=known[-1].op_name, source_line=known[-1].source_line) if known else instruction


def _instruction(name: str, definition: str, source_line: str) -> Instruction:
    end = _end_of_shape(definition)
    opcode = _OPCODE.match(definition, end)
    branches = [branch.strip().lstrip("%") for group in _BRANCHES.findall(definition) for branch in group.split(",")]
    op_name = _OP_NAME.search(definition)
    return Instruction(
        name,
        shape=definition[:end],
        opcode=opcode[1] if opcode else "",
        called=(*_CALLED.findall(definition), *filter(None, branches)),
        op_name=op_name[1] if op_name else "",
        source_line=source_line,
    )


def _end_of_shape(definition: str) -> int:
    """The position after the shape: a word, or a tuple in parentheses with blanks in it."""
    if not definition.startswith("("):
        return definition.find(" ")
    depth = 0
    for position, character in enumerate(definition):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position + 1
    return len(definition)


def _source_line(tables: dict[str, dict[str, str]], definition: str) -> str:
    """File and line where an instruction comes from: written out, or as the number of a row in the tables."""
    if written := _FILE_AND_LINE.search(definition):
        return f"{written[1]}:{written[2]}"
    frame = _FRAME.search(definition)
    location = _entry(tables["StackFrames"], frame[1] if frame else "", "file_location_id")
    file = tables["FileNames"].get(_entry(tables["FileLocations"], location, "file_name_id"), "").strip('"')
    line = _entry(tables["FileLocations"], location, "line")
    return f"{file}:{line}" if file and line else ""


def _entry(table: dict[str, str], row: str, key: str) -> str:
    found = re.search(rf"\b{key}=(\d+)", table.get(row, ""))
    return found[1] if found else ""


def _tables(text: str) -> dict[str, dict[str, str]]:
    """The tables of files, places and stack frames at the top of the text: row number -> the rest of the row."""
    tables: dict[str, dict[str, str]] = {name: {} for name in _TABLES}
    table: dict[str, str] = {}
    for line in text.splitlines():
        if row := _TABLE_ROW.match(line):
            table[row[1]] = row[2]
        elif line:
            table = tables.get(line, {})
    return tables
