"""Why the core is written as it is: the same work in two forms, timed in turn on one core.

Run it with ``python benchmarks/kernels.py``; docs/performance.md quotes it.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxarc.benchmarks import pinned_to_cores
from jaxarc.envs.compilation import compact
from jaxarc.envs.operations.kernels import shift_flat
from jaxarc.fusion import materialize_call
from jaxarc.prng import threefry

BATCH, SIDE, REPEATS, ROUNDS = 1024, 30, 200, 7
CELLS = SIDE * SIDE
NEEDED = BATCH // 4  # rows that one family of operations edits in a step


class Form(NamedTuple):
    """One way to do the work: a step of a loop, from what it carries and the number of the round to what it carries."""

    name: str
    step: Callable[[Any, jax.Array], Any]
    carry: Any


def main() -> None:
    """Time every pair and print it."""
    with pinned_to_cores(1):
        for title, usual, ours in pairs():
            slow, fast = time_in_turn([usual, ours])
            print(
                f"{title}\n  {usual.name:44} {slow:8.1f} ns\n  {ours.name:44} {fast:8.1f} ns   {slow / fast:.1f} times"
            )


def time_in_turn(forms: list[Form]) -> list[float]:
    """Return the median nanoseconds an environment of each form."""

    def repeat(form: Form) -> Any:
        loop = lambda carry: lax.fori_loop(0, REPEATS, lambda i, carry: form.step(carry, i), carry)
        return jax.jit(loop).lower(form.carry).compile()

    loops = [(repeat(form), form.carry) for form in forms]
    samples: list[list[float]] = [[] for _ in forms]
    for turn in range(ROUNDS + 1):  # the first is for warming up
        for place, (loop, carry) in enumerate(loops):
            start = time.perf_counter()
            jax.block_until_ready(loop(carry))
            if turn:
                samples[place].append((time.perf_counter() - start) / REPEATS / BATCH * 1e9)
    return [statistics.median(sample) for sample in samples]


def pairs() -> Iterator[tuple[str, Form, Form]]:
    """List the pairs: a title, the usual form, the one that the core uses."""
    grid = jax.random.randint(jax.random.key(0), (BATCH, CELLS), -1, 10, jnp.int8)
    cube = grid.reshape(BATCH, SIDE, SIDE)
    first_is = lambda x, i: (jnp.arange(BATCH, dtype=jnp.int32) + i) % 2 == 0
    yield (
        "a masked write to every other grid",
        Form("[B, H, W]", lambda x, i: jnp.where(first_is(x, i)[:, None, None], x + jnp.int8(1), x), cube),
        Form("[B, H*W]", lambda x, i: jnp.where(first_is(x, i)[:, None], x + jnp.int8(1), x), grid),
    )

    rows = jnp.sort(jax.random.permutation(jax.random.key(1), BATCH)[:NEEDED])
    block = grid[rows]
    need = jnp.zeros(BATCH, jnp.bool_).at[rows].set(True)
    place = jnp.cumsum(need) - 1
    yield (
        f"{NEEDED} of {BATCH} grids put back",
        Form("scatter of rows", lambda x, i: x.at[(rows + i) % BATCH].set(block, mode="drop"), grid),
        Form(
            "select of a gather",
            lambda x, i: jnp.where(need[:, None], jnp.take(block, (place + i) % NEEDED, axis=0, mode="clip"), x),
            grid,
        ),
    )

    offset = jax.random.randint(jax.random.key(2), (BATCH,), -40, 40)
    index = jnp.arange(CELLS, dtype=jnp.int32)[None] + offset[:, None]

    def gather(x: jax.Array, i: jax.Array) -> jax.Array:
        clipped = jnp.clip(index + i % 2, 0, CELLS - 1)
        take = lambda x, index: jnp.take_along_axis(x, index, axis=1, mode="promise_in_bounds")
        return materialize_call(take, x, clipped)

    yield (
        "every grid shifted",
        Form("gather, cell by cell", gather, grid),
        Form("slice at an offset", lambda x, i: shift_flat(x, offset + i % 2), grid),
    )

    families = jax.random.randint(jax.random.key(3), (BATCH,), -3, 5)
    needs = lambda i: [families == (family + i) % 8 for family in range(5)]
    sums = jnp.zeros((5, BATCH), jnp.int32)
    yield (
        "who needs which of five kernels",
        Form("jnp.cumsum", lambda x, i: x ^ jnp.cumsum(jnp.stack(needs(i)), axis=1, dtype=jnp.int32), sums),
        Form("compact, with the order of the rows", lambda x, i: x ^ _ranks(needs(i)), sums),
    )

    words, key = jnp.zeros(BATCH, jnp.uint32), jax.random.key(4)

    def jax_words(x: jax.Array, i: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.fold_in(key, i), BATCH)
        return x ^ jax.vmap(lambda key: jax.random.bits(key, (5,), jnp.uint32))(keys).sum(1, dtype=jnp.uint32)

    def our_words(x: jax.Array, i: jax.Array) -> jax.Array:
        keys = jax.random.key_data(jax.random.split(jax.random.fold_in(key, i), BATCH))
        draw = lambda key: threefry(key, jnp.arange(5, dtype=jnp.uint32))[0].sum(dtype=jnp.uint32)
        return x ^ jax.vmap(draw)(keys)

    yield (
        "a key and five random words",
        Form("jax.random.split and bits", jax_words, words),
        Form("jax.random.split and threefry", our_words, words),
    )


def _ranks(needs: list[jax.Array]) -> jax.Array:
    """Use all that lining up gives, so that none of it is left out."""
    blocks = compact(needs)
    return jnp.stack([block.rank for block in blocks]) ^ blocks[0].order[None, :BATCH]


if __name__ == "__main__":
    main()
