"""Beam search for a short sequence of actions that solves a pair, in one compiled program.

Each depth extends all grids of the beam at once and keeps the best. With a width of 2 and 3 candidates per grid:

    grids of the beam       A               B
    similarity after each   .5  .9  .2      .9  .7  -1      (-1: invalid, a submit, or of a dead grid)
    pool, best first        A1  B0  B1  A0  ...             (top_k takes the first of equals)
    their grids             G   G   H   K                   (A1 and B0 lead to the same grid)
    kept                    G       H                       (the first of equal grids; dead ones go to the end)

Only the pool is edited, a few times the width, as equal grids drop out of it. If too few different grids are left, the
beam is padded with dead ones.
"""

import functools
from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, UInt32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import count_matches, count_union, similarity
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.experts.candidates import candidates_of_canvas, require_count
from jaxarc.experts.canvas_state import CanvasState, canvas_of_state, check_edits, edit
from jaxarc.experts.lookahead import score_candidates
from jaxarc.prng import as_typed_key
from jaxarc.types import PRNGKey

_POOL: Final = 4  # candidates that are edited for each that is kept, as equal grids drop out
_DEAD: Final = -1.0  # below any similarity


class Solution(NamedTuple):
    """The best sequence of actions that a search found, padded with submits."""

    actions: StructuredAction  # edits, then submits to the end; leading axis depth + 1
    num_actions: Int32[Array, ""]  # 1 .. depth + 1: the edits and one submit
    similarity: Float32[Array, ""]  # after them, 0 .. 1
    is_solved: Bool[Array, ""]  # whether the submit is right


class _Beam(eqx.Module):
    depth: Int32[Array, ""]
    canvas_states: CanvasState  # leading axis W of the beam's width
    is_live: Bool[Array, " W"]
    paths: StructuredAction  # leading axes W, depth
    best_similarity: Float32[Array, ""]
    best_length: Int32[Array, ""]  # edits of best_path
    best_path: StructuredAction  # leading axis depth


def beam_search(
    key: PRNGKey, state: ArcEnvState, params: EnvParams, width: int = 8, depth: int = 40, num_candidates: int = 128
) -> Solution:
    """Search for actions that make the grid of a state equal to its target.

    At each depth it draws candidates for each of ``width`` grids, and keeps those ``width`` of the grids that they lead
    to that are most similar to the target, each once. Of equals it takes the first: the same key gives the same
    solution on every machine. It ends when the target is reached, or after ``depth`` edits; then it returns the path to
    the most similar grid that it met, of equals the one with the fewest edits.

    Args:
        key: random key of the candidates.
        state: of one environment, made by ``env.reset`` or ``env.step``; jit and vmap belong to the caller.
        params: what the environment plays.
        width: grids that are kept, static.
        depth: largest number of edits, static.
        num_candidates: actions tried on each grid, static; see :func:`jaxarc.experts.candidates.candidate_actions`.

    Raises:
        ValueError: width or depth is below 1, there are too few candidates, or submits are not allowed.
    """
    config = params.config
    _require(width, depth, num_candidates, config)
    canvas_state = canvas_of_state(state, params)
    beam = _start(canvas_state, width, depth, config)
    extend = functools.partial(_extend, key=as_typed_key(key), num_candidates=num_candidates, config=config)
    beam = jax.lax.while_loop(lambda beam: (beam.depth < depth) & (beam.best_similarity < 1), extend, beam)
    return _solution(beam)


def _require(width: int, depth: int, num_candidates: int, config: JaxArcConfig) -> None:
    require_count(num_candidates, config)
    for name, value in (("width", width), ("depth", depth)):
        if value < 1:
            raise ValueError(f"{name} of a beam search must be at least 1, got {value}")
    if c.SUBMIT not in config.legal_operations:
        raise ValueError(f"a solution ends with a submit; allow operation {c.SUBMIT} in action.allowed_operations")


def _start(canvas_state: CanvasState, width: int, depth: int, config: JaxArcConfig) -> _Beam:
    # All W grids of the beam are the same at first, so only one of them is live: else each candidate would come W
    # times.
    repeat = lambda tree, *axes: jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*axes, *leaf.shape)), tree)
    submit = _submit(config)
    return _Beam(
        depth=jnp.int32(0),
        canvas_states=repeat(canvas_state, width),
        is_live=jnp.arange(width, dtype=jnp.int32) == 0,
        paths=repeat(submit, width, depth),
        best_similarity=_score(canvas_state),
        best_length=jnp.int32(0),
        best_path=repeat(submit, depth),
    )


def _submit(config: JaxArcConfig) -> StructuredAction:
    """Return a submit; its selection does not matter."""
    match config.action.selection_format:
        case "point":
            return PointAction(c.SUBMIT, 0, 0)
        case "bbox":
            return BboxAction(c.SUBMIT, 0, 0, 0, 0)
        case _:
            return MaskAction(c.SUBMIT, jnp.zeros(config.grid_shape, jnp.bool_))


def _extend(beam: _Beam, key: Array, num_candidates: int, config: JaxArcConfig) -> _Beam:
    """Apply all candidates to all grids of the beam and keep the best grids; see the top of this file."""
    # 1. Draw candidates and score them, [W, k]; what comes back is counts, not grids. Each depth has keys of its own.
    width = beam.is_live.shape[0]
    keys = jax.random.split(jax.random.fold_in(key, beam.depth), width)
    draw = lambda key, canvas_state: candidates_of_canvas(key, canvas_state, num_candidates, config)
    actions, is_distinct = jax.vmap(draw)(keys, beam.canvas_states)
    score = lambda canvas_state, actions: score_candidates(canvas_state, actions, config)
    scores = jax.vmap(score)(beam.canvas_states, actions)
    can_follow = beam.is_live[:, None] & is_distinct & scores.is_valid & (actions.operation != c.SUBMIT)
    merit = jnp.where(can_follow, scores.similarity, jnp.float32(_DEAD))  # [W, k]

    # 2. Pool: the best of all W * k, as pairs (parent, candidate). With k = 3 the flat index 4 is candidate 1 of parent
    # 1.
    pool = min(_POOL * width, merit.size)
    merits, index = jax.lax.top_k(merit.reshape(-1), pool)  # of equals the first
    parent = index // num_candidates
    candidate = index % num_candidates
    taken = jax.tree.map(lambda leaf: leaf[parent, candidate], actions)
    pick = lambda tree, rows: jax.tree.map(lambda leaf: leaf[rows], tree)
    # 3. Edit the pool's grids, and drop those that equal a better one. A stable sort by "is dead" keeps the order of
    # merit: the flags 0 1 0 1, 1 for dead, give the rows 0 2 1 3.
    canvas_states = edit(pick(beam.canvas_states, parent), check_edits(taken, config), config)
    is_live = (merits >= 0) & ~_repeats(canvas_states)
    kept = jnp.argsort(~is_live, stable=True)[:width]  # the live ones first, in their order

    canvas_states = pick(canvas_states, kept)
    is_live = is_live[kept]
    taken = pick(taken, kept)
    # Each kept grid takes its parent's path and adds its own action.
    paths = jax.tree.map(lambda path, action: path.at[:, beam.depth].set(action), pick(beam.paths, parent[kept]), taken)
    similarities = jnp.where(is_live, merits[kept], jnp.float32(_DEAD))
    # 4. The best path so far. Only a larger similarity replaces it: of equals the shorter path stays.
    first = jnp.argmax(similarities)
    is_better = similarities[first] > beam.best_similarity
    better = lambda new, old: jax.tree.map(lambda new, old: jnp.where(is_better, new, old), new, old)
    return _Beam(
        depth=beam.depth + 1,
        canvas_states=canvas_states,
        is_live=is_live,
        paths=paths,
        best_similarity=better(similarities[first], beam.best_similarity),
        best_length=better(beam.depth + 1, beam.best_length),
        best_path=better(pick(paths, first), beam.best_path),
    )


def _repeats(canvas_states: CanvasState) -> Bool[Array, " N"]:
    """Which canvas states have the grid and the clipboard of an earlier one, by comparing digests."""
    seen = jnp.stack([_digest(canvas_states.canvas.grid), _digest(canvas_states.canvas.clipboard)], axis=-1)
    # [N, N]: row i compares with the earlier rows j < i. Of the digests 7 9 7 only the third repeats one.
    is_before = jnp.tril(jnp.ones((seen.shape[0], seen.shape[0]), jnp.bool_), -1)
    return ((seen[:, None] == seen[None]).all(axis=-1) & is_before).any(axis=1)


def _digest(grid: Int8[Array, "N HW"]) -> UInt32[Array, " N"]:
    """Hash each grid to a word: the sum of its cells, each times a random odd weight, modulo 2**32.

    Two grids with one digest, which is unlikely, would drop one of them from the beam; the solution stays right.
    """
    # Odd weights are invertible modulo 2**32: two grids that differ in one cell never have the same digest.
    weights = np.random.default_rng(0).integers(1, 2**32, grid.shape[-1], np.uint32) | np.uint32(1)
    return ((grid + jnp.int8(2)).astype(jnp.uint32) * weights[None]).sum(axis=-1, dtype=jnp.uint32)


def _score(canvas_state: CanvasState) -> Float32[Array, ""]:
    canvas = canvas_state.canvas
    return similarity(count_matches(canvas.grid, canvas.target), count_union(canvas.sizes[:4]))


def _solution(beam: _Beam) -> Solution:
    """Append submits to the edits, up to depth + 1."""
    edits = beam.best_length
    # One entry more, for the submit after `depth` edits; what is behind the edits becomes submits, whatever it was.
    path = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf[-1:]]), beam.best_path)
    is_edit = jnp.arange(path.operation.shape[0], dtype=jnp.int32) < edits
    path = eqx.tree_at(lambda p: p.operation, path, jnp.where(is_edit, path.operation, c.SUBMIT))
    return Solution(path, edits + 1, beam.best_similarity, beam.best_similarity == 1)
