"""Errors on values that are only known when a compiled function runs.

Equinox reads ``EQX_ON_ERROR`` and ``EQX_ON_ERROR_BREAKPOINT_FRAMES`` when it is imported; setting them later has no
effect. :meth:`JAXErrorHandler.set_error_mode` works at any time.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Int32

from jaxarc.device_arrays import own_arrays
from jaxarc.errors import JaxarcError
from jaxarc.fusion import compiles_for_cpu

ErrorMode = Literal["default", "raise", "nan", "breakpoint", "off"]
ERROR_MODES: tuple[ErrorMode, ...] = ("default", "raise", "nan", "breakpoint", "off")
EQUINOX_MODE = os.environ.get("EQX_ON_ERROR", "raise")  # as equinox reads it, on import

REPORT = "report"  # the mode of a program in which no check raises, because each would make an accelerator wait
_in_force: ContextVar[str | None] = ContextVar("mode of the program that is traced", default=None)

Checked = TypeVar("Checked")


@dataclass(frozen=True)
class IntegerRule:
    """A field that must be in ``low .. high`` and not be one of ``refused``."""

    field: str
    low: int
    high: int
    refused: tuple[int, ...] = ()  # values in range that are not allowed
    refusal: str = ""  # why not

    def is_broken(self, value: Int32[Array, "*B"]) -> Bool[Array, "*B"]:
        """Whether each value breaks the rule."""
        # A table over low .. high: with 0 .. 4 and 3 refused it is 1 1 1 0 1. The index is clipped, because an index
        # out of range must not read anything; the two comparisons refuse such values.
        allowed = np.ones(self.high - self.low + 1, np.bool_)
        allowed[[value - self.low for value in self.refused]] = False
        is_allowed = jnp.asarray(allowed)[jnp.clip(value, self.low, self.high) - self.low]
        return (value < self.low) | (value > self.high) | ~is_allowed

    def message(self, value: str, is_refused: bool) -> str:
        """Word the error of a value that breaks the rule."""
        if is_refused:
            return f"Illegal {self.field} {value}: {self.refusal}"
        return (
            f"Invalid {self.field} {value}: it must be in [{self.low}, {self.high}]; pass a value in this range, or "
            "set action.invalid_action_policy to 'noop' or 'clip'"
        )


@dataclass(frozen=True)
class RuleMessages(Sequence[str]):
    """The error texts of some rules, made when one is needed: one text per rule and value.

    A compiled check can hand a single integer to the host. It holds the number of the broken rule, counted from 1, in
    its high bits and the value, limited to 26 bits and moved up so that it is positive, in the low ones::

        rule 2 broken by the value 42    code = 2 * 2**27 + 42 + 2**26
    """

    rules: tuple[IntegerRule, ...]

    def code(self, number: int, value: Int32[Array, "*B"]) -> Int32[Array, "*B"]:
        """Encode a rule, counted from 0, and the value that breaks it."""
        return jnp.int32((number + 1) * _VALUES) + jnp.clip(value, -_FARTHEST, _FARTHEST - 1) + jnp.int32(_FARTHEST)

    def __getitem__(self, code: Any) -> Any:
        """Word the error of a code."""
        # The inverse of `code`: rule 1 broken by the value 42 has the code 2 * 2**27 + 42 + 2**26, and divmod gives
        # back 2 and 42 + 2**26. Code 0 means that no rule is broken, so rules count from 1 here.
        number, shifted = divmod(int(code), _VALUES)
        value = shifted - _FARTHEST
        rule = self.rules[number - 1]
        name = str(value)
        if value in (-_FARTHEST, _FARTHEST - 1):
            name = f"{'below' if value < 0 else 'above'} {value}"
        return rule.message(name, value in rule.refused)

    def __len__(self) -> int:
        return (len(self.rules) + 1) * _VALUES


_VALUES = 2**27  # codes of one rule
_FARTHEST = 2**26  # how far from zero a value is still named exactly


@runtime_checkable
class CheckableAction(Protocol):
    """The part of an action that the handler reads."""

    def rules(self, config: Any) -> list[tuple[IntegerRule, Int32[Array, "*B"]]]:
        """Check shapes and types at once, and return each field's rule with its value."""
        ...


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
        return _validate_action(own_arrays(action), config, JAXErrorHandler._mode)

    @staticmethod
    def validate_state_consistency(state: Any) -> Any:
        """Return the ``ArcEnvState``, single or batched, raising when its parts contradict one another.

        Raises:
            ValueError: grids and masks differ in shape.
            RuntimeError: a step count is negative, or a similarity is outside [0, 1].
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

        ``"default"`` follows ``EQX_ON_ERROR`` as it was when equinox was imported. The choice holds from the next call
        of an environment on. A function of yours that is compiled already keeps the mode it was compiled with; compile
        it anew, or clear it with its method ``clear_cache``.

        Raises:
            ValueError: the mode is unknown.
        """
        if mode not in ERROR_MODES:
            raise ValueError(f"Invalid error mode: {mode!r}. Must be one of {ERROR_MODES}")
        JAXErrorHandler._mode = mode

    @staticmethod
    def stops_on_error() -> bool:
        """Whether a failed check stops the program, rather than going on with NaN or unchanged values."""
        mode = _in_force.get() or JAXErrorHandler._mode
        return (EQUINOX_MODE if mode == "default" else mode) in ("raise", "breakpoint")

    @staticmethod
    def mode_to_compile() -> str:
        """Return the mode that a call of an environment is compiled with.

        A check that raises calls back to the host. In a program for an accelerator that takes many steps each of them
        would wait for it, so there an invalid action is reported and changes nothing, unless :meth:`set_error_mode`
        asks for more. A call of its own, also under ``jax.vmap``, raises on every backend.
        """
        if (mode := _in_force.get()) is not None:
            return mode
        mode = JAXErrorHandler._mode
        # Nothing is computed yet inside of a program that is traced: there even a constant is a tracer.
        is_part = mode == "default" and not compiles_for_cpu() and isinstance(jnp.zeros(()), Tracer)
        return REPORT if is_part else mode

    @staticmethod
    @contextmanager
    def compiling(mode: str) -> Iterator[None]:
        """Trace with this mode of :meth:`mode_to_compile`, whatever is called inside."""
        token = _in_force.set(mode)
        try:
            yield
        finally:
            _in_force.reset(token)

    @staticmethod
    def warn_of_unchecked_actions() -> None:
        """Warn, where a program that is traced does not raise on invalid actions because of its backend."""
        if _in_force.get() == REPORT:
            backend = jax.default_backend()
            warnings.warn(
                f"action.invalid_action_policy='raise' acts like 'noop' in a program for {backend!r}, where a check "
                "would stop the device in each step; read info['invalid_action'] and set the policy to 'noop' or "
                "'clip', or call JAXErrorHandler.set_error_mode('raise') before it is compiled",
                RuntimeWarning,
                stacklevel=2,
            )

    @staticmethod
    def get_error_mode() -> ErrorMode:
        """Return the mode set last, ``"default"`` at first."""
        return JAXErrorHandler._mode


def refuse_unstructured(action: object) -> None:
    """Raise a ``TypeError`` when an action is not one of the three structured ones."""
    if isinstance(action, type):
        raise TypeError(f"an action was expected, got the class {action.__name__}; call it: {action.__name__}(...)")
    if not isinstance(action, CheckableAction):
        raise TypeError(
            f"Unknown action type {type(action).__name__}: an action is a PointAction(operation, row, col), "
            "BboxAction(operation, r1, c1, r2, c2) or MaskAction(operation, selection); dictionaries are not accepted, "
            "and a number needs make(..., flat_actions=True), or env.to_structured(action, params) of such an env"
        )


@eqx.filter_jit
def _validate_action(action: Checked, config: Any, mode: ErrorMode) -> Checked:
    assert isinstance(action, CheckableAction)
    return enforce_rules(action, action.rules(config), mode)


def enforce_rules(tree: Checked, rules: Sequence[tuple[IntegerRule, Int32[Array, "*B"]]], mode: ErrorMode) -> Checked:
    """Return the tree, raising the text of a broken rule; of several, that of the last one."""
    _refuse_leak_checks(mode)
    messages = RuleMessages(tuple(rule for rule, _ in rules))
    # An error of a compiled program can choose among fixed texts by one int32, so rule and value share that number.
    code = jnp.int32(0)
    for number, (rule, value) in enumerate(rules):
        code = jnp.maximum(code, jnp.where(rule.is_broken(value), messages.code(number, value), 0))
    if not jax.sharding.get_abstract_mesh().manual_axes:
        return eqx.branched_error_if(tree, code > 0, code, messages, on_error=mode)
    # Inside jax.shard_map a result of the check varies over no device, and what passes through must not either: a 0
    # does. The tree depends on it, so that the check is not left out.
    passed = eqx.branched_error_if(jnp.int32(0), code > 0, code, messages, on_error=mode) == 0
    return jax.tree.map(lambda leaf: jnp.where(passed, leaf, _most(leaf.dtype)), tree)


class LeakCheckError(JaxarcError, RuntimeError):
    """JAX looks for leaked tracers, and takes every check of ``equinox.error_if`` for one."""


def _refuse_leak_checks(mode: ErrorMode) -> None:
    looks_for_leaks = jax.config.jax_check_tracer_leaks  # pyright: ignore[reportAttributeAccessIssue]
    if looks_for_leaks and (EQUINOX_MODE if mode == "default" else mode) != "off":
        raise LeakCheckError(
            "JAX_CHECK_TRACER_LEAKS is set, under which no check of equinox.error_if can be traced; set "
            "action.invalid_action_policy to 'noop' or 'clip', or call JAXErrorHandler.set_error_mode('off')"
        )


def _most(dtype: Any) -> Array:
    """What a failed check leaves of a number where it does not raise."""
    return jnp.ones((), dtype) if dtype == jnp.bool_ else jnp.full((), jnp.iinfo(dtype).max, dtype)


@eqx.filter_jit
def _validate_state(state: Any, mode: ErrorMode) -> Any:
    _refuse_leak_checks(mode)
    state = eqx.error_if(state, jnp.any(state.step_count < 0), "Step count cannot be negative", on_error=mode)
    score = state.similarity_score
    outside = jnp.any((score < 0) | (score > 1) | jnp.isnan(score))
    return eqx.error_if(state, outside, "Similarity score must be in range [0.0, 1.0]", on_error=mode)
