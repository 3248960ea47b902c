"""Errors on values that are only known when a compiled function runs.

Equinox reads ``EQX_ON_ERROR`` and ``EQX_ON_ERROR_BREAKPOINT_FRAMES`` when it is imported; setting them later has no
effect. :meth:`JAXErrorHandler.set_error_mode` works at any time.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

ErrorMode = Literal["default", "raise", "nan", "breakpoint", "off"]
ERROR_MODES: tuple[ErrorMode, ...] = ("default", "raise", "nan", "breakpoint", "off")
EQUINOX_MODE = os.environ.get("EQX_ON_ERROR", "raise")  # as equinox reads it, on import
NAMED_VALUES = 64  # how far outside its range a value is still named exactly

Checked = TypeVar("Checked")
State = TypeVar("State", bound="CheckableState")


@dataclass(frozen=True)
class IntegerRule:
    """A field that must lie in ``low .. high`` and not be one of ``refused``."""

    field: str
    low: int
    high: int
    refused: tuple[int, ...] = ()  # values in range that are not allowed
    refusal: str = ""  # why not

    def messages(self) -> list[str]:
        """One text per way to break the rule; :meth:`code` numbers them from 1."""
        low, high, name = self.low, self.high, self.field
        rule = f"it must be in [{low}, {high}]"
        fix = "pass a value in this range, or set action.invalid_action_policy to 'noop' or 'clip'"
        below = [f"Invalid {name} {value}: {rule}; {fix}" for value in range(low - NAMED_VALUES, low)]
        above = [f"Invalid {name} {value}: {rule}; {fix}" for value in range(high + 1, high + 1 + NAMED_VALUES)]
        far = [
            f"Invalid {name} below {low - NAMED_VALUES}: {rule}; {fix}",
            f"Invalid {name} above {high + NAMED_VALUES}: {rule}; {fix}",
        ]
        refused = [f"Illegal {name} {value}: {self.refusal}" for value in self.refused]
        return [*below, *above, *far, *refused]

    def code(self, value: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        """Number of the message that fits the value, 0 when the rule holds."""
        low, high = self.low, self.high
        below = jnp.where(value >= low - NAMED_VALUES, value - (low - NAMED_VALUES) + 1, 2 * NAMED_VALUES + 1)
        above = jnp.where(value <= high + NAMED_VALUES, value - high + NAMED_VALUES, 2 * NAMED_VALUES + 2)
        table = np.zeros(high - low + 1, np.int32)
        for place, refused in enumerate(self.refused):
            table[refused - low] = 2 * NAMED_VALUES + 3 + place
        within = jnp.asarray(table)[jnp.clip(value, low, high) - low]
        return jnp.where(value < low, below, jnp.where(value > high, above, within)).astype(jnp.int32)


@runtime_checkable
class CheckableAction(Protocol):
    """What the handler needs to know of an action."""

    def rules(self, config: Any) -> list[tuple[IntegerRule, Int32[Array, "*B"]]]:
        """Check shapes and types at once, and return each field's rule with its value."""
        ...


class CheckableState(Protocol):
    """What the handler needs to know of a state."""

    @property
    def working_grid(self) -> Array: ...
    @property
    def target_grid(self) -> Array: ...
    @property
    def working_grid_mask(self) -> Array: ...
    @property
    def step_count(self) -> Array: ...
    @property
    def similarity_score(self) -> Array: ...


class JAXErrorHandler:
    """Checks that raise from inside compiled functions; all of them return what they checked."""

    _mode: ErrorMode = "default"

    @staticmethod
    def validate_action(action: Checked, config: Any) -> Checked:
        """Return the action, raising when an operation or coordinate is out of range or not allowed.

        Args:
            action: a ``PointAction``, ``BboxAction`` or ``MaskAction``, single or batched.
            config: the ``JaxArcConfig`` that fixes canvas, format and allowed operations.

        Raises:
            TypeError: the action is a dictionary, or of another format than the config's.
            ValueError: a mask has another shape than the canvas.
            RuntimeError: (``equinox.EquinoxRuntimeError``) a value is out of range or not allowed.
        """
        refuse_unstructured(action)
        return _validate_action(action, config, JAXErrorHandler._mode)

    @staticmethod
    def validate_state_consistency(state: State) -> State:
        """Return the state, raising when its parts contradict one another.

        Raises:
            ValueError: grids and masks differ in shape.
            RuntimeError: a step count is negative, or a similarity lies outside [0, 1].
        """
        if state.working_grid.shape != state.target_grid.shape:
            raise ValueError(
                f"Working grid and target grid shapes must match, got {state.working_grid.shape} and "
                f"{state.target_grid.shape}"
            )
        if state.working_grid_mask.shape != state.working_grid.shape:
            raise ValueError(
                f"Working grid mask shape must match working grid, got {state.working_grid_mask.shape} and "
                f"{state.working_grid.shape}"
            )
        return _validate_state(state, JAXErrorHandler._mode)

    @staticmethod
    def set_error_mode(mode: ErrorMode) -> None:
        """Choose what a failed check does: raise, give NaN (the largest int for integers), break, or nothing.

        ``"default"`` follows ``EQX_ON_ERROR`` as it was when equinox was imported. Compiled functions are forgotten, so
        that the choice holds from the next call on.

        Raises:
            ValueError: the mode is unknown.
        """
        if mode not in ERROR_MODES:
            raise ValueError(f"Invalid error mode: {mode!r}. Must be one of {ERROR_MODES}")
        if mode != JAXErrorHandler._mode:
            JAXErrorHandler._mode = mode
            jax.clear_caches()

    @staticmethod
    def stops_on_error() -> bool:
        """Whether a failed check stops the program, rather than going on with NaN or unchanged values."""
        mode = JAXErrorHandler._mode
        return (EQUINOX_MODE if mode == "default" else mode) in ("raise", "breakpoint")

    @staticmethod
    def get_error_mode() -> ErrorMode:
        """Return the mode set last, ``"default"`` at first."""
        return JAXErrorHandler._mode


def refuse_unstructured(action: object) -> None:
    """Raise a ``TypeError`` when an action is not one of the three structured ones."""
    if not isinstance(action, CheckableAction):
        raise TypeError(
            f"Unknown action type {type(action).__name__}: an action is a PointAction(operation, row, col), "
            "BboxAction(operation, r1, c1, r2, c2) or MaskAction(operation, selection); dictionaries are not accepted"
        )


@eqx.filter_jit
def _validate_action(action: Checked, config: Any, mode: ErrorMode) -> Checked:
    assert isinstance(action, CheckableAction)
    return enforce_rules(action, action.rules(config), mode)


def enforce_rules(tree: Checked, rules: Sequence[tuple[IntegerRule, Int32[Array, "*B"]]], mode: ErrorMode) -> Checked:
    """Return the tree, raising the text of a broken rule; of several, the one with the highest number."""
    messages, code = [""], jnp.int32(0)
    for rule, value in rules:
        number = rule.code(value)
        code = jnp.maximum(code, jnp.where(number > 0, number + (len(messages) - 1), 0))
        messages += rule.messages()
    return eqx.branched_error_if(tree, code > 0, code, messages, on_error=mode)


@eqx.filter_jit
def _validate_state(state: State, mode: ErrorMode) -> State:
    state = eqx.error_if(state, jnp.any(state.step_count < 0), "Step count cannot be negative", on_error=mode)
    score = state.similarity_score
    outside = jnp.any((score < 0) | (score > 1) | jnp.isnan(score))
    return eqx.error_if(state, outside, "Similarity score must be in range [0.0, 1.0]", on_error=mode)
