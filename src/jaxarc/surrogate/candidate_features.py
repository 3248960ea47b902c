"""Candidates as arrays: the region of each and its features, from named parent sets or from actions on boxes.

A box of rows 1 .. 2 and columns 0 .. 1 on a 3x3 canvas has the row weights (0, 1, 1) and the column weights (1, 1, 0);
their outer product marks its cells. The parent set {X0} of the target X2 of three variables has (1, 0, 1) twice: it
marks the pairs among X0 and X2 in the grid of all pairs of variables.
"""

import functools
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, Int32

from jaxarc.constants import NUM_GRID_OPERATIONS
from jaxarc.device_arrays import device_array
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.surrogate.batch import ParentSets, TargetVariables, TrainingBatchJAX, VariableOrders, is_visible


class CandidateSet(eqx.Module):
    """k candidates of each example: a region in a grid of R x d cells, and F features.

    A region is the outer product of row and column weights. For boxes of a canvas R is N; for sets of variables R is d.
    """

    rows: Float32[Array, "*B k R"] = eqx.field(converter=device_array)  # 0 .. 1
    columns: Float32[Array, "*B k d"] = eqx.field(converter=device_array)  # 0 .. 1
    features: Float32[Array, "*B k F"] = eqx.field(converter=device_array)
    is_real: Bool[Array, "*B k"] = eqx.field(converter=device_array)  # false for padding


def candidates_of(batch: TrainingBatchJAX) -> CandidateSet:
    """Describe the parent sets that a batch names; the region of a set is its variables and the target.

    The only feature is the share of variables in the set. Batches of equal labels share the arrays.

    Raises:
        ValueError: the batch has no labels.
    """
    if not batch.parent_sets:
        raise ValueError("the batch names no parent_sets; name them, or pass the candidates as a CandidateSet")
    return _describe(batch.parent_sets, batch.variable_orders, batch.target_variables, batch.num_candidates)


def check_shapes(batch: TrainingBatchJAX, candidates: CandidateSet) -> None:
    """Check that candidates describe every candidate of a batch."""
    # All four arrays begin with (B, k), and all but ``is_real`` have a third axis.
    shapes = {name: getattr(candidates, name).shape for name in ("rows", "columns", "features", "is_real")}
    wanted = batch.expert_probs.shape
    for name, shape in shapes.items():
        if shape[:2] != wanted or len(shape) != (2 if name == "is_real" else 3):
            raise ValueError(
                f"candidates.{name} has the shape {shape}, but expert_probs has (B, k) = {wanted}; describe every "
                "candidate, padding included"
            )
    if shapes["columns"][-1] != batch.observational_data.shape[2]:
        raise ValueError(
            f"candidates.columns has the shape {shapes['columns']}, but observational_data has "
            f"d = {batch.observational_data.shape[2]}"
        )


def check_padding(batch: TrainingBatchJAX, candidates: CandidateSet) -> bool:
    """Check that the expert gives no weight to padding, where this process can see the values.

    It waits for the values. Compiled code has no values, and of arrays that are sharded over processes each process
    has a part only.

    Returns:
        Whether the values could be checked.
    """
    if not (is_visible(batch.expert_probs) and is_visible(candidates.is_real)):
        return False
    # The error names the first wrong entry in the order of examples.
    probs = np.asarray(batch.expert_probs)
    wrong = (probs > 0) & ~np.asarray(candidates.is_real)
    if wrong.any():
        example, index = (int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"expert_probs[{example}, {index}] is {probs[example, index]:.6g}, but candidates.is_real is False there; "
            "padding must have the probability 0, so mark the candidate as real or move its weight"
        )
    return True


@functools.lru_cache(maxsize=32)
def _describe(
    parent_sets: ParentSets, variable_orders: VariableOrders, target_variables: TargetVariables, k: int
) -> CandidateSet:
    members = np.zeros((len(parent_sets), k, len(variable_orders[0])), np.float32)
    sizes = np.zeros((len(parent_sets), k, 1), np.float32)
    is_real = np.zeros((len(parent_sets), k), np.bool_)
    # With the variables X0, X1, X2, the target X1 and the set {X0}: members 1 1 0, since the target belongs to the
    # region, and a share of 1/3. Rows and columns of the region are the same variables.
    for example, candidates in enumerate(parent_sets):
        index_of = {name: index for index, name in enumerate(variable_orders[example])}
        for candidate, names in enumerate(candidates):
            members[example, candidate, [index_of[name] for name in (*names, target_variables[example])]] = 1
            sizes[example, candidate] = len(names) / len(index_of)
        is_real[example, : len(candidates)] = True
    with jax.ensure_compile_time_eval():  # cached arrays must not be tracers
        shared = jnp.asarray(members)
        return CandidateSet(shared, shared, jnp.asarray(sizes), jnp.asarray(is_real))


NUM_ACTION_FEATURES: Final = NUM_GRID_OPERATIONS  # which operation it is


def describe_boxes(actions: BboxAction, is_real: Bool[Array, "*B"], grid_shape: tuple[int, int]) -> CandidateSet:
    """Describe actions on boxes: rows and columns of each box, and the one-hot operation.

    Args:
        actions: with any leading axes, one for k candidates or none for a single action.
        is_real: of the actions.
        grid_shape: (H, W) of the canvas.
    """
    # One outer product for each box instead of a mask of H x W cells: H + W numbers a candidate.
    height, width = grid_shape
    return CandidateSet(
        rows=_between(actions.r1, actions.r2, height),
        columns=_between(actions.c1, actions.c2, width),
        features=jax.nn.one_hot(actions.operation, NUM_ACTION_FEATURES, dtype=jnp.float32),
        is_real=is_real,
    )


def describe_grids(
    working: Int[Array, "H W"], target: Int[Array, "H W"], source: Int[Array, "H W"]
) -> Float32[Array, "H W 3"]:
    """Stack working grid, target and input as channels: colors -1 (outside of the grid) .. 9."""
    return jnp.stack([working, target, source], axis=-1).astype(jnp.float32)


def ends(covered: Float[Array, "*B n"]) -> tuple[Int32[Array, "*B"], Int32[Array, "*B"]]:
    """Return the first and the last index that is covered; an empty box ends before it begins."""
    # The weights 0 1 1 give 1 and 2; the weights 0 0 0 give 3 and -1.
    size = covered.shape[-1]
    indices = jnp.arange(size, dtype=jnp.int32).reshape(*[1] * (covered.ndim - 1), size)
    first = jnp.where(covered > 0, indices, size).min(axis=-1)
    return first, jnp.where(covered > 0, indices, -1).max(axis=-1)


def _between(one: Int[Array, "*B"], other: Int[Array, "*B"], side: int) -> Float32[Array, "*B side"]:
    """Return 1 from the smaller to the larger index, both included; else 0."""
    # From 2 to 1 on a side of 4: first 1, last 2, so 0 1 1 0. Both corners may come in any order.
    indices = jnp.arange(side, dtype=jnp.int32).reshape(*[1] * one.ndim, side)
    first = jnp.minimum(one, other)[..., None]
    last = jnp.maximum(one, other)[..., None]
    return ((indices >= first) & (indices <= last)).astype(jnp.float32)
