"""Count the communication between devices in a compiled program."""

import math
import re
from typing import Final, NamedTuple

from jax.stages import Compiled

COLLECTIVES: Final = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)
_INSTRUCTION: Final = re.compile(rf" = (?P<result>\(.*?\)|\S+) (?P<kind>{'|'.join(COLLECTIVES)})(?P<start>-start)?\(")
_ARRAY: Final = re.compile(r"(?P<kind>[a-z]+)(?P<bits>\d*)\w*\[(?P<shape>[\d,]*)\]")
_WITH_OPERANDS: Final = ("all-gather", "collective-permute")  # their start lists the operand before the result


class Collective(NamedTuple):
    """All operations of one kind in a program."""

    num_instructions: int  # in the program; one inside a loop counts once, however often the loop runs
    num_bytes: int  # of their results on each device, if each runs once


def count_collectives(program: Compiled | str) -> dict[str, Collective]:
    """Count the collective operations in a compiled program: ``count_collectives(jax.jit(f).lower(x).compile())``.

    An asynchronous one, a start and a done, counts once.

    Args:
        program: compiled, or the text of its HLO.

    Returns:
        Count and bytes for every name in ``COLLECTIVES``, zeros included.

    Raises:
        ValueError: the backend does not give the text of its programs.
    """
    if not isinstance(program, Compiled | str):
        raise TypeError(
            f"a compiled program was expected, got {type(program).__name__}; see jax.jit(f).lower(x).compile()"
        )
    text = program if isinstance(program, str) else program.as_text()
    if text is None:
        raise ValueError("count_collectives: this backend gives no text of its programs; compile for cpu, gpu or tpu")
    # Every name starts at zero, so a program without a collective says so.
    found: dict[str, Collective] = {name: Collective(0, 0) for name in COLLECTIVES}
    for match in _INSTRUCTION.finditer(text):
        # Of these kinds the start of an asynchronous operation has a tuple for its result: the operand, the result,
        # and maybe more. Only the second counts.
        arrays = [_num_bytes(array) for array in _ARRAY.finditer(match["result"])]
        if match["start"] and match["kind"] in _WITH_OPERANDS:
            arrays = arrays[1:2]
        count, num_bytes = found[match["kind"]]
        found[match["kind"]] = Collective(count + 1, num_bytes + sum(arrays))
    return found


def _num_bytes(array: re.Match[str]) -> int:
    # An array f32[4,8] has 32 bits a number: 32 * 32 / 8 = 128 bytes. Types below a byte take a whole one.
    bits = int(array["bits"] or 8)  # a "pred" takes a byte
    return math.prod(int(size) for size in array["shape"].split(",") if size) * max(bits, 8) // 8
