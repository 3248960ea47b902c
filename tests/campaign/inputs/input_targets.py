"""Every reader that is fed with bad input, by name."""

from typing import Final

from campaign.inputs import config_inputs, page_inputs, run_inputs, task_inputs, trace_inputs
from campaign.inputs.input_target import Maker

_TABLES: Final = (task_inputs, trace_inputs, config_inputs, run_inputs, page_inputs)
SHARES: Final[dict[Maker, float]] = {maker: share for table in _TABLES for maker, share in table.TARGETS.items()}
MAKERS: Final[dict[str, Maker]] = {maker.__name__: maker for maker in SHARES}
