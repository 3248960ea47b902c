"""What a program that XLA compiled for a GPU costs: kernels that it launches, loops, bytes that it moves.

The text of a compiled program lists computations. Each instruction of one that runs on its own, such as a fusion, is
one launch; what stands inside of a fusion is part of it. A launch reads its operands from device memory and writes its
result there::

    %body (...) {
      %f = s8[64,900] fusion(%grid, %sizes), calls=%fused_computation     one launch; reads grid and sizes, writes f
      %w = (...) while(%t), condition=%c, body=%b, ... "n":"30"           30 times what %b launches
    }

A TPU keeps arrays such as ``s8[64,900]{1,0:T(8,128)S(1)}``, with a space in their layout, in fast memory: they count 0.
"""

import re
from dataclasses import dataclass
from typing import Final

LAUNCH_SECONDS: Final = 3e-6  # of a kernel on a GPU, whatever it does: 2 to 4 microseconds
OPEN_TURNS: Final = 2  # assumed of a loop that ends when the data say so: a flood fill sweeps thrice, once before it
_SIZES: Final = {"pred": 1, "s4": 1, "u4": 1, "token": 0, "opaque": 0}  # bytes; others say their bits in the name
_LAUNCHES: Final = {
    *("fusion", "copy", "copy-start", "custom-call", "sort", "scatter", "gather", "select-and-scatter", "dot"),
    *("reduce", "reduce-window", "dynamic-slice", "dynamic-update-slice", "slice", "pad", "transpose", "convert"),
    *("broadcast", "concatenate", "iota", "convolution", "rng-bit-generator"),
}
_HEAD: Final = re.compile(r"^(ENTRY )?(%[\w.\-]+) \(")
_INSTRUCTION: Final = re.compile(r"\s*(ROOT )?(%[\w.\-]+) = (\(.*?\)|[\w\[\]{},:()]+) ([\w\-]+)\((.*?)\)(?:,|$)")
_NAME: Final = re.compile(r"%[\w.\-]+")
_ARRAY: Final = re.compile(r"(\w+)\[([\d,]*)\](?:\{([^{}]*)\})?")
_TURNS: Final = re.compile(r'known_trip_count":\{"n":"(\d+)"')
_CALLED: Final = re.compile(r"\b(body|condition|calls|to_apply)=(%[\w.\-]+)")
_BRANCHES: Final = re.compile(r"branch_computations=\{(.*?)\}|(?:true|false)_computation=(%[\w.\-]+)")


@dataclass(frozen=True)
class Instruction:
    """One line of a computation."""

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    line: str
    is_root: bool

    def called(self, role: str) -> str | None:
        """Return the computation that it calls in this role, such as ``body``."""
        return next((name for kind, name in _CALLED.findall(self.line) if kind == role), None)


@dataclass(frozen=True)
class Loop:
    """A loop or a branch, and what one turn of it costs."""

    kind: str  # "while" or "conditional"
    turns: int | None  # None: as the data say, for which the host waits in each turn
    turn: "Costs"

    @property
    def is_open(self) -> bool:
        return self.turns is None


@dataclass(frozen=True)
class Costs:
    """What one run of a computation costs; loops apart."""

    launches: int
    num_bytes: int
    loops: tuple[Loop, ...]

    def total_launches(self, open_turns: int = OPEN_TURNS) -> int:
        """Launches with those of all loops, where an open one takes so many turns; a branch is taken once."""
        return self.launches + sum(
            _turns(loop, open_turns) * loop.turn.total_launches(open_turns) for loop in self.loops
        )

    def total_bytes(self, open_turns: int = OPEN_TURNS) -> int:
        """Bytes read and written with those of all loops."""
        inner = (_turns(loop, open_turns) * loop.turn.total_bytes(open_turns) for loop in self.loops)
        return self.num_bytes + sum(inner)

    def open_loops(self) -> list[Loop]:
        """All loops, however deep, that end when the data say so."""
        return [found for loop in self.loops for found in ([loop] if loop.is_open else []) + loop.turn.open_loops()]

    def longest_loop(self) -> "Costs":
        """One turn of the loop that moves most, or the program itself where it has none: the step of a rollout."""
        loops = [loop for loop in self.loops if loop.kind == "while"]
        return max(loops, key=lambda loop: loop.turn.total_bytes()).turn if loops else self

    def bound_seconds(self, bandwidth: float) -> tuple[float, float]:
        """Seconds that launching takes at least, and seconds that moving takes at ``bandwidth`` bytes per second."""
        return self.total_launches() * LAUNCH_SECONDS, self.total_bytes() / bandwidth


def costs_of(text: str) -> Costs:
    """Return what one run of a compiled program costs.

    Raises:
        ValueError: the text has no entry computation.
    """
    computations, entry = _parse(text)
    if entry is None:
        raise ValueError(
            f"the text of a compiled program has an ENTRY computation, got {text[:60]!r}; compile it first"
        )
    return _measure(entry, computations)


def _turns(loop: Loop, open_turns: int) -> int:
    if loop.turns is not None:
        return loop.turns
    return open_turns if loop.kind == "while" else 1


def _parse(text: str) -> tuple[dict[str, list[Instruction]], str | None]:
    computations: dict[str, list[Instruction]] = {}
    entry = None
    current: list[Instruction] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            current = computations.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif found := _INSTRUCTION.match(line):
            root, name, shape, opcode, operands = found.groups()
            current.append(Instruction(name, shape, opcode, tuple(_NAME.findall(operands)), line, bool(root)))
    return computations, entry


def _measure(name: str, computations: dict[str, list[Instruction]]) -> Costs:
    shapes = {instruction.name: instruction.shape for instruction in computations[name]}
    launches, num_bytes, loops = 0, 0, []
    for instruction in computations[name]:
        if instruction.opcode == "while":
            turns = _TURNS.search(instruction.line)
            body, condition = (_measure(str(instruction.called(role)), computations) for role in ("body", "condition"))
            # A condition on a counter is the host's; one that launches is part of the turn.
            turn = Costs(body.launches + condition.launches, body.num_bytes + condition.num_bytes, body.loops)
            loops.append(Loop("while", int(turns[1]) if turns else None, turn))
        elif instruction.opcode == "conditional":
            named = [one or other for one, other in _BRANCHES.findall(instruction.line)]
            branches = [_measure(branch, computations) for group in named for branch in _NAME.findall(group)]
            loops.append(Loop("conditional", None, max(branches, key=lambda branch: branch.total_bytes())))
        elif instruction.opcode in ("call", "async-start"):
            inner = _measure(str(instruction.called("to_apply") or instruction.called("calls")), computations)
            launches, num_bytes = launches + inner.launches, num_bytes + inner.num_bytes
            loops.extend(inner.loops)
        elif instruction.opcode in _LAUNCHES:
            launches += 1
            num_bytes += _moved(instruction, shapes, computations)
    return Costs(launches, num_bytes, tuple(loops))


def _moved(instruction: Instruction, shapes: dict[str, str], computations: dict[str, list[Instruction]]) -> int:
    """Bytes that a launch reads and writes.

    A fusion that only slices an operand, or gathers from it, reads what it takes of it, and one that updates a slice of
    an operand writes the slice in place.
    """
    sizes = [_num_bytes(shapes.get(operand, "")) for operand in instruction.operands]
    if instruction.opcode == "copy-start":  # its result is the copy, then the operand again
        copied = _ARRAY.search(instruction.shape)
        return sum(sizes) + (_num_bytes(copied[0]) if copied else 0)
    called = instruction.called("calls")
    if instruction.opcode != "fusion" or called is None:
        return _num_bytes(instruction.shape) + sum(sizes)
    inside = computations[called]
    shape_of = {each.name: each.shape for each in inside}
    updates = {each.name: each for each in inside if each.opcode == "dynamic-update-slice"}
    total = 0
    for number, size in enumerate(sizes):
        parameter = next(
            each.name for each in inside if each.opcode == "parameter" and f"parameter({number})" in each.line
        )
        taken = _reads(parameter, inside, shape_of)
        total += size if None in taken else min(size, sum(part for part in taken if part is not None))
    root = next(each for each in inside if each.is_root)
    outputs = [root.name] if root.opcode != "tuple" else list(root.operands)
    for output in outputs:
        update = updates.get(output)
        total += _num_bytes(shape_of[output] if update is None else shape_of[update.operands[1]])
    return total


def _reads(name: str, inside: list[Instruction], shape_of: dict[str, str]) -> list[int | None]:
    """What each instruction in a fusion reads of an array; a bitcast is the array under another shape."""
    reads: list[int | None] = []
    for user in inside:
        if name in user.operands:
            reads += _reads(user.name, inside, shape_of) if user.opcode == "bitcast" else [_taken(user, name, shape_of)]
    return reads


def _taken(user: Instruction, parameter: str, shape_of: dict[str, str]) -> int | None:
    """Bytes that an instruction in a fusion reads of a parameter; None: all of it."""
    if user.opcode in ("dynamic-slice", "slice", "gather") and user.operands[0] == parameter:
        return _num_bytes(user.shape)
    if user.opcode == "dynamic-update-slice" and user.operands[0] == parameter:
        return 0
    return None


def _num_bytes(shape: str) -> int:
    total = 0
    for dtype, dims, layout in _ARRAY.findall(shape):
        if "S(" in layout:
            continue
        bits = re.search(r"\d+", dtype)
        size = _SIZES[dtype] if dtype in _SIZES else int(bits[0]) // 8 if bits else 4
        for dim in filter(None, dims.split(",")):
            size *= int(dim)
        total += size
    return total
