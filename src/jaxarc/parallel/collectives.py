"""How much the devices of a compiled program tell one another."""

import math
import re
from dataclasses import dataclass
from typing import Final

import jax

_KINDS: Final = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)
_INSTRUCTION: Final = re.compile(rf" = (?P<result>\(.*?\)|\S+) (?P<kind>{'|'.join(_KINDS)})(?P<start>-start)?\(")
_ARRAY: Final = re.compile(r"(?P<kind>[a-z]+)(?P<bits>\d*)\w*\[(?P<shape>[\d,]*)\]")
_WITH_OPERANDS: Final = ("all-gather", "collective-permute")  # whose start names the operand before the result


@dataclass(frozen=True)
class Collective:
    """All operations of one kind in a program."""

    count: int  # places in the program; one inside a loop counts once, however often the loop runs
    num_bytes: int  # that they leave on each device, per time that each runs


def count_collectives(program: "jax.stages.Compiled | str") -> dict[str, Collective]:
    """Count the operations by which the devices of a program exchange data, by kind, such as ``"all-reduce"``.

    Args:
        program: ``jax.jit(f).lower(...).compile()``, or the text of its HLO.

    Returns:
        The kinds that occur; empty where no device waits for another one.

    Raises:
        ValueError: the backend does not show the program.
    """
    text = program if isinstance(program, str) else program.as_text()
    if text is None:
        raise ValueError("this backend does not show the HLO of a compiled program; count on another one")
    found: dict[str, Collective] = {}
    for match in _INSTRUCTION.finditer(text):
        arrays = [_num_bytes(array) for array in _ARRAY.finditer(match["result"])]
        if match["start"] and match["kind"] in _WITH_OPERANDS:
            arrays = arrays[1:2]
        before = found.get(match["kind"], Collective(0, 0))
        found[match["kind"]] = Collective(before.count + 1, before.num_bytes + sum(arrays))
    return found


def _num_bytes(array: re.Match[str]) -> int:
    bits = int(array["bits"] or 8)  # a "pred" takes a byte
    return math.prod(int(size) for size in array["shape"].split(",") if size) * max(bits, 8) // 8
