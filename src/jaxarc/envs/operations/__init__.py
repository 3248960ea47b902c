"""The 42 operations: names, kernels that edit a batch of canvases, and the executor that runs them."""

from jaxarc.envs.structured_actions import OPERATION_NAMES, get_operation_name

__all__ = ["OPERATION_NAMES", "get_operation_name"]
