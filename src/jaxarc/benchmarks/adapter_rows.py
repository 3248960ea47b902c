"""The rows of ``jaxarc benchmark adapters``: steps per second behind Gymnasium's vector interface."""

import functools
from typing import Final

from jaxarc.benchmarks.row import Row
from jaxarc.benchmarks.workbench import Play, Workbench

_NUM_ENVS: Final = 1024
_MODES: Final = {"next-step": "NextStep", "same-step": "SameStep"}


def adapter_rows() -> tuple[Row, ...]:
    """List a row for each autoreset mode and action format, and for our own step beside them."""
    rows = []
    for selection_format in ("point", "bbox", "mask"):
        play = Play(_NUM_ENVS, selection_format)
        what = f"30x30, {selection_format} actions, {_NUM_ENVS:,} environments"
        own = functools.partial(Workbench.steps_per_second, play=play)
        rows.append(Row(f"own-{selection_format}", f"{what}, our own loop inside one scan", "steps/s", own))
        for name, mode in _MODES.items():
            measure = functools.partial(Workbench.vector_steps_per_second, play=play, autoreset_mode=mode)
            rows.append(Row(f"gymnasium-{name}-{selection_format}", f"{what}, {mode}", "steps/s", measure, 300e3))
    return tuple(rows)
