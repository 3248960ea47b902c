"""What an action looks like, which operations are allowed, and what happens to a wrong one."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, one_of
from jaxarc.constants import NUM_OPERATIONS

SELECTION_FORMATS = ("point", "bbox", "mask")
INVALID_ACTION_POLICIES = ("raise", "noop", "clip")


@dataclass(frozen=True)
class ActionConfig(CheckedConfig):
    selection_format: str = "mask"
    allowed_operations: tuple[int, ...] | None = None  # ids; None allows every operation that the episode allows
    invalid_action_policy: str = "raise"  # or noop: nothing changes; or clip: coordinates move into range

    def validate(self) -> list[str]:
        problems = [
            *one_of("selection_format", self.selection_format, SELECTION_FORMATS),
            *one_of("invalid_action_policy", self.invalid_action_policy, INVALID_ACTION_POLICIES),
        ]
        allowed = self.allowed_operations
        if allowed is not None:
            wrong = [operation for operation in allowed if not 0 <= operation < NUM_OPERATIONS]
            if wrong:
                problems.append(f"allowed_operations must be ids in 0..{NUM_OPERATIONS - 1}, got {wrong}")
            if not allowed:
                problems.append("allowed_operations must name at least one operation, got none")
            if len(set(allowed)) != len(allowed):
                problems.append(f"allowed_operations must not repeat an id, got {allowed}")
        return problems
