"""How often a compiled program makes devices talk to one another."""

from collections import Counter
from typing import Final

from jax.stages import Compiled

from jaxarc.profiling.hlo import parse_hlo

COLLECTIVES: Final = ("all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all")


def count_collectives(compiled: Compiled) -> dict[str, int]:
    """Count the collective operations in a compiled program: ``count_collectives(jax.jit(f).lower(x).compile())``.

    One inside a loop counts once, however often the loop runs. An asynchronous one, a start and a done, counts once.

    Returns:
        A count for every name in ``COLLECTIVES``, 0 included.

    Raises:
        ValueError: the backend does not give the text of its programs.
    """
    text = compiled.as_text()
    if text is None:
        raise ValueError("count_collectives: this backend gives no text of its programs; compile for cpu, gpu or tpu")
    opcodes = Counter(one.opcode.removesuffix("-start") for one in parse_hlo(text).instructions.values())
    return {name: opcodes[name] for name in COLLECTIVES}
