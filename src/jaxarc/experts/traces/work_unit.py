"""What is recorded at once: one pair for one expert, known by its content."""

import dataclasses
import hashlib
import json
from typing import NamedTuple, cast

import numpy as np

from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.experts.expert import ActionFormat, Expert, ExpertError, Pair
from jaxarc.experts.traces.batch_expert import BatchExpert
from jaxarc.experts.traces.graph import canonical_json, pair_to_json


class ExpertSpec(NamedTuple):
    """Who records, and in which actions: with the pair, all that a trace depends on."""

    expert: str  # the expert's name
    version: int  # the expert's version
    settings: str  # of an expert that is a dataclass its fields, in canonical JSON; else empty
    action_format: ActionFormat
    canvas: tuple[int, int] = (MAX_GRID_SIZE, MAX_GRID_SIZE)  # rows and columns

    @property
    def title(self) -> str:
        """A line for people."""
        return f"{self.expert} {self.version}, {self.action_format}, {self.canvas[0]}x{self.canvas[1]}"

    @classmethod
    def of(cls, expert: Expert | BatchExpert, action_format: ActionFormat) -> "ExpertSpec":
        """Return the spec of an expert on the full canvas.

        Raises:
            ExpertError: its name is no text, its version no int, or one of its settings cannot be written as JSON.
        """
        if expert is None or isinstance(expert, str):
            raise ExpertError(f"an expert has a name, a version and a method solve, got {expert!r}; see find_expert")
        if not isinstance(expert.name, str) or not expert.name:
            raise ExpertError(f"an expert's name is a text that is not empty, got {expert.name!r}; name it")
        if type(expert.version) is not int:
            raise ExpertError(
                f"the version of the expert {expert.name!r} is an int, got {expert.version!r}; correct it"
            )
        return cls(expert.name, expert.version, _settings_of(expert), action_format)


class WorkUnit(NamedTuple):
    """One pair to be solved. Task ids are no part of it: an equal pair of another task is the same unit."""

    pair: Pair
    spec: ExpertSpec

    @classmethod
    def from_json(cls, text: str) -> "WorkUnit":
        """Read what :meth:`to_json` wrote."""
        data = json.loads(text)
        pair = Pair(*(np.array(data["pair"][side], np.int8) for side in ("input", "output")))
        spec = ExpertSpec(
            data["expert"],
            data["version"],
            data["settings"],
            cast(ActionFormat, data["action_format"]),
            tuple(data["canvas"]),
        )
        return cls(pair, spec)

    def to_json(self) -> str:
        """Write it in the one text that equal units share."""
        return canonical_json({**self.spec._asdict(), "pair": pair_to_json(self.pair)})


def hash_of(text: str) -> str:
    """SHA-256 of a unit's text, 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _settings_of(expert: Expert | BatchExpert) -> str:
    if not dataclasses.is_dataclass(expert) or isinstance(expert, type):
        return ""
    try:
        return canonical_json(dataclasses.asdict(expert))
    except (TypeError, ValueError) as error:
        raise ExpertError(
            f"the settings of the expert {expert.name!r} cannot be written as JSON ({error}); give its fields numbers, "
            "texts, and tuples of them"
        ) from error
