"""Plays some evaluation pairs of a run with its newest checkpoint, for the page that watches the run."""

import threading
import time
import warnings
from typing import Any, Final, NamedTuple

import jax

from jaxarc.config import ConfigValidationError
from jaxarc.evaluation import AgentMismatchError
from jaxarc.runs import CheckpointError, RunFolder
from jaxarc.runs.kind import SavedRun, kind_of

_MOST_KEPT: Final = 200  # results of checkpoints
_UNPLAYABLE: Final = (
    *(CheckpointError, ConfigValidationError, AgentMismatchError, OSError, ValueError, TypeError),
    KeyError,  # an unknown data set, such as a folder that was named from elsewhere
    jax.errors.JaxRuntimeError,
)


class _Shown(NamedTuple):
    """The last episodes, and the result of each checkpoint."""

    number: int  # of checkpoints played so far
    note: str
    episodes: list[dict[str, Any]]
    history: list[dict[str, Any]]  # update, and which pairs the agent solved


class EpisodeViewer:
    """Plays each new checkpoint in a thread of its own; only reads the run folder."""

    def __init__(self, folder: RunFolder, num_pairs: int, pause_s: float, seed: int | None = None):
        """Prepare; the thread loads the agent.

        Args:
            folder: of the run.
            num_pairs: number of pairs to play, evenly spread over the evaluation pairs.
            pause_s: seconds between two searches for a newer checkpoint.
            seed: of the agent; None for the first seed of the run.
        """
        self._folder = folder
        self._num_pairs = num_pairs
        self._pause_s = pause_s
        self._seed = seed
        self._seen = -1  # update of the checkpoint that was played last
        self._shown = _Shown(0, "waiting for the first checkpoint", [], [])

    def start(self) -> None:
        """Start the thread, which ends with the process."""
        threading.Thread(target=self._keep_playing, name="showing", daemon=True).start()

    def latest(self, number: int) -> dict[str, Any] | None:
        """Return the last episodes as JSON; None if they have this number, so the page has them."""
        shown = self._shown
        return None if shown.number == number else shown._asdict()

    def _keep_playing(self) -> None:
        while True:
            updates = self._folder.checkpoints.updates()
            if updates and updates[-1] != self._seen:
                self._seen = updates[-1]
                self._play_newest(updates[-1])
            time.sleep(self._pause_s)

    def _play_newest(self, update: int) -> None:
        """Play the newest checkpoint; on an error note the reason and wait for the next one."""
        before = self._shown
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                saved = SavedRun.open(self._folder, "last").require_agent()
                episodes = kind_of(saved.experiment).saved(saved).watched(self._seed, self._num_pairs)
            note = "; ".join(str(one.message) for one in warned)
        except _UNPLAYABLE as error:
            reason = f"the agent of update {update} cannot be shown: {error}"
            self._shown = before._replace(number=before.number + 1, note=reason)
            return
        played = saved.checkpoint.record.update  # newer than ``update`` where the run has saved another meanwhile
        self._seen = max(self._seen, played)
        newest = {"update": played, "solved": [episode["solved"] for episode in episodes]}
        self._shown = _Shown(before.number + 1, note, episodes, [*before.history, newest][-_MOST_KEPT:])
